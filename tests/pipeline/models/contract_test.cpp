#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "pipeline/models/composition_file.h"
#include "pipeline/models/contract_file.h"

namespace takt::pipeline {
namespace {

using ::testing::HasSubstr;

const std::string kCentre = R"(name: street
file: street.onnx
hash: 0123456789abcdef0123456789abcdef
licence: part of the test
input: {tensor: image, width: 416, height: 256, colour: rgb, resize: letterbox, pad: 114, scale: 0.5, mean: [1, 2, 3], std: [4, 5, 8]}
head: {type: centre, heatmap: heat, box: box, stride: 8, score_min: 0.4, nms_iou: 0.5, objects_max: 64}
classes:
  car: vehicle
  sign: ignore
  person: pedestrian
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kCentre;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto contract = parse_model(text, "street.yaml");
  EXPECT_FALSE(contract) << text;
  if (contract) return "";
  EXPECT_EQ(contract.error().code, Code::kConfiguration);
  return contract.error().message;
}

TEST(ModelContract, ReadsEveryKey) {
  const auto contract = parse_model(kCentre, "street.yaml");
  ASSERT_TRUE(contract) << contract.error().message;
  EXPECT_EQ(contract->name, "street");
  EXPECT_EQ(contract->file, "street.onnx");
  EXPECT_EQ(contract->hash, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(contract->licence, "part of the test");
  const ModelInput& input = contract->input;
  EXPECT_EQ(input.tensor, "image");
  EXPECT_EQ(input.width, 416U);
  EXPECT_EQ(input.height, 256U);
  EXPECT_EQ(input.colour, kernels::ColourOrder::kRgb);
  EXPECT_EQ(input.fit, kernels::Fit::kLetterbox);
  EXPECT_EQ(input.pad, 114U);
  EXPECT_EQ(input.mean[2], 3);
  EXPECT_EQ(input.std[0], 4);
  const auto* centre = std::get_if<CentreHead>(&contract->head.form);
  ASSERT_NE(centre, nullptr);
  EXPECT_EQ(centre->heatmap, "heat");
  EXPECT_EQ(centre->stride, 8U);
  EXPECT_EQ(contract->head.objects_max, 64U);
  ASSERT_EQ(contract->classes.size(), 3U) << "in channel order";
  EXPECT_EQ(contract->classes[0].name, "car");
  EXPECT_EQ(contract->classes[0].meaning, ObjectClass::kVehicle);
  EXPECT_EQ(contract->classes[1].meaning, std::nullopt);
  EXPECT_EQ(contract->classes[2].meaning, ObjectClass::kPedestrian);
}

TEST(ModelContract, LoopsAndStateOfTheNetwork) {
  const auto contract =
      parse_model(kCentre + "loops: {decode/Loop: 20}\nstate: {hidden: hidden_next}\n", "street.yaml");
  ASSERT_TRUE(contract) << contract.error().message;
  EXPECT_EQ(contract->loops, (std::map<std::string, std::int64_t>{{"decode/Loop", 20}}));
  EXPECT_EQ(contract->states, (std::map<std::string, std::string>{{"hidden", "hidden_next"}}));
  EXPECT_THAT(error_of(kCentre + "loops: {decode: 0}\n"), HasSubstr("street.yaml:11:17: loops.decode"));
  EXPECT_THAT(error_of(kCentre + "state: {hidden: [a]}\n"), HasSubstr("state.hidden"));
}

TEST(ModelContract, PreprocessFoldsScaleMeanAndDeviation) {
  const auto contract = parse_model(kCentre, "street.yaml");
  ASSERT_TRUE(contract);
  const kernels::Preprocess p = preprocess_of(contract->input, {kernels::PixelSource::kNv12, 1920, 1080, 1920, 64});
  EXPECT_EQ(p.source_width, 1920U);
  EXPECT_EQ(p.chroma_offset, 64U + 1920U * 1080U);
  EXPECT_EQ(p.pad, 114U);
  EXPECT_EQ(p.width, 416U);
  EXPECT_FLOAT_EQ(p.multiply[2], 0.5F / 8);
  EXPECT_FLOAT_EQ(p.add[1], -2.0F / 5);
}

TEST(ModelContract, EveryMistakeIsNamedWithItsPlace) {
  EXPECT_THAT(error_of(with("colour: rgb", "colour: gbr")), HasSubstr("street.yaml:5:"));
  EXPECT_THAT(error_of(with("colour: rgb", "colour: gbr")), HasSubstr("'gbr'"));
  EXPECT_THAT(error_of(with("colour: rgb, ", "")), HasSubstr("colour"));
  EXPECT_THAT(error_of(with("licence:", "license:")), HasSubstr("license")) << "unknown key";
  EXPECT_THAT(error_of(with("licence:", "license:")), HasSubstr("licence")) << "missing key";
  EXPECT_THAT(error_of(with("hash: 01", "hash: 0x")), HasSubstr("32 lower-case hexadecimal"));
  EXPECT_THAT(error_of(with("stride: 8", "stride: 7")), HasSubstr("416x256 is no whole number of cells of 7 pixels"));
  EXPECT_THAT(error_of(with("objects_max: 64", "objects_max: 1000")), HasSubstr("street.yaml:6:"));
  EXPECT_THAT(error_of(with("std: [4, 5, 8]", "std: [4, 0, 8]")), HasSubstr("street.yaml:5:"));
  EXPECT_THAT(error_of(with("pad: 114, ", "")), HasSubstr("pad"));
  EXPECT_THAT(error_of(with("resize: letterbox", "resize: plain")), HasSubstr("pad")) << "only letterbox pads";
  EXPECT_THAT(error_of(with("person: pedestrian", "person: human")), HasSubstr("pedestrian"));
  EXPECT_THAT(error_of(with("type: centre", "type: yolo")), HasSubstr("fastestdet"));
  // All at once.
  const std::string both = error_of(with("colour: rgb, resize: letterbox", "colour: gbr, resize: crop"));
  EXPECT_THAT(both, HasSubstr("gbr"));
  EXPECT_THAT(both, HasSubstr("crop"));
}

TEST(ModelContract, UnlistedChannelsAreIgnored) {
  const auto contract = parse_model(kCentre + "unlisted: 2\n", "street.yaml");
  ASSERT_TRUE(contract) << contract.error().message;
  ASSERT_EQ(contract->classes.size(), 5U);
  EXPECT_EQ(contract->classes[4].meaning, std::nullopt);
}

TEST(ModelContract, ShippedFilesAreRead) {
  std::size_t read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TAKT_SOURCE_DIR "/configs/models")) {
    if (entry.path().extension() != ".yaml") continue;
    const auto composition = is_composition(entry.path().string());
    ASSERT_TRUE(composition) << composition.error().message;
    if (*composition) continue;
    if (entry.path().filename().string().starts_with("lidar_")) continue;  // of a form of its own: lidar_model.h
    const auto contract = load_model(entry.path().string());
    EXPECT_TRUE(contract) << contract.error().message;
    ++read;
  }
  EXPECT_GE(read, 1U);
}

class ModelFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "model_contract";
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "street.yaml") << kCentre;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(ModelFile, IsLookedForBesideTheContractUnlessGiven) {
  const std::string path = (folder_ / "street.yaml").string();
  const auto beside = load_model(path);
  ASSERT_TRUE(beside) << beside.error().message;
  EXPECT_EQ(beside->file, (folder_ / "street.onnx").string());
  const auto missing = read_model_file(*beside);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kConfiguration);
  EXPECT_THAT(missing.error().message, HasSubstr("street.onnx is not there"));
  const auto given = load_model(path, "/elsewhere/model.onnx");
  ASSERT_TRUE(given);
  EXPECT_EQ(given->file, "/elsewhere/model.onnx");
}

TEST_F(ModelFile, AnotherFileIsRefusedByItsHash) {
  std::ofstream(folder_ / "street.onnx") << "not the model";
  const auto contract = load_model((folder_ / "street.yaml").string());
  ASSERT_TRUE(contract);
  const auto bytes = read_model_file(*contract);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Code::kConfiguration);
  EXPECT_THAT(bytes.error().message, HasSubstr("expected hash 0123456789abcdef0123456789abcdef, found "));
}

}  // namespace
}  // namespace takt::pipeline
