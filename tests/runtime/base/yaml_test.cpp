#include "runtime/base/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

namespace takt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

YamlDocument parse(const std::string& text) {
  auto document = YamlDocument::parse(text, "c.yaml");
  if (!document) {
    ADD_FAILURE() << document.error().message;
    return *YamlDocument::parse("x: 1", "c.yaml");
  }
  return *document;
}

// All messages after reading with `read`, "" when there is none.
std::string errors(const std::string& text, const std::function<void(const YamlNode&)>& read) {
  const YamlDocument document = parse(text);
  read(document.root());
  const Status status = document.finish();
  if (status) return "";
  EXPECT_EQ(status.error().code, Code::kConfiguration);
  return status.error().message;
}

std::string parse_error(const std::string& text) {
  const auto document = YamlDocument::parse(text, "c.yaml");
  if (document) return "accepted";
  EXPECT_EQ(document.error().code, Code::kConfiguration);
  return document.error().message;
}

TEST(Yaml, ReadsEveryKind) {
  const YamlDocument document = parse(
      "name: front\n"
      "rate_hz: 30\n"
      "gain: -1.5e2\n"
      "enabled: true\n"
      "kind: lidar\n"
      "offset: [1, 2.5, -3]\n"
      "budget_ms: 2.5\n"
      "jitter_us: 0.0015\n"
      "stages:\n"
      "  - {id: a}\n"
      "  - {id: b}\n"
      "free: {one: 1, two: 2}\n");
  const YamlNode root = document.root();
  EXPECT_EQ(root.at("name").text(), "front");
  EXPECT_EQ(root.at("rate_hz").integer(1, 100), 30);
  EXPECT_EQ(root.at("gain").number(-1000, 1000), -150.0);
  EXPECT_TRUE(root.at("enabled").boolean());
  EXPECT_EQ(root.at("kind").one_of({"camera", "lidar"}), "lidar");
  EXPECT_THAT(root.at("offset").numbers(3, -10, 10), ElementsAre(1.0, 2.5, -3.0));
  EXPECT_EQ(root.at("budget_ms").milliseconds(0, 100), microseconds(2500));
  EXPECT_EQ(root.at("jitter_us").microseconds(0, 100), nanoseconds(2));  // half away from zero
  std::string ids;
  for (const YamlNode& stage : root.at("stages").items()) ids += stage.at("id").text();
  EXPECT_EQ(ids, "ab");
  std::int64_t sum = 0;
  for (const auto& [key, value] : root.at("free").entries()) sum += value.integer(0, 10);
  EXPECT_EQ(sum, 3);
  EXPECT_FALSE(root.find("absent"));
  EXPECT_TRUE(document.finish()) << document.finish().error().message;
}

TEST(Yaml, UnknownKeyHasItsPlaceAndASuggestion) {
  EXPECT_EQ(errors("name: a\nrate_zh: 10\n",
                   [](const YamlNode& root) {
                     (void)root.at("name").text();
                     (void)root.find("rate_hz");
                   }),
            "c.yaml:2:1: unknown key 'rate_zh'; did you mean 'rate_hz'?");
}

TEST(Yaml, UnknownKeyInsideNamesTheMapping) {
  EXPECT_EQ(errors("stages:\n  - id: a\n    colour: red\n",
                   [](const YamlNode& root) {
                     for (const YamlNode& stage : root.at("stages").items()) (void)stage.at("id").text();
                   }),
            "c.yaml:3:5: unknown key 'colour' in stages[0]; known: id");
}

TEST(Yaml, MissingKeyPointsAtItsMapping) {
  EXPECT_EQ(errors("name: a\n", [](const YamlNode& root) { (void)root.at("rate_hz").integer(1, 9); }),
            "c.yaml:1:1: missing key 'rate_hz'\n"
            "c.yaml:1:1: unknown key 'name'; known: rate_hz");
}

TEST(Yaml, MissingKeyMentionsTheTypo) {
  EXPECT_THAT(errors("rate_zh: 3\n", [](const YamlNode& root) { (void)root.at("rate_hz").integer(1, 9); }),
              HasSubstr("c.yaml:1:1: missing key 'rate_hz' (there is 'rate_zh')"));
}

