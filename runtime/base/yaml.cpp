#include "runtime/base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "runtime/base/file.h"
#include "runtime/base/suggest.h"

namespace takt {

struct YamlNode::Impl {
  YAML::Node node;    // undefined when the key is missing
  std::string label;  // path for messages: stages[2].rate_hz
  bool present = true;
};

struct YamlDocument::Impl {
  std::string name;
  YAML::Node root;
  // Ordered by position so that messages read from top to bottom.
  mutable std::map<std::pair<int, int>, std::vector<std::string>> errors;
  // Mappings that were read: position -> keys asked for. A mapping read through entries() accepts every key.
  struct Visited {
    YAML::Node node;
    std::string label;
    std::set<std::string> asked;
    bool all = false;
  };
  std::map<std::pair<int, int>, Visited> visited;

  void add(const YAML::Mark& mark, const std::string& message) const {
    std::vector<std::string>& list = errors[{mark.line, mark.column}];
    const std::string line =
        name + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1) + ": " + message;
    for (const std::string& known : list) {
      if (known == line) return;
    }
    list.push_back(line);
  }
  Visited& visit(const YamlNode::Impl& impl) {
    const YAML::Mark mark = impl.node.Mark();
    Visited& entry = visited[{mark.line, mark.column}];
    entry.node.reset(impl.node);
    entry.label = impl.label;
    return entry;
  }
};

namespace {

std::string quoted(const YAML::Node& node) {
  if (node.IsScalar()) return "'" + node.Scalar() + "'";
  if (node.IsSequence()) return "a list";
  if (node.IsMap()) return "a mapping";
  return "nothing";
}

std::string number_text(double value) {
  std::ostringstream out;
  out.precision(12);
  out << value;
  return out.str();
}

// A character that no editor shows: where it is, nullopt without one. Tabs and line ends are none. C1 controls are two
// bytes in UTF-8, C2 and 80 to 9F; the next-line sign among them is one that YAML allows.
std::optional<YAML::Mark> first_control(const std::string& text) {
  YAML::Mark at;
  at.pos = at.line = at.column = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool control = (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f ||
                         (byte == 0xc2 && next >= 0x80 && next <= 0x9f && next != 0x85);
    if (control) return at;
    if (byte == '\n') {
      ++at.line;
      at.column = 0;
    } else if ((byte & 0xc0) != 0x80) {  // not in the middle of a character
      ++at.column;
    }
  }
  return std::nullopt;
}

// Where the content of a document begins.
class Beginning : public YAML::EventHandler {
 public:
  std::optional<YAML::Mark> mark;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& at, YAML::anchor_t) override { note(at); }
  void OnAlias(const YAML::Mark& at, YAML::anchor_t) override { note(at); }
  void OnScalar(const YAML::Mark& at, const std::string&, YAML::anchor_t, const std::string&) override { note(at); }
  void OnSequenceStart(const YAML::Mark& at, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    note(at);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& at, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    note(at);
  }
  void OnMapEnd() override {}

 private:
  void note(const YAML::Mark& at) {
    if (!mark) mark = at;
  }
};

// yaml-cpp's LoadAll does not end where a file's rest is no document; two are enough to know.
std::optional<YAML::Mark> second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Beginning first, second;
  if (!parser.HandleNextDocument(first) || !parser.HandleNextDocument(second)) return std::nullopt;
  return second.mark;
}

// Walks a whole document once. yaml-cpp keeps both of two equal keys silently; a strict reader must not. It also
// accepts aliases that contain themselves, or that double in size at every level: a walk of those would not end.
struct Examination {
  static constexpr int kMaxDepth = 64;
  static constexpr std::size_t kMaxNodes = 100'000;

  YamlDocument::Impl& document;
  std::size_t nodes;

  bool examine(const YAML::Node& node, int depth) {
    if (depth > kMaxDepth || ++nodes > kMaxNodes) return false;
    if (node.IsMap()) {
      std::set<std::string> seen;
      for (const auto& pair : node) {
        if (pair.first.IsScalar() && !seen.insert(pair.first.Scalar()).second) {
          document.add(pair.first.Mark(), "key '" + pair.first.Scalar() + "' appears twice");
        }
        if (!examine(pair.second, depth + 1)) return false;
      }
    } else if (node.IsSequence()) {
      for (const auto& item : node) {
        if (!examine(item, depth + 1)) return false;
      }
    }
    return true;
  }
};

}  // namespace

