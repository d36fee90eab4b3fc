// From a contract to a plan: the ONNX file compiled for the pictures of one camera and checked against the contract.
// Host only (compiler).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compiler/compile.h"
#include "pipeline/models/contract.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace takt::pipeline {

// The way of such pictures into such an input, for the compiler.
compiler::Preprocess preprocess_for(const ModelInput& input, const CameraPicture& picture);

// The plan's input is the payload that holds such a picture, its outputs are the model's. `parts`: numbers of workers
// that it admits. `target`: of this machine's cores, or a device's, which may have kF16. kConfiguration when the file
// is not there, is another one, or has tensors of other names, types or shapes than the contract says; kInput when it
// cannot be compiled.
Result<std::shared_ptr<const plan::Plan>> compile_model(const ModelContract& contract, const CameraPicture& picture,
                                                        const std::vector<std::uint16_t>& parts,
                                                        kernels::Target target = kernels::best_target(),
                                                        kernels::DType precision = kernels::DType::kF32);

}  // namespace takt::pipeline
