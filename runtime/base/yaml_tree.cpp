#include "runtime/base/yaml_tree.h"

#include <cmath>
#include <sstream>

#include "runtime/base/suggest.h"

namespace takt {

// A character that no editor shows: where it is, nullopt without one. Tabs and line ends are none. C1 controls are two
// bytes in UTF-8, C2 and 80 to 9F; the next-line sign among them is one that YAML allows.
std::optional<YamlMark> first_control(const std::string& text) {
  YamlMark at;
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

std::string quoted(const YamlTree& node) {
  switch (node.kind) {
    case YamlTree::Kind::kScalar: return "'" + node.text + "'";
    case YamlTree::Kind::kSequence: return "a list";
    case YamlTree::Kind::kMap: return "a mapping";
    case YamlTree::Kind::kNothing: break;
  }
  return "nothing";
}

namespace {

std::string number_text(double value) {
  std::ostringstream out;
  out.precision(12);
  out << value;
  return out.str();
}

// Path of a key for messages: stages[2].rate_hz.
std::string below(const std::string& label, const std::string& key) { return label.empty() ? key : label + "." + key; }

}  // namespace

void YamlDocument::Impl::add(const YamlMark& mark, const std::string& message) const {
  std::vector<std::string>& list = errors[{mark.line, mark.column}];
  const std::string line = place(mark) + ": " + message;
  for (const std::string& known : list) {
    if (known == line) return;
  }
  list.push_back(line);
}

std::string YamlDocument::Impl::place(const YamlMark& mark) const {
  return name + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

YamlDocument::Impl::Visited& YamlDocument::Impl::visit(const YamlNode::Impl& impl) {
  Visited& entry = visited[{impl.node->mark.line, impl.node->mark.column}];
  entry.node = impl.node;
  entry.label = impl.label;
  return entry;
}

YamlNode YamlDocument::root() const {
  return {impl_, std::make_shared<YamlNode::Impl>(YamlNode::Impl{&impl_->root, ""})};
}

YamlDocument YamlDocument::of(const std::string& name, YamlTree root) {
  auto impl = std::make_shared<Impl>();
  impl->name = name;
  impl->root = std::move(root);
  return YamlDocument(std::move(impl));
}

Status YamlDocument::finish() const {
  for (const auto& [position, entry] : impl_->visited) {
    if (entry.all) continue;
    const std::vector<std::string> known(entry.asked.begin(), entry.asked.end());
    for (const YamlTree& child : entry.node->children) {
      if (entry.asked.count(child.key) != 0) continue;
      impl_->add(child.key_mark, "unknown key '" + child.key + "'" + (entry.label.empty() ? "" : " in " + entry.label) +
                                     did_you_mean(child.key, known));
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
  if (is_map()) {
    std::vector<std::string> keys;
    for (const YamlTree& child : impl_->node->children) keys.push_back(child.key);
    const std::string near = nearest_word(key, keys);
    error("missing key '" + key + "'" + (near.empty() ? "" : " (there is '" + near + "')"));
  }
  return {document_, std::make_shared<Impl>(Impl{nullptr, below(impl_->label, key)})};
}

std::optional<YamlNode> YamlNode::find(const std::string& key) const {
  if (impl_->node == nullptr) return std::nullopt;
  if (!is_map()) {
    error("expected a mapping of keys, found " + quoted(*impl_->node));
    return std::nullopt;
  }
  document_->visit(*impl_).asked.insert(key);
  for (const YamlTree& child : impl_->node->children) {
    if (child.key != key || !child.named) continue;
    return YamlNode{document_, std::make_shared<Impl>(Impl{&child, below(impl_->label, key)})};
  }
  return std::nullopt;
}

std::vector<YamlNode> YamlNode::items() const {
  std::vector<YamlNode> out;
  if (impl_->node == nullptr) return out;
  if (!is_sequence()) {
    error("expected a list, found " + quoted(*impl_->node));
    return out;
  }
  for (const YamlTree& item : impl_->node->children) {
    const std::string label = impl_->label + "[" + std::to_string(out.size()) + "]";
    out.emplace_back(document_, std::make_shared<Impl>(Impl{&item, label}));
  }
  return out;
}

std::vector<std::pair<std::string, YamlNode>> YamlNode::entries() const {
  std::vector<std::pair<std::string, YamlNode>> out;
  if (impl_->node == nullptr) return out;
  if (!is_map()) {
    error("expected a mapping of keys, found " + quoted(*impl_->node));
    return out;
  }
  document_->visit(*impl_).all = true;
  for (const YamlTree& child : impl_->node->children) {
    out.emplace_back(child.key,
                     YamlNode{document_, std::make_shared<Impl>(Impl{&child, below(impl_->label, child.key)})});
  }
  return out;
}

std::string YamlNode::text() const {
  if (impl_->node == nullptr) return "";
  if (!is_scalar() || impl_->node->text.empty()) {
    error("expected text, found " + quoted(*impl_->node));
    return "";
  }
  // An escape in quotes could still bring one in.
  if (first_control(impl_->node->text)) {
    error("a control character in a text");
    return "";
  }
  return impl_->node->text;
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
  if (impl_->node == nullptr) return false;
  if (is_scalar()) {
    if (impl_->node->text == "true") return true;
    if (impl_->node->text == "false") return false;
  }
  error("expected true or false, found " + quoted(*impl_->node));
  return false;
}

std::int64_t YamlNode::integer(std::int64_t min, std::int64_t max) const {
  if (impl_->node == nullptr) return min;
  std::int64_t value = 0;
  const std::string raw = is_scalar() ? impl_->node->text : "";
  std::size_t used = 0;
  bool ok = !raw.empty();
  try {
    if (ok) value = std::stoll(raw, &used, 10);
  } catch (const std::exception&) {
    ok = false;
  }
  if (!ok || used != raw.size()) {
    error("expected a whole number, found " + quoted(*impl_->node));
    return min;
  }
  if (value < min || value > max) {
    error(raw + " is out of range; allowed: " + std::to_string(min) + " to " + std::to_string(max));
    return min;
  }
  return value;
}

double YamlNode::number(double min, double max) const {
  if (impl_->node == nullptr) return min;
  double value = 0;
  const std::string raw = is_scalar() ? impl_->node->text : "";
  std::size_t used = 0;
  bool ok = !raw.empty();
  try {
    if (ok) value = std::stod(raw, &used);
  } catch (const std::exception&) {
    ok = false;
  }
  if (!ok || used != raw.size() || !std::isfinite(value)) {
    error("expected a number, found " + quoted(*impl_->node));
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
    if (is_sequence()) {
      error("expected " + std::to_string(count) + " numbers, found " + std::to_string(out.size()));
    }
    out.assign(count, 0.0);
  }
  return out;
}

Duration YamlNode::milliseconds(double min, double max) const { return {std::llround(number(min, max) * 1e6)}; }
Duration YamlNode::microseconds(double min, double max) const { return {std::llround(number(min, max) * 1e3)}; }

bool YamlNode::is_sequence() const { return impl_->node != nullptr && impl_->node->kind == YamlTree::Kind::kSequence; }
bool YamlNode::is_map() const { return impl_->node != nullptr && impl_->node->kind == YamlTree::Kind::kMap; }
bool YamlNode::is_scalar() const { return impl_->node != nullptr && impl_->node->kind == YamlTree::Kind::kScalar; }

std::string YamlNode::where() const {
  return document_->place(impl_->node != nullptr ? impl_->node->mark : YamlMark{-1, -1});
}

void YamlNode::error(const std::string& message) const {
  if (impl_->node == nullptr) return;
  document_->add(impl_->node->mark, (impl_->label.empty() ? "" : impl_->label + ": ") + message);
}

}  // namespace takt
