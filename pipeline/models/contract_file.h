// Reads model contracts. Host only (yaml-cpp).
#pragma once

#include <string>

#include "pipeline/models/contract.h"
#include "runtime/base/status.h"

namespace takt::pipeline {

// Keys: docs/model_format.md. kConfiguration with every error of the file at once. `file` is taken relative to the
// contract; a non-empty `model_file` replaces it (weights that are kept elsewhere).
Result<ModelContract> load_model(const std::string& path, const std::string& model_file = "");
Result<ModelContract> parse_model(const std::string& text, const std::string& name);

// The bytes of the ONNX file. kConfiguration when it is not there (and how to give it) or is not the one the contract
// names: expected and found hash.
Result<std::string> read_model_file(const ModelContract& contract);

}  // namespace takt::pipeline
