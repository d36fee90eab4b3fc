#include "runtime/base/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstring>

namespace takt {
namespace {

using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// As numpy.save writes numpy.arange(6, dtype='<f4').reshape(2, 3).
std::string saved_by_numpy(const std::string& header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }") {
  std::string file("\x93NUMPY\x01\x00", 8);
  std::string padded = header;
  padded.resize(117, ' ');
  padded += '\n';
  file += static_cast<char>(118);
  file += '\0';
  file += padded;
  for (int i = 0; i < 6; ++i) {
    const auto value = static_cast<float>(i);
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return file;
}

TEST(Npy, ReadsWhatNumpyWrites) {
  const auto array = parse_npy(bytes_of(saved_by_numpy()));
  ASSERT_TRUE(array) << array.error().message;
  EXPECT_EQ(array->type, "<f4");
  EXPECT_EQ(array->shape, (std::vector<std::int64_t>{2, 3}));
  float last = 0;
  std::memcpy(&last, array->bytes.data() + 20, sizeof last);
  EXPECT_EQ(last, 5.0F);
}

TEST(Npy, ComesBackAsItWasWritten) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{}, {7}, {2, 0, 3}, {1, 2, 3, 4, 1, 1, 1, 1}}) {
    NpyArray array{"<i8", shape, {}};
    std::size_t bytes = 8;
    for (const std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
    for (std::size_t i = 0; i < bytes; ++i) array.bytes.push_back(static_cast<std::byte>(i));
    const std::string file = npy_bytes(array);
    EXPECT_EQ((file.size() - bytes) % 64, 0U);
    const auto back = parse_npy(bytes_of(file));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->type, array.type);
    EXPECT_EQ(back->shape, array.shape);
    EXPECT_EQ(back->bytes, array.bytes);
  }
}

TEST(Npy, EveryElementTypeComesBack) {
  EXPECT_EQ(npy_types().size(), 12U) << "all of takt's but bf16";
  for (const NpyType& type : npy_types()) {
    EXPECT_EQ(type.size, static_cast<std::size_t>(type.npy[2] - '0')) << type.npy;
    NpyArray array{std::string(type.npy), {3}, {}};
    for (std::size_t i = 0; i < 3 * type.size; ++i) array.bytes.push_back(static_cast<std::byte>(i));
    const auto back = parse_npy(bytes_of(npy_bytes(array)));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->type, type.npy);
    EXPECT_EQ(back->bytes, array.bytes);
  }
}

TEST(Npy, DamageIsNamed) {
  const std::string good = saved_by_numpy();
  const auto message = [](const std::string& file) {
    const auto array = parse_npy(bytes_of(file));
    EXPECT_FALSE(array);
    return array ? std::string() : array.error().message;
  };
  EXPECT_THAT(message(""), HasSubstr("byte 0: is no .npy file"));
  EXPECT_THAT(message(good.substr(0, 9)), HasSubstr("byte 9: ends inside the head"));
  EXPECT_THAT(message(good.substr(0, 50)), HasSubstr("the header leaves the file"));
  EXPECT_THAT(message(good.substr(0, good.size() - 1)), HasSubstr("23 bytes follow, the shape says 24"));
  EXPECT_THAT(message(good + "x"), HasSubstr("25 bytes follow"));
  std::string version = good;
  version[6] = 9;
  EXPECT_THAT(message(version), HasSubstr("version 9"));
  EXPECT_THAT(message(saved_by_numpy("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }")),
              HasSubstr("'>f4' is not supported"));
  EXPECT_THAT(message(saved_by_numpy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }")),
              HasSubstr("row-major"));
  EXPECT_THAT(message(saved_by_numpy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }")),
              HasSubstr("shape cannot be read"));
  EXPECT_THAT(message(saved_by_numpy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }")),
              HasSubstr("too large"));
  EXPECT_THAT(message(saved_by_numpy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3")), HasSubstr("byte"));
  EXPECT_THAT(message(saved_by_numpy("{'fortran_order': False, 'shape': (2, 3), }")), HasSubstr("no 'descr'"));
}

}  // namespace
}  // namespace takt