Result<YamlDocument> YamlDocument::load(const std::string& path) {
  constexpr std::uint64_t kMostBytes = 16 << 20;  // far above any configuration
  Result<std::string> content = read_file(path, kMostBytes);
  if (!content) return fail(Code::kConfiguration, std::move(content).error().message);
  return parse(*content, path);
}

Result<YamlDocument> YamlDocument::parse(const std::string& text, const std::string& name) {
  auto impl = std::make_shared<Impl>();
  impl->name = name;
  const auto place = [&](const YAML::Mark& mark) {
    return name + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1) + ": ";
  };
  if (const auto control = first_control(text)) {
    return fail(Code::kConfiguration, place(*control) + "a control character; is this a text file?");
  }
  try {
    impl->root = YAML::Load(text);
    if (const auto second = second_document(text)) {
      return fail(Code::kConfiguration, place(*second) + "a second document begins here; give it a file of its own");
    }
  } catch (const YAML::Exception& e) {
    return fail(Code::kConfiguration, place(e.mark) + "not valid YAML: " + e.msg);
  }
  if (!impl->root.IsMap()) {
    return fail(Code::kConfiguration, name + ":1:1: expected a mapping of keys, found " + quoted(impl->root));
  }
  Examination examination{*impl, 0};
  if (!examination.examine(impl->root, 0)) {
    return fail(Code::kConfiguration, name + ":1:1: nested deeper than " + std::to_string(Examination::kMaxDepth) +
                                          " levels or larger than " + std::to_string(Examination::kMaxNodes) +
                                          " values; does an alias refer to itself?");
  }
  return YamlDocument(std::move(impl));
}

YamlNode YamlDocument::root() const {
  auto node = std::make_shared<YamlNode::Impl>();
  node->node.reset(impl_->root);
  return {impl_, node};
}

Status YamlDocument::finish() const {
  for (const auto& [position, entry] : impl_->visited) {
    if (entry.all) continue;
    const std::vector<std::string> known(entry.asked.begin(), entry.asked.end());
    for (const auto& pair : entry.node) {
      const std::string key = pair.first.IsScalar() ? pair.first.Scalar() : "?";
      if (entry.asked.count(key) != 0) continue;
      impl_->add(pair.first.Mark(), "unknown key '" + key + "'" + (entry.label.empty() ? "" : " in " + entry.label) +
                                        did_you_mean(key, known));
    }
  }
  if (impl_->errors.empty()) return {};
  std::string message;
  std::size_t count = 0;
  for (const auto& [position, lines] : impl_->errors) {
    for (const std::string& line : lines) {
      if (++count <= 20) message += (message.empty() ? "" : "\n") + line;
    }
  }
  if (count > 20) message += "\n... and " + std::to_string(count - 20) + " more";
  return fail(Code::kConfiguration, message);
}

YamlNode YamlNode::at(const std::string& key) const {
  if (auto node = find(key)) return *node;
  if (impl_->present && impl_->node.IsMap()) {
    std::vector<std::string> keys;
    for (const auto& pair : impl_->node) keys.push_back(pair.first.Scalar());
    const std::string near = nearest_word(key, keys);
    error("missing key '" + key + "'" + (near.empty() ? "" : " (there is '" + near + "')"));
  }
  auto missing = std::make_shared<Impl>();
  missing->present = false;
  missing->label = impl_->label.empty() ? key : impl_->label + "." + key;
  return {document_, missing};
}

std::optional<YamlNode> YamlNode::find(const std::string& key) const {
  if (!impl_->present) return std::nullopt;
  if (!impl_->node.IsMap()) {
    error("expected a mapping of keys, found " + quoted(impl_->node));
    return std::nullopt;
  }
  document_->visit(*impl_).asked.insert(key);
  for (const auto& pair : impl_->node) {
    if (!pair.first.IsScalar() || pair.first.Scalar() != key) continue;
    auto child = std::make_shared<Impl>();
    child->node.reset(pair.second);
    child->label = impl_->label.empty() ? key : impl_->label + "." + key;
    return YamlNode{document_, child};
  }
  return std::nullopt;
}

std::vector<YamlNode> YamlNode::items() const {
  std::vector<YamlNode> out;
  if (!impl_->present) return out;
  if (!impl_->node.IsSequence()) {
    error("expected a list, found " + quoted(impl_->node));
    return out;
  }
  std::size_t index = 0;
  for (const auto& item : impl_->node) {
    auto child = std::make_shared<Impl>();
    child->node.reset(item);
    child->label = impl_->label + "[" + std::to_string(index++) + "]";
    out.emplace_back(document_, child);
  }
  return out;
}

