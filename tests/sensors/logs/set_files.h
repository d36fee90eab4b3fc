// Files of data sets in the exact layouts, in a folder of their own: the licences of the real ones forbid to ship them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

namespace takt::sensors::test {

// Gone with the object.
class Folder {
 public:
  Folder() : root_(std::filesystem::path(testing::TempDir()) / ("takt-data-set-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(root_);
  }
  ~Folder() { std::filesystem::remove_all(root_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  [[nodiscard]] std::string path(const std::string& name = "") const { return (root_ / name).string(); }

 private:
  std::filesystem::path root_;
};

// Little-endian float32 rows, as clouds are stored.
inline std::string rows(std::initializer_list<std::initializer_list<float>> values) {
  std::string out;
  for (const auto& row : values) {
    for (const float v : row) out.append(reinterpret_cast<const char*>(&v), 4);
  }
  return out;
}

// The header that nuScenes writes, field by field, 43 bytes a return. States: dyn_prop, ambig_state, invalid_state.
inline std::string radar_pcd(std::size_t announced, std::initializer_list<std::array<int, 3>> states) {
  std::string out =
      "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\n"
      "FIELDS x y z dyn_prop id rcs vx vy vx_comp vy_comp is_quality_valid ambig_state x_rms y_rms invalid_state pdh0 "
      "vx_rms vy_rms\n"
      "SIZE 4 4 4 1 2 4 4 4 4 4 1 1 1 1 1 1 1 1\nTYPE F F F I I F F F F F I I I I I I I I\n"
      "COUNT 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"
      "WIDTH " +
      std::to_string(announced) + "\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS " + std::to_string(announced) +
      "\nDATA binary\n";
  for (const auto& [dynamic, ambiguity, invalid] : states) {
    out += rows({{3, 4, 0}}) + static_cast<char>(dynamic) + std::string(2, '\0') + rows({{7.5F, 6, 8, 0.5F, 0.25F}}) +
           '\1' + static_cast<char>(ambiguity) + std::string(2, '\1') + static_cast<char>(invalid) +
           std::string(3, '\1');
  }
  return out;
}

}  // namespace takt::sensors::test
