// Writes the seed files of the targets mcap and sensor_message: make_log_corpus tests/fuzz/corpus
// Run again after a change of the formats and check the files in.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <jpeglib.h>
#include <png.h>

#include "pipeline/messages/encode.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/mcap_writer.h"

using namespace takt;
using namespace takt::sensors;

namespace {

void save(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

bool write_mcap(const std::string& path, Compression compression) {
  auto writer = McapWriter::create(path, {compression, 200});
  if (!writer) return false;
  const auto schema = writer->add_schema({"test.Text", "json", "{}"});
  const auto a = writer->add_channel("/a", "json", *schema), b = writer->add_channel("/b", "json", 0, {{"k", "v"}});
  for (int i = 0; i < 12; ++i) {
    const std::string text = "{\"n\": " + std::string(20, static_cast<char>('0' + i % 10)) + "}";
    if (!writer->write(i % 3 == 0 ? *b : *a, {1000 + 10 * (i ^ 1)}, {900 + i}, 0, text)) return false;
  }
  return writer->add_attachment("a.txt", "text/plain", {5}, "attached").has_value() &&
         writer->add_metadata("takt", {{"k", "v"}}).has_value() && writer->finish().has_value();
}

std::string tiny_jpeg() {
  jpeg_compress_struct c{};
  jpeg_error_mgr errors{};
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&c, &out, &size);
  c.image_width = c.image_height = 16;
  c.input_components = 3;
  c.in_color_space = JCS_RGB;
  jpeg_set_defaults(&c);
  jpeg_start_compress(&c, TRUE);
  std::vector<unsigned char> line(48);
  while (c.next_scanline < 16) {
    for (std::size_t i = 0; i < line.size(); ++i) line[i] = static_cast<unsigned char>(i * 5 + c.next_scanline * 3);
    JSAMPROW row = line.data();
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  std::string bytes(reinterpret_cast<char*>(out), size);
  std::free(out);
  return bytes;
}

std::string tiny_png() {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.format = PNG_FORMAT_RGB;
  image.width = image.height = 16;
  std::vector<unsigned char> pixels(16 * 16 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<unsigned char>(i);
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  std::string bytes(size, '\0');
  png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_log_corpus FOLDER\n");
    return 2;
  }
  const std::string root = argv[1];
  std::filesystem::create_directories(root + "/mcap");
  std::filesystem::create_directories(root + "/sensor_message");
  if (!write_mcap(root + "/mcap/plain.mcap", Compression::kNone) ||
      !write_mcap(root + "/mcap/lz4.mcap", Compression::kLz4) ||
      !write_mcap(root + "/mcap/zstd.mcap", Compression::kZstd)) {
    return 1;
  }

  const auto message = [&](int target, const char* name, const std::string& bytes) {
    save(root + "/sensor_message/" + name, std::string(1, static_cast<char>(target)) + bytes);
  };
  const SensorTime stamp{1'700'000'000'000'000'000};
  message(0, "cloud",
          encode_lidar(stamp, "lidar", std::vector<log::LidarPoint>{{1, 2, 3, 0.5F, 6, 7}, {}, {4, 5, 6, 1, 8, 9}}));
  message(1, "radar", encode_radar(stamp, "radar", std::vector<RadarReturn>{{1, 2, 3, -4, 5}, {6, 7, 8, 9, 10}}));
  for (const auto& [name, data] : {std::pair{"jpeg", tiny_jpeg()}, {"png", tiny_png()}}) {
    message(2, name, encode(log::CompressedImage{stamp, "camera", name, std::as_bytes(std::span(data))}));
  }
  const log::Pose pose{{1, 2, 3}, {1, 0, 0, 0}};
  message(3, "ego", encode(log::EgoMotion{stamp, "map", "base", pose, {1, 2, 3}, {4, 5, 6}}));
  message(4, "truth", encode(log::Truth{stamp, "base", {{1, 2, pose, {1, 2, 3}, {4, 5, 6}, 7}}}));
  message(5, "transforms", encode(std::vector<log::FrameTransform>{{stamp, "map", "base", pose}}));
  message(6, "calibration", encode(log::CameraCalibration{stamp, "camera", 16, 16, 10, 10, 8, 8, {}}));
  auto objects = std::make_unique<pipeline::ObjectList>();
  objects->count = 2;
  objects->objects[0].x = 1;
  objects->objects[1].flags = pipeline::kHasBox;
  message(7, "objects", encode(*objects));
  auto tracks = std::make_unique<pipeline::TrackList>();
  tracks->count = 1;
  tracks->tracks[0].id = 7;
  message(8, "tracks", encode(*tracks));
  return 0;
}
