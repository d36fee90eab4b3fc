// Reads model contracts. Host only (yaml-cpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pipeline/models/contract.h"
#include "runtime/base/status.h"
#include "runtime/base/yaml.h"

namespace takt::pipeline {

// Keys: docs/model_format.md. kConfiguration with every error of the file at once. `file` is taken relative to the
// contract; a non-empty `model_file` replaces it (weights that are kept elsewhere).
Result<ModelContract> load_model(const std::string& path, const std::string& model_file = "");
Result<ModelContract> parse_model(const std::string& text, const std::string& name);

// Parts that every model file has: `file` and `hash`, and `classes` with `unlisted`. Errors are the document's.
void read_named_file(const YamlNode& root, const std::string& path, const std::string& model_file,
                     ModelContract* contract);
std::vector<ModelClass> read_classes(const YamlNode& root);

// The optional keys `loops` {NODE: most trips} and `state` {INPUT: OUTPUT} of what describes a network.
std::map<std::string, std::int64_t> read_loops(const YamlNode& network);
std::map<std::string, std::string> read_states(const YamlNode& network);

// The bytes of the ONNX file. kConfiguration when it is not there (and how to give it) or is not the one the contract
// names: expected and found hash.
Result<std::string> read_model_file(const ModelContract& contract);

}  // namespace takt::pipeline
