// The board bundle: everything that a board needs to run a pipeline, in one file (docs/bundle_format.md). Tables of all
// modes with their budgets and bindings, stage parameters, rig, plans, topics and pools, arena bases. Written on the
// host after admission; read on the board without YAML, ONNX or a search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/models/contract.h"
#include "runtime/base/digest.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan.h"
#include "runtime/transport/transport.h"
#include "scheduler/model/model.h"
#include "sensors/messages/messages.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

inline constexpr std::uint32_t kBundleVersion = 3;

// A value of a stage's `params`, as its file says it.
struct Parameter {
  enum class Kind : std::uint8_t { kText = 0, kList = 1, kMap = 2 };
  Kind kind = Kind::kMap;
  std::string text;               // kText
  std::vector<std::string> keys;  // kMap: one per item
  std::vector<Parameter> items;   // kList, kMap
};

struct BundleVariant {
  std::string name, type;
  std::optional<std::uint32_t> plan;   // index into Bundle::plans
  std::optional<ModelContract> model;  // of that plan
};

struct BundleInput {
  std::string name;
  std::uint32_t sensor = 0;  // of the rig; for stage inputs: of the sensor behind the object list
  std::uint32_t schema = 0;  // of the payload that arrives
  bool required = true;      // a job without it does not run
};

struct BundleStage {
  std::string name, type;  // type "": the problem stood by itself, takt has no code for the stage
  std::vector<BundleVariant> variants;
  std::vector<BundleInput> inputs;  // of all modes, which may leave some out
  sensors::PixelFormat pixel_format = sensors::PixelFormat::kRgb8;
  Parameter params;
};

// A complete admitted table; its problem has the budgets, and of the variants of its stages those that it could choose.
struct BundleMode {
  std::string name;
  sched::Problem problem;
  sched::Schedule schedule;
  Duration dwell = {};                     // a run stays at least this long, in whole hyperperiods
  std::optional<std::uint32_t> lost = {};  // the mode to enter when the reference of the phase lock stays lost
};
// A permitted change of mode, at the end of a hyperperiod.
struct BundleChange {
  std::uint32_t from = 0, to = 0;  // indices into Bundle::modes
  Duration drain;                  // between the last hyperperiod of the old table and the first of the new one
};

// Where the arena of a stage lies in the one block of the board; the largest of its variants fits in.
struct ArenaPlace {
  std::uint32_t stage = 0;  // index into Bundle::stages
  std::uint64_t base = 0;   // a multiple of plan::kAlignment
  std::uint64_t bytes = 0;
};
struct ArenaMap {
  std::uint64_t block_bytes = 0;
  std::vector<ArenaPlace> places;  // by stage; stages without an arena have none
};

// What decided the bundle: a file, or a figure that was changed for it ("what-if fusion.budget=+20%", digest of the
// text behind "what-if ").
struct BundleSource {
  std::string role;  // "pipeline", "board", "rig", "budgets", "model camera_detect", ...
  Digest digest;
};

struct Bundle {
  std::string name;
  std::vector<BundleSource> sources;
  std::vector<BundleMode> modes;  // the first is the one a run begins with
  std::vector<BundleChange> changes;
  std::vector<BundleStage> stages;  // of all modes, by name
  sensors::Rig rig;
  std::vector<transport::TopicSpec> topics;  // for all modes at once: ports stand before the run
  transport::PoolPlan pools;
  ArenaMap arenas;
  std::vector<std::shared_ptr<const plan::Plan>> plans;
};

// The file's bytes: the same bundle gives the same bytes. kInternal with the rule of check_bundle() that it breaks.
Result<std::vector<std::byte>> write_bundle(const Bundle& bundle);

// Reads strictly: every byte has a meaning, checksums, then check_bundle(). kInput names the byte or the rule, and what
// to do.
Result<Bundle> read_bundle(std::span<const std::byte> bytes);
Result<Bundle> load_bundle(const std::string& path);
// Whether a readable file begins as a bundle does, of whatever version and however damaged.
bool is_bundle(const std::string& path);

// What has to hold whatever the checksums say: every problem is well-formed, every table passes the validator, every
// change too; stages, variants, plans and inputs fit the tables; plans admit the chosen numbers of cores; arenas share
// bytes only where Serialisation allows it and fit the board; pools hold what the topics take; all modes have one board
// and one tick. kInput.
Status check_bundle(const Bundle& bundle);

// Whether jobs of two stages never run at the same time, overruns within their slots included. In every mode that has
// both a unary resource keeps them apart: a core that both hold from start to end, or an arena mutex that both name.
// Across every change such a resource does as well, or the drain outlasts what still runs of the old table. Expects
// tables and changes that validate; keeps references.
class Serialisation {
 public:
  Serialisation(const std::vector<BundleMode>& modes, const std::vector<BundleChange>& changes);
  [[nodiscard]] bool apart(const std::string& stage, const std::string& other) const;

 private:
  // What one stage holds in one mode, and when.
  struct Use {
    std::vector<std::string> cores;  // held throughout: the home, unless a part of a job runs elsewhere meanwhile
    std::string mutex;               // "": an arena of its own
    Duration head;                   // when the first job of the table begins
    Duration tail;                   // how long after a hyperperiod the last job that began in it runs; may be below 0
  };
  [[nodiscard]] const Use* find(std::size_t mode, const std::string& stage) const;
  [[nodiscard]] static bool kept_apart(const Use& one, const Use& other);
  [[nodiscard]] bool apart_across(const BundleChange& change, const std::string& stage, const std::string& other) const;

  const std::vector<BundleMode>& modes_;
  const std::vector<BundleChange>& changes_;
  std::vector<std::map<std::string, Use>> uses_;  // by mode
};

// Bases for arenas of these sizes, by stage (0: none): stages that are serialised may share bytes, others never. The
// largest first, each at the lowest base that is free.
ArenaMap place_arenas(const std::vector<BundleMode>& modes, const std::vector<BundleChange>& changes,
                      const std::vector<BundleStage>& stages, const std::vector<std::uint64_t>& bytes);

// What the variants of every mode's jobs keep resident (weights, state, pools) and the block of arenas fit the memory
// of the board, where it states one. kGate says by how much not: the block may be larger than what runs at once, which
// is all that a table's validator counts.
Status check_memory(const std::vector<BundleMode>& modes, const ArenaMap& arenas);

// Bytes that a stage's arena must have: of the plan of every variant that jobs of some mode run, or as declared.
std::uint64_t arena_bytes(const Bundle& bundle, std::size_t stage);

}  // namespace takt::pipeline