std::vector<std::pair<std::string, YamlNode>> YamlNode::entries() const {
  std::vector<std::pair<std::string, YamlNode>> out;
  if (!impl_->present) return out;
  if (!impl_->node.IsMap()) {
    error("expected a mapping of keys, found " + quoted(impl_->node));
    return out;
  }
  document_->visit(*impl_).all = true;
  for (const auto& pair : impl_->node) {
    auto child = std::make_shared<Impl>();
    child->node.reset(pair.second);
    const std::string key = pair.first.IsScalar() ? pair.first.Scalar() : "?";
    child->label = impl_->label.empty() ? key : impl_->label + "." + key;
    out.emplace_back(key, YamlNode{document_, child});
  }
  return out;
}

std::string YamlNode::text() const {
  if (!impl_->present) return "";
  if (!impl_->node.IsScalar() || impl_->node.Scalar().empty()) {
    error("expected text, found " + quoted(impl_->node));
    return "";
  }
  // An escape in quotes could still bring one in.
  if (first_control(impl_->node.Scalar())) {
    error("a control character in a text");
    return "";
  }
  return impl_->node.Scalar();
}

std::string YamlNode::one_of(const std::vector<std::string>& words) const {
  const std::string value = text();
  if (value.empty()) return words.front();
  for (const std::string& word : words) {
    if (word == value) return value;
  }
  error("unknown value '" + value + "'" + did_you_mean(value, words));
  return words.front();
}

bool YamlNode::boolean() const {
  if (!impl_->present) return false;
  if (impl_->node.IsScalar()) {
    if (impl_->node.Scalar() == "true") return true;
    if (impl_->node.Scalar() == "false") return false;
  }
  error("expected true or false, found " + quoted(impl_->node));
  return false;
}

std::int64_t YamlNode::integer(std::int64_t min, std::int64_t max) const {
  if (!impl_->present) return min;
  std::int64_t value = 0;
  const std::string raw = impl_->node.IsScalar() ? impl_->node.Scalar() : "";
  std::size_t used = 0;
  bool ok = !raw.empty();
  try {
    if (ok) value = std::stoll(raw, &used, 10);
  } catch (const std::exception&) {
    ok = false;
  }
  if (!ok || used != raw.size()) {
    error("expected a whole number, found " + quoted(impl_->node));
    return min;
  }
  if (value < min || value > max) {
    error(raw + " is out of range; allowed: " + std::to_string(min) + " to " + std::to_string(max));
    return min;
  }
  return value;
}

double YamlNode::number(double min, double max) const {
  if (!impl_->present) return min;
  double value = 0;
  const std::string raw = impl_->node.IsScalar() ? impl_->node.Scalar() : "";
  std::size_t used = 0;
  bool ok = !raw.empty();
  try {
    if (ok) value = std::stod(raw, &used);
  } catch (const std::exception&) {
    ok = false;
  }
  if (!ok || used != raw.size() || !std::isfinite(value)) {
    error("expected a number, found " + quoted(impl_->node));
    return min;
  }
  if (value < min || value > max) {
    error(raw + " is out of range; allowed: " + number_text(min) + " to " + number_text(max));
    return min;
  }
  return value;
}

std::vector<double> YamlNode::numbers(std::size_t count, double min, double max) const {
  std::vector<double> out;
  for (const YamlNode& item : items()) out.push_back(item.number(min, max));
  if (out.size() != count) {
    if (impl_->present && is_sequence()) {
      error("expected " + std::to_string(count) + " numbers, found " + std::to_string(out.size()));
    }
    out.assign(count, 0.0);
  }
  return out;
}

Duration YamlNode::milliseconds(double min, double max) const { return {std::llround(number(min, max) * 1e6)}; }
Duration YamlNode::microseconds(double min, double max) const { return {std::llround(number(min, max) * 1e3)}; }

bool YamlNode::is_sequence() const { return impl_->present && impl_->node.IsSequence(); }
bool YamlNode::is_map() const { return impl_->present && impl_->node.IsMap(); }
bool YamlNode::is_scalar() const { return impl_->present && impl_->node.IsScalar(); }

std::string YamlNode::where() const {
  const YAML::Mark mark = impl_->present ? impl_->node.Mark() : YAML::Mark::null_mark();
  return document_->name + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

void YamlNode::error(const std::string& message) const {
  if (!impl_->present) return;
  document_->add(impl_->node.Mark(), (impl_->label.empty() ? "" : impl_->label + ": ") + message);
}

}  // namespace takt
