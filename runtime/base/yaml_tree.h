// What a YAML document is once it has been read: what yaml.h hands out, without the library that parses. A board makes
// it of a bundle's parameters.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/yaml.h"

namespace takt {

struct YamlMark {
  int line = 0, column = 0;  // from 0
};

struct YamlTree {
  enum class Kind { kNothing, kScalar, kSequence, kMap };
  Kind kind = Kind::kNothing;
  std::string text;                // kScalar
  std::vector<YamlTree> children;  // kSequence, kMap
  YamlMark mark;
  // Of a value in a mapping. A key that is no scalar is "?" and cannot be asked for.
  std::string key;
  bool named = false;
  YamlMark key_mark;
};

struct YamlNode::Impl {
  const YamlTree* node = nullptr;  // nullptr: the key is missing
  std::string label;               // path for messages
};

struct YamlDocument::Impl {
  std::string name;
  YamlTree root;
  // Ordered by position so that messages read from top to bottom.
  mutable std::map<std::pair<int, int>, std::vector<std::string>> errors;
  // Mappings that were read: position -> keys asked for. A mapping read through entries() accepts every key.
  struct Visited {
    const YamlTree* node = nullptr;
    std::string label;
    std::set<std::string> asked;
    bool all = false;
  };
  std::map<std::pair<int, int>, Visited> visited;

  void add(const YamlMark& mark, const std::string& message) const;
  [[nodiscard]] std::string place(const YamlMark& mark) const;  // "file:line:column"
  Visited& visit(const YamlNode::Impl& impl);
};

// What a message says that it found.
std::string quoted(const YamlTree& node);
// A character that no editor shows: where it is, nullopt without one.
std::optional<YamlMark> first_control(const std::string& text);

}  // namespace takt
