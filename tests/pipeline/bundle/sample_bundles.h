// Bundles for tests and for the corpus of the fuzzer: tables of problems by themselves, one or two modes, shared
// arenas.
#pragma once

#include "pipeline/bundle/bundle.h"
#include "scheduler/model/modes.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/scheduler/synthesis/problems.h"

namespace takt::pipeline::test {

// Three modes of the small perception pipeline: as it is, with the lite LiDAR stage at half the camera rate, without
// the radar; changes between the first two.
inline Bundle sample_bundle() {
  Bundle bundle;
  bundle.name = "sample";
  bundle.sources = {{"pipeline", digest("pipeline")}, {"board", digest("board")}};
  const auto add = [&](const std::string& name, sched::Problem problem) {
    problem.name = name;
    const sched::Answer answer = sched::synthesize(problem, {1, 2'000});
    bundle.modes.push_back({name, problem, *answer.schedule, milliseconds(500), {}});
  };
  sched::Problem full = sched::test::perception();
  for (sched::Stage& stage : full.stages) {
    stage.variants[0].arena = 1'000'000 + 64 * static_cast<std::int64_t>(stage.name.size());
    stage.variants[0].resident = 5'000'000;
  }
  sched::Problem lite = full;
  lite.stages[1].variants = {sched::test::variant("lite", milliseconds(8))};
  lite.stages[1].variants[0].arena = 400'000;
  sched::Problem dark = full;
  dark.stages[0].rates = {1};
  const auto ticks = sched::common_ticks({full, lite, dark});
  full.ticks = ticks->at(0);
  lite.ticks = ticks->at(1);
  dark.ticks = ticks->at(2);
  add("full", full);
  add("lite", lite);
  add("dark", dark);
  for (std::uint32_t s = 0; s < full.stages.size(); ++s) {
    BundleStage& stage = bundle.stages.emplace_back();
    stage.name = full.stages[s].name;
    for (const sched::Input& input : full.stages[s].inputs) stage.inputs.push_back({input.name, 0, 0, true});
    for (const BundleMode& mode : bundle.modes) {
      for (const sched::Variant& variant : mode.problem.stages[s].variants) {
        const bool known = !stage.variants.empty() && stage.variants.front().name == variant.name;
        if (!known) stage.variants.push_back({variant.name, "", {}, {}});
      }
    }
    stage.params.keys = {"cell_m", "crop"};
    stage.params.items.resize(2);
    stage.params.items[0].kind = Parameter::Kind::kText;
    stage.params.items[0].text = "0.25";
    stage.params.items[1].kind = Parameter::Kind::kList;
  }
  bundle.changes = {{0, 1, milliseconds(100)}, {1, 0, milliseconds(100)}};
  bundle.topics = {{"/stage/fusion", 7, 4'000, 1, {{"recorder", 12, 2}, {"fusion/tracks", 2, 4}}},
                   {"/stage/radar_detect", 8, 3'000, 1, {{"fusion/radar", 3, 6}}}};
  transport::Pool pool{4'096, 4'352, 0, {"/stage/fusion", "/stage/radar_detect"}};
  pool.chunks = (1 + 14 + 6 + 1) + (1 + 9 + 1);
  bundle.pools.pools = {pool};
  bundle.pools.user_bytes = pool.chunk_bytes * pool.chunks;
  std::vector<std::uint64_t> bytes;
  for (std::size_t s = 0; s < bundle.stages.size(); ++s) bytes.push_back(arena_bytes(bundle, s));
  bundle.arenas = place_arenas(bundle.modes, bundle.changes, bundle.stages, bytes);
  return bundle;
}

}  // namespace takt::pipeline::test
