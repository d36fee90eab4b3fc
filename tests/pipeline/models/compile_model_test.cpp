// Contracts against real files: takt's own network, with one thing wrong at a time.
#include "pipeline/models/compile_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstring>

#include "pipeline/models/contract_file.h"

namespace takt::pipeline {
namespace {

using ::testing::HasSubstr;

constexpr CameraPicture kPicture{kernels::PixelSource::kRgb8, 640, 384, 1920, 64};

ModelContract contract() {
  auto loaded = load_model(TAKT_SOURCE_DIR "/configs/models/sim_camera_full.yaml");
  EXPECT_TRUE(loaded) << loaded.error().message;
  return loaded ? *std::move(loaded) : ModelContract{};
}

Error error_of(const ModelContract& model) {
  const auto plan = compile_model(model, kPicture, {1});
  EXPECT_FALSE(plan);
  return plan ? Error{} : plan.error();
}

TEST(CompileModel, TheShippedNetworkBecomesAPlanForThePicturesOfACamera) {
  for (const char* size : {"full", "lite"}) {
    const auto model = load_model(std::string(TAKT_SOURCE_DIR "/configs/models/sim_camera_") + size + ".yaml");
    ASSERT_TRUE(model) << model.error().message;
    const auto plan = compile_model(*model, kPicture, {1, 2});
    ASSERT_TRUE(plan) << plan.error().message;
    const plan::Description& d = (*plan)->description();
    ASSERT_EQ(d.inputs.size(), 1U);
    EXPECT_EQ(d.tensors[d.inputs[0]].bytes, picture_bytes(kPicture));
    EXPECT_EQ(d.tensors[d.inputs[0]].dtype, kernels::DType::kU8);
    EXPECT_EQ(d.parts, (std::vector<std::uint16_t>{1, 2}));
    // Values whose quotients need rounding, so that a second derivation would show.
    ModelContract odd = *model;
    odd.input.scale = 1.0 / 255;
    odd.input.mean = {0.485, 0.456, 0.406};
    odd.input.std = {0.229, 0.224, 0.225};
    for (const ModelContract& any : {*model, odd}) {
      const auto made = compile_model(any, kPicture, {1});
      ASSERT_TRUE(made) << made.error().message;
      const std::vector<std::byte>& first = (*made)->description().steps[0].params;
      const kernels::Preprocess expected = preprocess_of(any.input, kPicture);
      ASSERT_EQ(first.size(), sizeof expected);
      EXPECT_EQ(std::memcmp(first.data(), &expected, sizeof expected), 0) << size;
    }
    EXPECT_LT(d.statistics.operators_after, d.statistics.operators_before);
    // The goal of the design: within 1 % of what any placement needs.
    EXPECT_LE(static_cast<double>(d.arena_bytes), 1.01 * static_cast<double>(d.lower_bound));
    const auto again = compile_model(*model, kPicture, {1, 2});
    ASSERT_TRUE(again);
    EXPECT_EQ((*again)->digest(), (*plan)->digest()) << "equal inputs, equal bytes";
  }
}

TEST(CompileModel, AClassTooManyIsNamedWithBothShapes) {
  ModelContract model = contract();
  model.classes.push_back({"lorry", ObjectClass::kVehicle});
  const Error error = error_of(model);
  EXPECT_EQ(error.code, Code::kConfiguration);
  EXPECT_THAT(error.message, HasSubstr("tensor 'heatmap': expected f32[1,3,"));
  EXPECT_THAT(error.message, HasSubstr("found f32[1,2,"));
}

TEST(CompileModel, AnotherStrideIsNamedWithBothShapes) {
  ModelContract model = contract();
  auto& centre = std::get<CentreHead>(model.head.form);
  centre.stride *= 2;
  EXPECT_THAT(error_of(model).message, HasSubstr("expected f32[1,2,"));
}

TEST(CompileModel, TensorsThatAreNotThereAreNamed) {
  ModelContract model = contract();
  std::get<CentreHead>(model.head.form).box = "boxes";
  EXPECT_THAT(error_of(model).message, HasSubstr("no output 'boxes'"));
  model = contract();
  model.input.tensor = "picture";
  EXPECT_THAT(error_of(model).message, HasSubstr("picture"));
}

TEST(CompileModel, AFileThatIsNoModelIsRefused) {
  ModelContract model = contract();
  model.file = TAKT_SOURCE_DIR "/configs/models/sim_camera_full.yaml";
  EXPECT_EQ(error_of(model).code, Code::kConfiguration) << "by its hash";
  EXPECT_THAT(error_of(model).message, HasSubstr("expected hash"));
}

}  // namespace
}  // namespace takt::pipeline