TEST(Yaml, WrongTypes) {
  EXPECT_EQ(errors("a: [1]\n", [](const YamlNode& root) { (void)root.at("a").text(); }),
            "c.yaml:1:4: a: expected text, found a list");
  EXPECT_EQ(errors("a: {b: 1}\n", [](const YamlNode& root) { (void)root.at("a").items(); }),
            "c.yaml:1:4: a: expected a list, found a mapping");
  EXPECT_EQ(errors("a: x\n", [](const YamlNode& root) { (void)root.at("a").entries(); }),
            "c.yaml:1:4: a: expected a mapping of keys, found 'x'");
  EXPECT_EQ(errors("a: x\n", [](const YamlNode& root) { (void)root.at("a").at("b"); }),
            "c.yaml:1:4: a: expected a mapping of keys, found 'x'");
  EXPECT_EQ(errors("a: ten\n", [](const YamlNode& root) { (void)root.at("a").integer(0, 9); }),
            "c.yaml:1:4: a: expected a whole number, found 'ten'");
  EXPECT_EQ(errors("a: 1.5\n", [](const YamlNode& root) { (void)root.at("a").integer(0, 9); }),
            "c.yaml:1:4: a: expected a whole number, found '1.5'");
  EXPECT_EQ(errors("a: 99999999999999999999\n", [](const YamlNode& root) { (void)root.at("a").integer(0, 9); }),
            "c.yaml:1:4: a: expected a whole number, found '99999999999999999999'");
  EXPECT_EQ(errors("a: 3 m\n", [](const YamlNode& root) { (void)root.at("a").number(0, 9); }),
            "c.yaml:1:4: a: expected a number, found '3 m'");
  EXPECT_EQ(errors("a: .nan\n", [](const YamlNode& root) { (void)root.at("a").number(0, 9); }),
            "c.yaml:1:4: a: expected a number, found '.nan'");
  EXPECT_EQ(errors("a: nan\n", [](const YamlNode& root) { (void)root.at("a").number(0, 9); }),
            "c.yaml:1:4: a: expected a number, found 'nan'");
  EXPECT_EQ(errors("a: 1e999\n", [](const YamlNode& root) { (void)root.at("a").number(0, 9); }),
            "c.yaml:1:4: a: expected a number, found '1e999'");
  EXPECT_EQ(errors("a: yes\n", [](const YamlNode& root) { (void)root.at("a").boolean(); }),
            "c.yaml:1:4: a: expected true or false, found 'yes'");
  EXPECT_THAT(errors("a:\n", [](const YamlNode& root) { (void)root.at("a").text(); }),
              HasSubstr("a: expected text, found nothing"));
}

TEST(Yaml, OutOfRange) {
  EXPECT_EQ(errors("a: 10\n", [](const YamlNode& root) { (void)root.at("a").integer(0, 9); }),
            "c.yaml:1:4: a: 10 is out of range; allowed: 0 to 9");
  EXPECT_EQ(errors("a: -0.1\n", [](const YamlNode& root) { (void)root.at("a").number(0, 0.5); }),
            "c.yaml:1:4: a: -0.1 is out of range; allowed: 0 to 0.5");
  EXPECT_EQ(errors("a: 3\n", [](const YamlNode& root) { (void)root.at("a").milliseconds(0, 2); }),
            "c.yaml:1:4: a: 3 is out of range; allowed: 0 to 2");
  EXPECT_EQ(errors("a: [1, 20, 3]\n", [](const YamlNode& root) { (void)root.at("a").numbers(3, 0, 9); }),
            "c.yaml:1:8: a[1]: 20 is out of range; allowed: 0 to 9");
}

TEST(Yaml, WrongCountOfNumbers) {
  EXPECT_EQ(errors("a: [1, 2]\n", [](const YamlNode& root) { EXPECT_EQ(root.at("a").numbers(3, 0, 9).size(), 3u); }),
            "c.yaml:1:4: a: expected 3 numbers, found 2");
}

