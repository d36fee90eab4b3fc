// Hand-made MCAP bytes: files that the writer would never write.
#pragma once

#include <gtest/gtest.h>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace takt::test {

inline const std::string kMagic("\x89MCAP0\r\n", 8);

template <class T>
std::string le(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string text(const std::string& s) { return le<std::uint32_t>(static_cast<std::uint32_t>(s.size())) + s; }
inline std::string record(int op, const std::string& content) {
  return std::string(1, static_cast<char>(op)) + le<std::uint64_t>(content.size()) + content;
}
inline std::string header() { return record(0x01, text("") + text("by hand")); }
inline std::string schema(std::uint16_t id, const std::string& name) {
  return record(0x03, le(id) + text(name) + text("") + text(""));
}
inline std::string channel(std::uint16_t id, std::uint16_t schema, const std::string& topic) {
  return record(0x04, le(id) + le(schema) + text(topic) + text("json") + text(""));
}
inline std::string message(std::uint16_t channel, std::uint64_t log_time, std::uint64_t publish_time,
                           const std::string& data) {
  return record(0x05, le(channel) + le<std::uint32_t>(0) + le(log_time) + le(publish_time) + data);
}
inline std::string chunk(const std::string& compression, std::uint64_t unpacked, const std::string& data,
                         std::uint32_t crc = 0) {
  return record(0x06, le<std::uint64_t>(0) + le<std::uint64_t>(0) + le(unpacked) + le(crc) + text(compression) +
                          le<std::uint64_t>(data.size()) + data);
}
inline std::string data_end() { return record(0x0F, le<std::uint32_t>(0)); }
inline std::string footer() {
  return record(0x02, le<std::uint64_t>(0) + le<std::uint64_t>(0) + le<std::uint32_t>(0)) + kMagic;
}

// A folder of this process's own, removed at its end.
inline const std::string& temporary_folder() {
  struct Folder {
    Folder() {
      std::string name = ::testing::TempDir() + "takt-logs-XXXXXX";
      if (::mkdtemp(name.data()) != nullptr) path = name;
    }
    ~Folder() { std::filesystem::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string path;
  };
  static const Folder folder;
  return folder.path;
}
inline std::string temporary(const std::string& name) { return temporary_folder() + "/" + name; }
inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);  // truncating a file makes some file systems wait for the disk
  std::ofstream(path, std::ios::binary) << bytes;
}
inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace takt::test
