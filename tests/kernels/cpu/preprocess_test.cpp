#include "kernels/reference/preprocess.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/harness.h"

namespace takt::kernels::cpu {
namespace {

TEST(Preprocess, FollowsTheReference) {
  Random random(1);
  for (int i = 0; i < 80; ++i) {
    Preprocess p;
    p.source = static_cast<PixelSource>(i % 5 + 1);
    const bool pairs = p.source == PixelSource::kNv12;
    const int least = pairs || p.source != PixelSource::kBayerRggb8 ? 1 : 2;
    p.source_width = static_cast<std::uint32_t>(random.integer(least, i % 4 == 0 ? 3 : 80) * (pairs ? 2 : 1));
    p.source_height = static_cast<std::uint32_t>(random.integer(pairs ? 1 : 2, 50) * (pairs ? 2 : 1));
    const bool colour = p.source == PixelSource::kRgb8 || p.source == PixelSource::kBgr8;
    p.pitch = p.source_width * (colour ? 3 : 1) + static_cast<std::uint32_t>(random.integer(0, 9));
    p.offset = static_cast<std::uint64_t>(random.integer(0, 70));
    std::uint64_t bytes = p.offset + std::uint64_t{p.pitch} * p.source_height;
    if (pairs) {
      p.chroma_offset = bytes + 3;
      p.chroma_pitch = p.pitch + 4;
      bytes = p.chroma_offset + std::uint64_t{p.chroma_pitch} * (p.source_height / 2);
    }
    p.fit = static_cast<Fit>(random.integer(0, 1));
    p.colour = static_cast<ColourOrder>(random.integer(0, 1));
    p.pad = 114;
    p.width = static_cast<std::uint32_t>(random.integer(1, 300));
    p.height = static_cast<std::uint32_t>(random.integer(1, 60));
    for (int c = 0; c < 3; ++c) {
      p.multiply[c] = 1.0F / static_cast<float>(random.integer(40, 255));
      p.add[c] = random.value();
    }
    const Call call = make_call(KernelId::kPreprocess, p);
    OperandBytes needed;
    ASSERT_EQ(operand_bytes(call.id, &p, Target::kAvx2, &needed), nullptr);
    ASSERT_LE(needed.bytes[0], bytes);
    Bytes image(needed.bytes[0]);  // not a byte more than the kernel says it needs
    for (std::byte& b : image) b = static_cast<std::byte>(random.integer(0, 255));
    Floats y(std::size_t{3} * p.width * p.height);
    reference::preprocess({DType::kU8, Shape{1, {static_cast<std::int64_t>(image.size())}}, image.data()}, p,
                          tensor_of(y, Shape{4, {1, 3, p.height, p.width}}));
    for (const Target target : targets()) expect_run(target, call, {image}, y, "preprocess " + std::to_string(i));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace takt::kernels::cpu
