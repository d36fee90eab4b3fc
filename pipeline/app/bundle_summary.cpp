#include "pipeline/app/bundle_summary.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "scheduler/model/footprint.h"
#include "scheduler/model/text.h"

namespace takt::app {
namespace {

using Json = nlohmann::ordered_json;

struct Tightest {
  const sched::ChainBound* bound = nullptr;
  std::size_t quantity = 0;
  Duration limit;
  [[nodiscard]] double share() const {
    return static_cast<double>(bound->bounds[quantity].ns) / static_cast<double>(limit.ns);
  }
};

// The limit that a mode's table comes closest to.
std::optional<Tightest> tightest(const pipeline::BundleMode& mode) {
  std::optional<Tightest> out;
  for (const sched::ChainBound& bound : mode.schedule.bounds) {
    for (std::size_t q = 0; q < sched::kQuantities; ++q) {
      const std::optional<Duration>& limit = mode.problem.chains[bound.chain].limits[q];
      if (!limit) continue;
      const Tightest candidate{&bound, q, *limit};
      if (!out || candidate.share() > out->share()) out = candidate;
    }
  }
  return out;
}

std::string counted(std::size_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

// Of the variants that jobs run.
std::int64_t resident_bytes(const pipeline::BundleMode& mode) {
  std::int64_t out = 0;
  for (std::size_t s = 0; s < mode.problem.stages.size(); ++s) {
    out += sched::footprint(mode.problem.stages[s], mode.schedule.choices[s].variant).resident;
  }
  return out;
}

}  // namespace

std::string bundle_text(const pipeline::Bundle& bundle, const std::string& path) {
  std::string out = "ACCEPTED: " + path + " is a bundle of '" + bundle.name +
                    "' that a board would run; every table, change, plan, pool and arena holds\n";
  const sched::Board& board = bundle.modes.front().problem.board;
  out += "  board '" + board.name + "': " + counted(board.cores.size(), "core") + ", " +
         counted(board.units.size(), "unit") + "\n";
  for (std::size_t m = 0; m < bundle.modes.size(); ++m) {
    const pipeline::BundleMode& mode = bundle.modes[m];
    out += "  mode '" + mode.name + "'" + (m == 0 && bundle.modes.size() > 1 ? " (a run begins here)" : "") +
           ": hyperperiod " + sched::ms_text(mode.problem.hyperperiod) + ", " +
           counted(mode.problem.stages.size(), "stage") + ", " + counted(mode.schedule.slots.size(), "slot") +
           ", schedule " + mode.schedule.hash().hex() + "\n";
    if (mode.dwell.ns > 0) out += "    stays at least " + sched::ms_text(mode.dwell) + "\n";
    if (mode.lost) out += "    when the reference of its clock is lost: '" + bundle.modes[*mode.lost].name + "'\n";
    if (const auto closest = tightest(mode)) {
      out += "    tightest limit: " + std::string(sched::name_of(static_cast<sched::Quantity>(closest->quantity))) +
             " of chain '" + mode.problem.chains[closest->bound->chain].name + "', at most " +
             sched::ms_text(closest->bound->bounds[closest->quantity]) + " of " + sched::ms_text(closest->limit) + "\n";
    }
    if (resident_bytes(mode) > 0) out += "    resident: " + sched::bytes_text(resident_bytes(mode)) + "\n";
  }
  for (const pipeline::BundleChange& change : bundle.changes) {
    out += "  change '" + bundle.modes[change.from].name + "' -> '" + bundle.modes[change.to].name + "', drain " +
           sched::ms_text(change.drain) + "\n";
  }
  out += "  memory: one block of " + sched::bytes_text(static_cast<std::int64_t>(bundle.arenas.block_bytes)) + " for " +
         counted(bundle.arenas.places.size(), "arena") + ", pools of " +
         sched::bytes_text(static_cast<std::int64_t>(bundle.pools.user_bytes)) + " for " +
         counted(bundle.topics.size(), "topic") +
         (board.memory > 0 ? ", the board has " + sched::bytes_text(board.memory) : "") + "\n";
  for (const pipeline::BundleStage& stage : bundle.stages) {
    for (const pipeline::BundleVariant& variant : stage.variants) {
      if (variant.plan) {
        out += "  plan of '" + stage.name + "', variant '" + variant.name +
               "': " + bundle.plans[*variant.plan]->digest().hex() + "\n";
      }
    }
  }
  out += "  decided by\n";
  for (const pipeline::BundleSource& source : bundle.sources)
    out += "    " + source.digest.hex() + "  " + source.role + "\n";
  return out;
}

std::string bundle_json(const pipeline::Bundle& bundle) {
  Json root{{"accepted", "bundle"}, {"name", bundle.name}, {"board", bundle.modes.front().problem.board.name}};
  root["modes"] = Json::array();
  for (const pipeline::BundleMode& mode : bundle.modes) {
    Json entry{{"name", mode.name},
               {"hyperperiod_ns", mode.problem.hyperperiod.ns},
               {"stages", mode.problem.stages.size()},
               {"slots", mode.schedule.slots.size()},
               {"schedule", mode.schedule.hash().hex()},
               {"dwell_ns", mode.dwell.ns},
               {"lost", mode.lost ? Json(bundle.modes[*mode.lost].name) : Json(nullptr)},
               {"resident_bytes", resident_bytes(mode)}};
    const auto closest = tightest(mode);
    entry["tightest"] = nullptr;
    if (closest) {
      entry["tightest"] = Json{{"chain", mode.problem.chains[closest->bound->chain].name},
                               {"quantity", sched::kQuantityKeys[closest->quantity]},
                               {"bound_ns", closest->bound->bounds[closest->quantity].ns},
                               {"limit_ns", closest->limit.ns}};
    }
    root["modes"].push_back(std::move(entry));
  }
  root["changes"] = Json::array();
  for (const pipeline::BundleChange& change : bundle.changes) {
    root["changes"].push_back({{"from", bundle.modes[change.from].name},
                               {"to", bundle.modes[change.to].name},
                               {"drain_ns", change.drain.ns}});
  }
  root["arena_block_bytes"] = bundle.arenas.block_bytes;
  root["pool_bytes"] = bundle.pools.user_bytes;
  root["plans"] = Json::array();
  for (const auto& plan : bundle.plans) root["plans"].push_back(plan->digest().hex());
  root["sources"] = Json::array();
  for (const pipeline::BundleSource& source : bundle.sources) {
    root["sources"].push_back({{"role", source.role}, {"digest", source.digest.hex()}});
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace takt::app
