// Reads compositions: several networks and operators that become one plan (docs/composition.md). Host only (yaml-cpp,
// compiler).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "compiler/compose.h"
#include "runtime/base/status.h"

namespace takt::pipeline {

// Whether a YAML file is a composition rather than a model's contract; kConfiguration when it is no YAML.
Result<bool> is_composition(const std::string& path);

// Networks and contracts are looked for beside the file; `files` replaces those of parts, by name (weights that are
// kept elsewhere). kConfiguration with every error of the file at once, or when a network is not there or is another
// one.
Result<compiler::Composition> load_composition(const std::string& path,
                                               const std::map<std::string, std::string>& files);

// The same from text; `read` gives the bytes of a file by its name as the text has it, for a part, or for none:
// contracts. Where it reads another file in its place, it says so in `file`, for messages.
using ReadFile = std::function<Result<std::string>(const std::string& part, std::string& file)>;
Result<compiler::Composition> parse_composition(const std::string& text, const std::string& name, const ReadFile& read);

}  // namespace takt::pipeline