TEST(Yaml, UnknownWord) {
  EXPECT_EQ(errors("kind: lidra\n",
                   [](const YamlNode& root) {
                     (void)root.at("kind").one_of({"camera", "lidar"});
                   }),
            "c.yaml:1:7: kind: unknown value 'lidra'; did you mean 'lidar'?");
  EXPECT_EQ(errors("kind: sonar9\n",
                   [](const YamlNode& root) {
                     (void)root.at("kind").one_of({"camera", "lidar"});
                   }),
            "c.yaml:1:7: kind: unknown value 'sonar9'; known: camera, lidar");
}

TEST(Yaml, EqualKeysAreAnError) {
  EXPECT_EQ(errors("a: 1\nb: {c: 1, c: 2}\na: 3\n",
                   [](const YamlNode& root) {
                     (void)root.at("a").integer(0, 9);
                     (void)root.at("b").entries();
                   }),
            "c.yaml:2:11: key 'c' appears twice\n"
            "c.yaml:3:1: key 'a' appears twice");
}

TEST(Yaml, ErrorsComeInTheOrderOfTheFileAndOnce) {
  const std::string message = errors("a: x\nb: y\n", [](const YamlNode& root) {
    (void)root.at("b").integer(0, 9);
    (void)root.at("a").integer(0, 9);
    (void)root.at("b").integer(0, 9);
  });
  EXPECT_EQ(message,
            "c.yaml:1:4: a: expected a whole number, found 'x'\n"
            "c.yaml:2:4: b: expected a whole number, found 'y'");
}

TEST(Yaml, AFloodIsCutAtTwentyLines) {
  std::string text;
  for (int i = 0; i < 25; ++i) text += "k" + std::to_string(i) + ": 1\n";
  const std::string message = errors(text, [](const YamlNode& root) { (void)root.find("other_name"); });
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20);
  EXPECT_THAT(message, HasSubstr("\n... and 5 more"));
}

TEST(Yaml, AReadersOwnErrorHasThePlace) {
  EXPECT_EQ(errors("a: {b: 7}\n", [](const YamlNode& root) { root.at("a").at("b").error("must be prime and even"); }),
            "c.yaml:1:8: a.b: must be prime and even");
}

TEST(Yaml, AMissingNodeReadsAsDefaultsWithoutFurtherErrors) {
  const std::string message = errors("a: 1\n", [](const YamlNode& root) {
    (void)root.at("a").integer(0, 9);
    const YamlNode missing = root.at("section");
    EXPECT_EQ(missing.at("deep").at("deeper").integer(3, 9), 3);
    EXPECT_EQ(missing.number(-1, 1), -1);
    EXPECT_EQ(missing.one_of({"first", "second"}), "first");
    EXPECT_FALSE(missing.boolean());
    EXPECT_TRUE(missing.items().empty());
    EXPECT_EQ(missing.numbers(2, 0, 1).size(), 2u);
    EXPECT_FALSE(missing.is_map());
  });
  EXPECT_EQ(message, "c.yaml:1:1: missing key 'section'");
}

TEST(Yaml, TwoReadersMayShareAMapping) {
  EXPECT_EQ(errors("a: 1\nb: 2\n",
                   [](const YamlNode& root) {
                     const YamlNode again = root;
                     (void)root.at("a").integer(0, 9);
                     (void)again.at("b").integer(0, 9);
                   }),
            "");
}

TEST(Yaml, EmptyOrNoMappingIsRefused) {
  EXPECT_EQ(parse_error(""), "c.yaml:1:1: expected a mapping of keys, found nothing");
  EXPECT_EQ(parse_error("# only a comment\n"), "c.yaml:1:1: expected a mapping of keys, found nothing");
  EXPECT_EQ(parse_error("- a\n- b\n"), "c.yaml:1:1: expected a mapping of keys, found a list");
  EXPECT_EQ(parse_error("word"), "c.yaml:1:1: expected a mapping of keys, found 'word'");
}

