#include "pipeline/models/detection_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "pipeline/models/contract_file.h"
#include "runtime/base/file.h"
#include "runtime/memory/alloc_guard.h"
#include "tests/support/test_data.h"

namespace takt::pipeline {
namespace {

using kernels::DType;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// 8 columns and 6 rows of 8 pixels, two classes.
struct Centre {
  static constexpr std::size_t kColumns = 8, kRows = 6, kCells = kColumns * kRows;
  ModelContract contract;
  std::vector<NamedTensor> outputs{{"box", DType::kF32, {4, {1, 4, 6, 8}}}, {"heat", DType::kF32, {4, {1, 2, 6, 8}}}};
  std::vector<float> heat = std::vector<float>(2 * kCells, 0), box = std::vector<float>(4 * kCells, 1);

  Centre() {
    contract.contract_file = "street.yaml";
    contract.input.tensor = "image";
    contract.input.width = 64;
    contract.input.height = 48;
    contract.head.form = CentreHead{"heat", "box", 8};
    contract.head.score_min = 0.4F;
    contract.head.nms_iou = 0.5F;
    contract.head.objects_max = 4;
    contract.classes = {{"car", ObjectClass::kVehicle}, {"person", ObjectClass::kPedestrian}};
  }
  void set(std::size_t channel, std::size_t row, std::size_t column, float score) {
    heat[channel * kCells + row * kColumns + column] = score;
  }
  void edges(std::size_t row, std::size_t column, std::array<float, 4> distances) {
    for (std::size_t i = 0; i < 4; ++i) box[i * kCells + row * kColumns + column] = distances[i];
  }
  std::vector<ImageBox> decode(std::uint32_t width = 64, std::uint32_t height = 48) {
    auto head = DetectionHead::create(contract, outputs, width, height);
    EXPECT_TRUE(head) << head.error().message;
    EXPECT_EQ(head->wanted(), (std::vector<std::size_t>{1, 0}));
    const float* tensors[] = {heat.data(), box.data()};
    last = head->decode(tensors);
    return {last.kept.begin(), last.kept.end()};
  }
  DetectionHead::Boxes last;
};

TEST(CentreHead, BoxIsDistancesFromTheCentreOfTheCell) {
  Centre c;
  c.set(1, 2, 3, 0.75F);
  c.edges(2, 3, {1, 0.5F, 2, 1.5F});
  const auto boxes = c.decode();
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_EQ(boxes[0].channel, 1U);
  EXPECT_EQ(boxes[0].score, 0.75F);
  EXPECT_FLOAT_EQ(boxes[0].u0, (3.5F - 1) * 8);
  EXPECT_FLOAT_EQ(boxes[0].v0, (2.5F - 0.5F) * 8);
  EXPECT_FLOAT_EQ(boxes[0].u1, (3.5F + 2) * 8);
  EXPECT_FLOAT_EQ(boxes[0].v1, (2.5F + 1.5F) * 8);
}

TEST(CentreHead, OnlyThePeakOfANeighbourhoodCountsAndTheFirstOfEqualOnes) {
  Centre c;
  c.set(0, 1, 1, 0.9F);
  c.set(0, 1, 2, 0.8F);  // beside a hotter one
  c.set(0, 4, 5, 0.6F);
  c.set(0, 4, 6, 0.6F);   // beside an equal one that comes earlier
  c.set(0, 5, 4, 0.6F);   // diagonal to it
  c.set(0, 0, 7, 0.39F);  // below score_min
  const auto boxes = c.decode();
  ASSERT_EQ(boxes.size(), 2U);
  EXPECT_EQ(c.last.candidates, 2U);
  EXPECT_FLOAT_EQ(boxes[0].u0, 4);
  EXPECT_FLOAT_EQ(boxes[1].u0, 36);
  EXPECT_FLOAT_EQ(boxes[1].v0, 28);
}

TEST(CentreHead, SuppressionKeepsTheBetterOfOneClassOnly) {
  Centre c;
  c.set(0, 2, 1, 0.7F);
  c.set(0, 2, 3, 0.8F);  // the same object seen from two cells: boxes overlap by more than half
  c.set(1, 2, 5, 0.6F);  // another class in the same place
  c.edges(2, 1, {1, 2, 5, 2});
  c.edges(2, 3, {3, 2, 3, 2});
  c.edges(2, 5, {5, 2, 1, 2});
  auto boxes = c.decode();
  ASSERT_EQ(boxes.size(), 2U);
  EXPECT_EQ(boxes[0].score, 0.8F);
  EXPECT_EQ(boxes[1].channel, 1U);
  c.contract.classes[1].meaning = ObjectClass::kVehicle;  // "lorry": the same thing in takt's taxonomy
  EXPECT_EQ(c.decode().size(), 1U);
  c.contract.classes[0].meaning.reset();
  c.contract.classes[1].meaning.reset();
  EXPECT_TRUE(c.decode().empty());
}

TEST(CentreHead, CapacityKeepsTheBestAndCountsTheRest) {
  Centre c;
  // 12 separate small boxes, scores rising with the cell.
  float score = 0.5F;
  for (std::size_t row = 0; row < 6; row += 2) {
    for (std::size_t column = 0; column < 8; column += 2) {
      c.set(0, row, column, score += 0.01F);
      c.edges(row, column, {0.4F, 0.4F, 0.4F, 0.4F});
    }
  }
  const auto boxes = c.decode();
  ASSERT_EQ(boxes.size(), 4U);
  EXPECT_FLOAT_EQ(boxes[0].score, score);
  EXPECT_EQ(c.last.candidates, 12U);
  EXPECT_EQ(c.last.dropped, 8U);
}

TEST(CentreHead, NansAndEmptyBoxesAreNoObjects) {
  Centre c;
  c.set(0, 1, 1, kNan);
  c.set(0, 1, 4, 0.9F);
  c.edges(1, 4, {kNan, 1, 1, 1});
  c.set(0, 4, 1, 0.8F);
  c.edges(4, 1, {-1, 1, 0.5F, 1});  // left edge right of the right one
  c.set(0, 4, 4, 0.7F);
  c.edges(4, 4, {100, 1, -90, 1});  // far outside the picture
  c.set(1, 4, 6, 0.6F);
  c.set(1, 4, 7, kNan);  // a neighbour that is no number hides nothing
  c.set(1, 1, 6, std::numeric_limits<float>::infinity());
  const auto boxes = c.decode();
  ASSERT_EQ(boxes.size(), 2U);
  EXPECT_EQ(boxes[0].score, 1.0F);
  EXPECT_EQ(boxes[1].score, 0.6F);
}

TEST(CentreHead, MapsBackToThePictureAndCutsAtItsBorder) {
  Centre c;
  c.set(0, 2, 3, 0.75F);
  c.edges(2, 3, {1, 1, 1, 100});
  auto boxes = c.decode(128, 192);  // plain: x times 2, y times 4
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_FLOAT_EQ(boxes[0].u0, 2.5F * 8 * 2);
  EXPECT_FLOAT_EQ(boxes[0].v0, 1.5F * 8 * 4);
  EXPECT_FLOAT_EQ(boxes[0].v1, 192);
  // Letterbox: 128 x 64 becomes 64 x 32 with 8 rows of padding above.
  c.contract.input.fit = kernels::Fit::kLetterbox;
  boxes = c.decode(128, 64);
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_FLOAT_EQ(boxes[0].u0, 2.5F * 8 * 2);
  EXPECT_FLOAT_EQ(boxes[0].v0, (1.5F * 8 - 8) * 2);
  EXPECT_FLOAT_EQ(boxes[0].v1, 64);
}

TEST(DetectionHead, WrongTensorsAreNamedWithExpectedAndFound) {
  Centre c;
  const auto error = [&] {
    const auto head = DetectionHead::create(c.contract, c.outputs, 64, 48);
    EXPECT_FALSE(head);
    if (head) return std::string();
    EXPECT_EQ(head.error().code, Code::kConfiguration);
    return head.error().message;
  };
  c.contract.classes.push_back({"sign", std::nullopt});
  EXPECT_THAT(error(),
              HasSubstr("street.yaml: tensor 'heat': expected f32[1,3,6,8] (3 classes, input 64x48, stride 8), "
                        "found f32[1,2,6,8]"));
  c.contract.classes.pop_back();
  c.outputs[0].shape.dims[1] = 5;
  EXPECT_THAT(error(), HasSubstr("tensor 'box': expected f32[1,4,6,8]"));
  c.outputs[0] = {"boxes", DType::kF32, {4, {1, 4, 6, 8}}};
  EXPECT_THAT(error(), HasSubstr("no output 'box'; known: boxes, heat"));
  c.outputs[1].dtype = DType::kF16;
  EXPECT_THAT(error(), HasSubstr("found f16[1,2,6,8]"));
  c.contract.head.form = FastestDetHead{"heat"};
  EXPECT_THAT(error(), HasSubstr("expected f32[1,7,6,8] (objectness, four of the box, 2 classes)"));

  std::vector<NamedTensor> inputs{{"image", DType::kF32, {4, {1, 3, 64, 48}}}};
  const auto input = check_input(c.contract, inputs);
  ASSERT_FALSE(input);
  EXPECT_THAT(input.error().message,
              HasSubstr("tensor 'image': expected f32[1,3,48,64] (three colours, 64x48), found f32[1,3,64,48]"));
}

TEST(DetectionHead, DecodingAllocatesNothing) {
  if (!memory::guard_available()) GTEST_SKIP() << "allocations are not counted in this build";
  Centre c;
  for (float& h : c.heat) h = 0.5F;
  for (std::size_t i = 0; i < c.heat.size(); i += 3) c.heat[i] = 0.9F;
  auto head = DetectionHead::create(c.contract, c.outputs, 64, 48);
  ASSERT_TRUE(head);
  const float* tensors[] = {c.heat.data(), c.box.data()};
  const memory::ThreadCounters before = memory::thread_counters();
  const auto boxes = head->decode(tensors);
  EXPECT_EQ((memory::thread_counters() - before).allocations, 0U);
  EXPECT_GT(boxes.kept.size(), 0U);
}

struct Golden {
  std::string name;
  float score, x0, y0, x1, y1;
};

// Output tensors and detections of ONNX Runtime (models/fastestdet/README.md of the recorded data).
void expect_golden(const std::string& folder, const std::string& name) {
  const auto contract = load_model(TAKT_SOURCE_DIR "/configs/models/fastestdet.yaml");
  ASSERT_TRUE(contract) << contract.error().message;
  const NamedTensor output{"758", DType::kF32, {4, {1, 85, 22, 22}}};
  auto head = DetectionHead::create(*contract, {&output, 1}, 352, 352);
  ASSERT_TRUE(head) << head.error().message;
  const auto bytes = read_file(folder + "/golden_" + name + "_output_f32_1x85x22x22.bin");
  ASSERT_TRUE(bytes) << bytes.error().message;
  ASSERT_EQ(bytes->size(), 4U * 85 * 22 * 22);
  std::vector<float> tensor(85 * 22 * 22);
  std::memcpy(tensor.data(), bytes->data(), bytes->size());
  std::vector<Golden> golden;
  std::ifstream csv(folder + "/golden_" + name + "_detections.csv");
  std::string line;
  std::getline(csv, line);
  while (std::getline(csv, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    Golden g;
    std::istringstream(line) >> g.name >> g.score >> g.x0 >> g.y0 >> g.x1 >> g.y1;
    golden.push_back(g);
  }
  ASSERT_GE(golden.size(), 4U);
  const float* tensors[] = {tensor.data()};
  const auto boxes = head->decode(tensors);
  ASSERT_EQ(boxes.kept.size(), golden.size());
  for (std::size_t i = 0; i < golden.size(); ++i) {
    const ImageBox& box = boxes.kept[i];
    const Golden& g = golden[i];
    EXPECT_EQ(contract->classes[box.channel].name, g.name);
    EXPECT_NEAR(box.score, g.score, 1e-5);
    const auto pixel = [](float share) { return std::clamp(share, 0.0F, 1.0F) * 352; };
    EXPECT_NEAR(box.u0, pixel(g.x0), 0.01);
    EXPECT_NEAR(box.v0, pixel(g.y0), 0.01);
    EXPECT_NEAR(box.u1, pixel(g.x1), 0.01);
    EXPECT_NEAR(box.v1, pixel(g.y1), 0.01);
  }
}

TEST(FastestDetHead, FindsTheGoldenObjectsOfTheSamplePicture) {
  TAKT_TEST_DATA_OR_SKIP(folder, "models/fastestdet");
  expect_golden(folder, "3");
}
TEST(FastestDetHead, FindsTheGoldenCarsOfTheKittiPicture) {
  TAKT_TEST_DATA_OR_SKIP(folder, "models/fastestdet");
  expect_golden(folder, "kitti000008");
}

}  // namespace
}  // namespace takt::pipeline
