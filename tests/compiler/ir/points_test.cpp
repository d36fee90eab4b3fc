// Operators on points, pillars and boxes that do not fit what they are given are refused in words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>

#include "compiler/ir/operators.h"

namespace takt::ir {
namespace {

using ::testing::HasSubstr;
using Attributes = std::map<std::string, Attribute>;
using Floats = std::vector<float>;

const Type kPoints{DType::kF32, {2, {100, 5}}};
const Type kCells{DType::kI64, {1, {30}}}, kEnds{DType::kI32, {1, {30}}}, kMembers{DType::kI32, {1, {100}}};
const Floats kRange{-4, -4, -2, 4, 4, 2}, kSize{0.5F, 0.5F, 4};

Type map(std::int64_t channels, std::int64_t columns = 8) { return {DType::kF32, {4, {1, channels, 8, columns}}}; }

// What append() says; "" when it takes the node.
std::string refusal(const std::string& op, const std::vector<Type>& inputs, Attributes attributes) {
  Graph graph;
  Node node;
  node.op = op;
  node.name = "it";
  for (const Type& type : inputs) node.inputs.push_back(graph.add_value("x", type));
  node.outputs.push_back(graph.add_value("y"));
  node.attributes = std::move(attributes);
  const Status status = append(graph, std::move(node));
  return status ? "" : status.error().message;
}

TEST(PointOperators, TakeWhatFits) {
  EXPECT_EQ(refusal("takt.Cloud", {{DType::kU8, {1, {4000}}}}, {{"capacity", std::int64_t{100}}}), "");
  EXPECT_EQ(refusal("takt.Deskew", {kPoints, {DType::kF64, {2, {3, 8}}}, {DType::kF64, {2, {3, 4}}}}, {}), "");
  EXPECT_EQ(refusal("takt.Crop", {kPoints}, {{"range", kRange}}), "");
  EXPECT_EQ(refusal("takt.PillarFeatures", {kPoints, kCells, kEnds, kMembers},
                    {{"range", kRange}, {"size", kSize}, {"points", std::int64_t{4}}}),
            "");
  EXPECT_EQ(refusal("takt.TopKDecode", {map(3), map(2), map(1), map(3), map(2)},
                    {{"capacity", std::int64_t{9}}, {"origin", Floats{0, 0}}, {"cell", Floats{1, 1}}}),
            "");
}

TEST(PointOperators, SayWhatDoesNotFit) {
  EXPECT_THAT(refusal("takt.Cloud", {{DType::kU8, {1, {900}}}}, {{"capacity", std::int64_t{100}}}),
              HasSubstr("node it (takt.Cloud): a payload of u8[900] does not hold 100 points; expected at least 2304"));
  EXPECT_THAT(refusal("takt.Cloud", {{DType::kU8, {1, {900}}}}, {}), HasSubstr("the capacity is out of range"));
  EXPECT_THAT(refusal("takt.Deskew", {kPoints, {DType::kF64, {2, {3, 7}}}, {DType::kF64, {2, {3, 4}}}}, {}),
              HasSubstr("input 1 is f64[3,7]; expected f64[n,8]"));
  EXPECT_THAT(refusal("takt.Crop", {{DType::kF32, {2, {100, 4}}}}, {{"range", kRange}}),
              HasSubstr("input 0 is f32[100,4]; expected f32[n,5]"));
  EXPECT_THAT(refusal("takt.Crop", {kPoints}, {{"range", kSize}}),
              HasSubstr("attribute range has 3 numbers, expected 6"));
  EXPECT_THAT(refusal("takt.Crop", {kPoints}, {{"range", Floats{-4, -4, -2, 4, 4, INFINITY}}}),
              HasSubstr("a limit is not finite"));
  EXPECT_THAT(refusal("takt.Crop", {kPoints}, {{"range", Floats{-4, 4, -2, 4, -4, 2}}}),
              HasSubstr("range is empty: least is not below most"));
  EXPECT_THAT(refusal("takt.Crop", {kPoints}, {{"range", kRange}, {"ego", Floats{1, -1, -1, -1, 1, 1}}}),
              HasSubstr("ego is turned round"));
  EXPECT_THAT(refusal("takt.Crop", {kPoints}, {{"range", kRange}, {"distance", Floats{50, 1}}}),
              HasSubstr("distance is empty"));
  EXPECT_THAT(refusal("takt.Sweeps",
                      {kPoints,
                       {DType::kI64, {1, {1}}},
                       {DType::kF64, {1, {7}}},
                       {DType::kF32, {3, {2, 99, 4}}},
                       {DType::kI64, {2, {2, 2}}},
                       {DType::kF64, {2, {2, 7}}}},
                      {}),
              HasSubstr("input 3 is f32[2,99,4]; expected f32[n,100,4]"));
  EXPECT_THAT(refusal("takt.PillarFeatures", {kPoints, kCells, kMembers, kMembers}, {}),
              HasSubstr("input 2 is i32[100]; expected i32[30]"));
  EXPECT_THAT(refusal("takt.PillarFeatures", {kPoints, kCells, kEnds, kMembers}, {{"range", kRange}, {"size", kSize}}),
              HasSubstr("the points of a pillar are out of range"));
  EXPECT_THAT(refusal("takt.PillarEncode",
                      {kPoints, kCells, kEnds, kMembers, {DType::kF32, {2, {9, 16}}}, {DType::kF32, {1, {16}}}},
                      {{"range", kRange}, {"size", kSize}, {"points", std::int64_t{4}}}),
              HasSubstr("input 4 is f32[9,16]; expected f32[10,n]"));
  EXPECT_THAT(refusal("takt.TopKDecode", {map(3), map(2), map(1), map(3, 9), map(2)}, {}),
              HasSubstr("input 3 is f32[1,3,8,9]; expected f32[1,3,8,8]"));
  EXPECT_THAT(refusal("takt.TopKDecode", {map(3), map(2), map(1), map(3), map(2)}, {{"score", 1.0F}}),
              HasSubstr("attribute score is not between 0 and 1"));
  EXPECT_THAT(refusal("takt.TopKDecode", {map(17), map(2), map(1), map(3), map(2)},
                      {{"capacity", std::int64_t{9}}, {"origin", Floats{0, 0}}, {"cell", Floats{1, 1}}}),
              HasSubstr("the number of classes is out of range"));
  for (const Floats& cell : {Floats{0, 1}, Floats{1, -1}, Floats{NAN, 1}, Floats{1, INFINITY}}) {
    EXPECT_THAT(refusal("takt.TopKDecode", {map(3), map(2), map(1), map(3), map(2)},
                        {{"capacity", std::int64_t{9}}, {"origin", Floats{0, 0}}, {"cell", cell}}),
                HasSubstr("cell is not above zero and finite"));
  }
  const std::vector<Type> boxes{{DType::kF32, {2, {9, 9}}}, {DType::kF32, {1, {9}}}, {DType::kI32, {1, {9}}}};
  EXPECT_THAT(refusal("takt.CircleNms", boxes, {}), HasSubstr("attribute limit is missing"));
  EXPECT_THAT(refusal("takt.RotatedNms", {boxes[0], boxes[1], {DType::kI32, {1, {8}}}}, {{"limit", Floats{1}}}),
              HasSubstr("input 2 is i32[8]; expected i32[9]"));
  EXPECT_THAT(refusal("takt.AxisAlignedNms", boxes, {{"limit", Floats(17, 1)}}),
              HasSubstr("more numbers than there may be classes"));
  EXPECT_THAT(refusal("takt.CircleNms", boxes, {{"limit", Floats{2, -1}}}),
              HasSubstr("limit is negative or not finite"));
  EXPECT_THAT(refusal("takt.RotatedNms", boxes, {{"limit", Floats{1.5F}}}), HasSubstr("is above 1"));
  EXPECT_THAT(refusal("takt.CircleNms", boxes, {{"limit", Floats{2}}, {"most", std::int64_t{-1}}}),
              HasSubstr("most is not above zero"));
  EXPECT_THAT(refusal("takt.CircleNms", boxes, {{"limit", Floats{2}}, {"agnostic", std::int64_t{7}}}),
              HasSubstr("agnostic is neither 0 nor 1"));
}

}  // namespace
}  // namespace takt::ir
