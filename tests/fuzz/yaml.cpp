// Any bytes as a YAML file: parsing and reading through every accessor ends in a value or in messages with a place,
// never in a crash.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/base/yaml.h"

namespace {

// Depth bounded: the reader does not recurse by itself beyond what the parser accepted.
void read(const takt::YamlNode& node, int depth) {
  if (depth > 16) return;
  if (node.is_map()) {
    (void)node.at("name").text();
    if (auto rate = node.find("rate_hz")) (void)rate->integer(1, 1000);
    if (depth % 2 == 0) {
      for (const auto& [key, child] : node.entries()) read(child, depth + 1);
    }
  } else if (node.is_sequence()) {
    (void)node.numbers(3, -1e9, 1e9);
    for (const takt::YamlNode& child : node.items()) read(child, depth + 1);
  } else {
    (void)node.boolean();
    (void)node.number(-1e300, 1e300);
    (void)node.milliseconds(0, 1e6);
    (void)node.one_of({"camera", "lidar"});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  takt::Result<takt::YamlDocument> document = takt::YamlDocument::parse(text, "fuzz.yaml");
  if (!document) {
    if (document.error().message.rfind("fuzz.yaml:", 0) != 0) std::abort();
    return 0;
  }
  read(document->root(), 0);
  const takt::Status status = document->finish();
  if (!status && status.error().message.rfind("fuzz.yaml:", 0) != 0) std::abort();
  return 0;
}
