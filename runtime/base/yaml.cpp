#include "runtime/base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>
#include <set>
#include <sstream>

#include "runtime/base/file.h"
#include "runtime/base/yaml_tree.h"

namespace takt {
namespace {

YamlMark mark_of(const YAML::Mark& mark) { return {mark.line, mark.column}; }

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

// Copies a whole document once. yaml-cpp keeps both of two equal keys silently; a strict reader must not. It also
// accepts aliases that contain themselves, or that double in size at every level: a walk of those would not end.
struct Copying {
  static constexpr int kMaxDepth = 64;
  static constexpr std::size_t kMaxNodes = 100'000;

  YamlDocument::Impl& document;
  std::size_t nodes;

  bool copy(const YAML::Node& node, YamlTree& out, int depth) {
    if (depth > kMaxDepth || ++nodes > kMaxNodes) return false;
    out.mark = mark_of(node.Mark());
    if (node.IsMap()) {
      out.kind = YamlTree::Kind::kMap;
      std::set<std::string> seen;
      for (const auto& pair : node) {
        YamlTree& child = out.children.emplace_back();
        child.named = pair.first.IsScalar();
        child.key = child.named ? pair.first.Scalar() : "?";
        child.key_mark = mark_of(pair.first.Mark());
        if (child.named && !seen.insert(child.key).second) {
          document.add(child.key_mark, "key '" + child.key + "' appears twice");
        }
        if (!copy(pair.second, child, depth + 1)) return false;
      }
    } else if (node.IsSequence()) {
      out.kind = YamlTree::Kind::kSequence;
      for (const auto& item : node) {
        if (!copy(item, out.children.emplace_back(), depth + 1)) return false;
      }
    } else if (node.IsScalar()) {
      out.kind = YamlTree::Kind::kScalar;
      out.text = node.Scalar();
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
  if (const auto control = first_control(text)) {
    return fail(Code::kConfiguration, impl->place(*control) + ": a control character; is this a text file?");
  }
  YAML::Node root;
  try {
    root = YAML::Load(text);
    if (const auto second = second_document(text)) {
      return fail(Code::kConfiguration,
                  impl->place(mark_of(*second)) + ": a second document begins here; give it a file of its own");
    }
  } catch (const YAML::Exception& e) {
    return fail(Code::kConfiguration, impl->place(mark_of(e.mark)) + ": not valid YAML: " + e.msg);
  }
  Copying copying{*impl, 0};
  if (!copying.copy(root, impl->root, 0)) {
    return fail(Code::kConfiguration, name + ":1:1: nested deeper than " + std::to_string(Copying::kMaxDepth) +
                                          " levels or larger than " + std::to_string(Copying::kMaxNodes) +
                                          " values; does an alias refer to itself?");
  }
  if (impl->root.kind != YamlTree::Kind::kMap) {
    return fail(Code::kConfiguration, name + ":1:1: expected a mapping of keys, found " + quoted(impl->root));
  }
  return YamlDocument(std::move(impl));
}

}  // namespace takt