TEST(Yaml, SyntaxErrorsHaveThePlace) {
  EXPECT_THAT(parse_error("a: 1\nb: [1, 2\nc: 3\n"), StartsWith("c.yaml:"));
  EXPECT_THAT(parse_error("a: 1\n b: 2\n"), StartsWith("c.yaml:2:"));
  EXPECT_THAT(parse_error("a: {b: 1\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(parse_error("a: *nobody\n"), HasSubstr("not valid YAML"));
}

TEST(Yaml, ASecondDocumentIsRefused) {
  EXPECT_EQ(parse_error("a: 1\n---\nb: 2\n"), "c.yaml:3:1: a second document begins here; give it a file of its own");
  EXPECT_THAT(parse_error("a: 1\n...\n---\n- b\n"), HasSubstr("a second document"));
  EXPECT_EQ(parse_error("---\na: 1\n...\n"), "accepted");
  EXPECT_THAT(parse_error("a: 1\n---\n"), HasSubstr("a second document"));
}

TEST(Yaml, ControlCharactersAreRefused) {
  EXPECT_EQ(parse_error("a: 1\nb: x\x01y\n"), "c.yaml:2:5: a control character; is this a text file?");
  EXPECT_THAT(parse_error(std::string("a: \0b\n", 7)), StartsWith("c.yaml:1:4: "));
  EXPECT_THAT(parse_error("\xc3\xa4: \x1b[31m\n"), StartsWith("c.yaml:1:4: "));  // an umlaut is one column
  EXPECT_THAT(parse_error("a: \x7f\n"), StartsWith("c.yaml:1:4: "));
  EXPECT_THAT(parse_error("a: \xc2\x9b\n"), StartsWith("c.yaml:1:4: "));
  EXPECT_EQ(parse_error("a: \"\tb\"\r\nc: \xc2\x85\xc3\xbc\n"), "accepted");
  EXPECT_EQ(errors("a: \"x\\e[31m\"\n", [](const YamlNode& root) { EXPECT_EQ(root.at("a").text(), ""); }),
            "c.yaml:1:4: a: a control character in a text");
}

TEST(Yaml, AnAliasOfItselfIsRefused) {
  EXPECT_THAT(parse_error("a: &a [1, *a]\n"), HasSubstr("does an alias refer to itself?"));
  EXPECT_THAT(parse_error("a: &a {b: *a}\n"), HasSubstr("does an alias refer to itself?"));
}

TEST(Yaml, AnExplodingAliasIsRefused) {
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + before + ", *a" + before + "]\n";
  }
  EXPECT_THAT(parse_error(text), HasSubstr("larger than 100000 values"));
}

TEST(Yaml, DeepNestingIsRefused) {
  EXPECT_THAT(parse_error("a: " + std::string(200, '[') + std::string(200, ']')), StartsWith("c.yaml:"));
  EXPECT_THAT(parse_error("a: " + std::string(100'000, '[')), StartsWith("c.yaml:"));
}

TEST(Yaml, PlainAliasesWork) {
  EXPECT_EQ(errors("a: &x {n: 1}\nb: *x\n",
                   [](const YamlNode& root) {
                     EXPECT_EQ(root.at("a").at("n").integer(0, 9), 1);
                     EXPECT_EQ(root.at("b").at("n").integer(0, 9), 1);
                   }),
            "");
}

TEST(Yaml, AMissingFileIsAConfigurationError) {
  const auto document = YamlDocument::load("/nonexistent/c.yaml");
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().code, Code::kConfiguration);
  EXPECT_EQ(document.error().message, "/nonexistent/c.yaml: cannot be opened: No such file or directory");
}

TEST(Yaml, LoadNamesTheFile) {
  const std::string path = (std::filesystem::temp_directory_path() / "takt-yaml-test.yaml").string();
  std::ofstream(path) << "a: [\n";
  const auto document = YamlDocument::load(path);
  std::remove(path.c_str());
  ASSERT_FALSE(document);
  EXPECT_THAT(document.error().message, StartsWith(path + ":"));
}

}  // namespace
}  // namespace takt
