// The fusion stage as a graph of takt's tracking operators (docs/operators.md). Host only (compiler).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compiler/ir/graph.h"
#include "pipeline/models/fusion_model.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace takt::pipeline {

// The lists of a job are handled one after the other, oldest first: the graph is unrolled over as many as there can be.
// What survives a job are states: the tables of tracks and their count, the clock, the vehicle's recent motion, the
// newest stamps used. `inputs`: of the stage, ego included.
Result<ir::Graph> fusion_graph(const FusionModel& model, std::span<const kernels::ListSource> sources,
                               std::size_t inputs);

// `parts`: numbers of workers that the plan admits. `target`: of this machine's cores, or a device's.
Result<std::shared_ptr<const plan::Plan>> compile_fusion(const FusionModel& model,
                                                         std::span<const kernels::ListSource> sources,
                                                         std::size_t inputs, const std::vector<std::uint16_t>& parts,
                                                         kernels::Target target = kernels::best_target());

}  // namespace takt::pipeline
