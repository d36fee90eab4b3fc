// A strict view of a YAML file: unknown, missing, mistyped and out-of-range values are all collected and reported
// at once as "file:line:column: message". Only load() and parse() need yaml-cpp; a board reads bundles instead.
//
//   TAKT_ASSIGN(auto document, YamlDocument::load(path));
//   YamlNode root = document.root();
//   config.rate = root.at("rate_hz").integer(1, 1000);   // an error is recorded, a default returned
//   if (auto node = root.find("drift_ppm")) config.drift = node->number(0, 1000);
//   TAKT_RETURN_IF_ERROR(document.finish());             // every error of the file, or none
//
// Keys that nobody asked for are errors. Two readers may read different keys of one mapping.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace takt {

class YamlNode;
struct YamlTree;  // yaml_tree.h

class YamlDocument {
 public:
  // kConfiguration when the file is unreadable, empty or no YAML; the message has line and column.
  static Result<YamlDocument> load(const std::string& path);
  static Result<YamlDocument> parse(const std::string& text, const std::string& name);
  // Of what was read elsewhere; links no parser.
  static YamlDocument of(const std::string& name, YamlTree root);

  [[nodiscard]] YamlNode root() const;
  // kConfiguration with one line per error, unknown keys included; at most 20 lines.
  [[nodiscard]] Status finish() const;

  struct Impl;

 private:
  explicit YamlDocument(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// One node. Cheap to copy; keeps its document alive. A node that is missing reads as defaults without further errors.
class YamlNode {
 public:
  [[nodiscard]] YamlNode at(const std::string& key) const;                      // required key of a mapping
  [[nodiscard]] std::optional<YamlNode> find(const std::string& key) const;     // optional key of a mapping
  [[nodiscard]] std::vector<YamlNode> items() const;                            // a sequence
  [[nodiscard]] std::vector<std::pair<std::string, YamlNode>> entries() const;  // a mapping with free keys

  [[nodiscard]] std::string text() const;  // a non-empty scalar
  [[nodiscard]] std::string one_of(const std::vector<std::string>& words) const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::int64_t integer(std::int64_t min, std::int64_t max) const;
  [[nodiscard]] double number(double min, double max) const;  // NaN and infinities are refused
  [[nodiscard]] std::vector<double> numbers(std::size_t count, double min, double max) const;
  // Scalars with their unit in the key (x_ms, x_us): converted to whole nanoseconds, half away from zero.
  [[nodiscard]] Duration milliseconds(double min, double max) const;
  [[nodiscard]] Duration microseconds(double min, double max) const;

  [[nodiscard]] bool is_sequence() const;
  [[nodiscard]] bool is_map() const;
  [[nodiscard]] bool is_scalar() const;
  [[nodiscard]] std::string where() const;       // "file:line:column"
  void error(const std::string& message) const;  // records an error at this node

  struct Impl;
  YamlNode(std::shared_ptr<YamlDocument::Impl> document, std::shared_ptr<Impl> impl)
      : document_(std::move(document)), impl_(std::move(impl)) {}

 private:
  std::shared_ptr<YamlDocument::Impl> document_;
  std::shared_ptr<Impl> impl_;
};

}  // namespace takt
