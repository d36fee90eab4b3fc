#include "runtime/base/digest.h"

#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>

#include "tests/runtime/base/temporary_folder.h"

namespace takt {
namespace {

// XXH3-128 of the empty input with seed 0, as published with the algorithm.
TEST(Digest, KnownValue) { EXPECT_EQ(digest("").hex(), "99aa06d3014798d86001c324468d497f"); }

TEST(Digest, HexIsThirtyTwoLowerCaseDigits) {
  EXPECT_EQ((Digest{0x1, 0xABCDEF}).hex(), "00000000000000010000000000abcdef");
}

TEST(Digest, PiecesGiveTheDigestOfTheWhole) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 31);
  for (const std::size_t cut : {0u, 1u, 63u, 240u, 241u, 4096u, 5000u}) {
    Digester digester;
    digester.add(std::as_bytes(std::span(text.data(), cut)));
    digester.add(std::as_bytes(std::span(text.data() + cut, text.size() - cut)));
    EXPECT_EQ(digester.finish(), digest(text)) << cut;
  }
}

TEST(Digest, ResetStartsAnew) {
  Digester digester;
  digester.add_value(7);
  digester.reset();
  EXPECT_EQ(digester.finish(), digest(""));
  const std::uint32_t value = 0x01020304;
  digester.add_value(value);
  EXPECT_EQ(digester.finish(), digest(std::as_bytes(std::span(&value, 1))));
}

TEST(Digest, OneBitChangesIt) {
  EXPECT_NE(digest("abc"), digest("abb"));
  EXPECT_NE(digest("a"), digest(std::string_view("a\0", 2)));
}

TEST(Digest, OfAFileIsThatOfItsBytes) {
  const TemporaryFolder folder;
  const std::string path = folder / "data";
  std::string content(3 << 20, 'x');  // more than one block
  content[content.size() - 1] = 'y';
  std::ofstream(path, std::ios::binary) << content;
  const auto of_file = digest_file(path);
  ASSERT_TRUE(of_file);
  EXPECT_EQ(*of_file, digest(content));
  std::ofstream(folder / "empty", std::ios::binary).flush();
  EXPECT_EQ(*digest_file(folder / "empty"), digest(""));
}

TEST(Digest, OfAMissingFileIsAnError) {
  const auto missing = digest_file("/nonexistent/file");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kInput);
  EXPECT_EQ(missing.error().message, "/nonexistent/file: cannot be opened for reading");
}

// A folder log (rosbag2 in parts, KITTI) is one input.
TEST(Digest, OfAFolderFollowsNamesAndContents) {
  const TemporaryFolder folder;
  std::ofstream(folder / "b") << "two";
  std::ofstream(folder / "a") << "one";
  const auto before = digest_file(folder / ".");
  ASSERT_TRUE(before);
  EXPECT_EQ(*digest_file(folder / "."), *before);
  std::ofstream(folder / "a") << "One";
  const auto changed = digest_file(folder / ".");
  EXPECT_NE(*changed, *before);
  std::ofstream(folder / "a") << "one";
  EXPECT_EQ(*digest_file(folder / "."), *before);
  std::filesystem::rename(folder / "a", folder / "c");
  EXPECT_NE(*digest_file(folder / "."), *before);
}

}  // namespace
}  // namespace takt
