#include "scheduler/model/yaml.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <numeric>

#include "scheduler/model/gpu.h"
#include "scheduler/model/subject.h"
#include "scheduler/model/text.h"
#include "scheduler/model/yaml_read.h"

namespace takt::sched {

std::int64_t yaml_read::read_rate(const YamlNode& node, Duration hyperperiod) {
  const double hz = node.number(kLeastHz, kMostHz);
  if (!holds_number(node, kLeastHz, kMostHz) || hyperperiod.ns <= 0) return 1;
  const double jobs = hz * hyperperiod.seconds();
  const double whole = std::round(jobs);
  if (whole >= 1 && std::fabs(jobs - whole) <= 1e-9 * whole) return static_cast<std::int64_t>(whole);
  std::string advice;
  for (std::int64_t times = 2; times <= 100 && advice.empty(); ++times) {
    const double more = jobs * static_cast<double>(times);
    if (std::round(more) >= 1 && std::fabs(more - std::round(more)) <= 1e-9 * more) {
      advice = "; with hyperperiod_ms: " + std::to_string((hyperperiod * times).ns / 1'000'000) + " it would be " +
               std::to_string(static_cast<std::int64_t>(std::round(more)));
    }
  }
  std::string count = std::to_string(jobs);
  node.error("this rate gives " + count + " jobs in a hyperperiod of " + ms_text(hyperperiod) + ", not a whole number" +
             advice);
  return 1;
}

bool yaml_read::holds_number(const YamlNode& node, double min, double max) {
  if (!node.is_scalar()) return false;
  const std::string text = node.text();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0' && value >= min && value <= max;
}

void yaml_read::read_limits(const YamlNode& limits, Chain& chain) {
  for (std::size_t q = 0; q < kQuantities; ++q) {
    if (const auto limit = limits.find(kQuantityKeys[q])) chain.limits[q] = limit->milliseconds(kLeastMs, kMostMs);
  }
}

namespace {

using namespace yaml_read;

constexpr double kMostMb = 1e9;

std::int64_t read_megabytes(const YamlNode& node) {
  return static_cast<std::int64_t>(std::llround(node.number(0, kMostMb) * 1e6));
}

// What a stage may name beside other stages and sensors.
struct Resources {
  const Board& board;
  const std::vector<Mutex>& mutexes;
};

std::vector<std::uint32_t> read_mutexes(const YamlNode& list, const Resources& resources) {
  std::vector<std::uint32_t> out;
  for (const YamlNode& item : list.items()) {
    const auto mutex = reference(item, resources.mutexes, "mutex");
    if (!mutex) continue;
    if (std::find(out.begin(), out.end(), *mutex) != out.end()) item.error("this mutex is named twice");
    out.push_back(*mutex);
  }
  return out;
}

Segment read_segment(const YamlNode& node, const Resources& resources) {
  Segment segment;
  const YamlNode on = node.at("on");
  if (on.is_scalar() && on.text() != "cores") {
    segment.unit = reference(on, resources.board.units, "unit of the board (or 'cores')");
    if (!segment.unit) segment.unit = 0;  // the error is recorded; what else is wrong here shall be found too
  } else if (!on.is_scalar()) {
    (void)on.text();
  }
  segment.time = node.at("ms").milliseconds(kLeastMs, kMostMs);
  if (const auto guard = node.find("guard_ms")) {
    segment.guard = guard->milliseconds(0, kMostMs);
    const bool gpu = segment.unit && *segment.unit < resources.board.units.size() &&
                     resources.board.units[*segment.unit].kind == UnitKind::kGpuPartition;
    if (!gpu) guard->error("only a segment on a GPU partition has a guard");
  }
  if (const auto mutexes = node.find("mutexes")) segment.mutexes = read_mutexes(*mutexes, resources);
  return segment;
}

// Behind its time.
void read_high_water(const YamlNode& node, Budget& budget) {
  budget.high_water = node.milliseconds(0, kMostMs);
  if (budget.high_water > budget.time) {
    node.error("a job has taken " + ms_text(budget.high_water) + ", and its budget is " + ms_text(budget.time));
  }
}

void read_steps(const YamlNode& node, Budget& budget) {
  const auto steps = node.find("steps_ms");
  if (!steps) return;
  for (const YamlNode& item : steps->items()) budget.steps.push_back(item.milliseconds(0, kMostMs));
}

// Of a budgets file: where they are is the pipeline's to say.
void read_segment_times(const YamlNode& node, Budget& budget) {
  const auto times = node.find("segments_ms");
  if (!times) return;
  Duration sum;
  const std::vector<YamlNode> items = times->items();
  if (items.size() > kMostSegments) {
    times->error("more than " + std::to_string(kMostSegments) + " segments in one job are not planned");
    return;
  }
  for (const YamlNode& item : items) {
    budget.segments.emplace_back().time = item.milliseconds(kLeastMs, kMostMs);
    sum += budget.segments.back().time;
  }
  if (sum != budget.time) times->error("their sum is " + ms_text(sum) + ", and budget_ms " + ms_text(budget.time));
}

Interference interference_of(const YamlNode& node) {
  const std::string word = node.one_of({"any", "cores", "none"});
  return word == "none" ? Interference::kNone : word == "cores" ? Interference::kCores : Interference::kAny;
}

Budget read_budget(const YamlNode& node, const Resources& resources) {
  Budget budget;
  budget.place = node.where();
  if (const auto cores = node.find("cores")) budget.cores = static_cast<int>(cores->integer(1, kMaxGang));
  const auto time = node.find("ms");
  const auto segments = node.find("segments");
  if (time.has_value() == segments.has_value()) {
    node.error("give either 'ms', one time on the cores, or 'segments'");
  } else if (time) {
    budget.time = time->milliseconds(kLeastMs, kMostMs);
  } else {
    const std::vector<YamlNode> items = segments->items();
    if (segments->is_sequence() && items.empty()) segments->error("at least one segment is needed");
    for (std::size_t i = 0; i < items.size(); ++i) {
      budget.segments.push_back(read_segment(items[i], resources));
      budget.time += budget.segments.back().time;
      if (budget.segments.back().unit && (i == 0 || i + 1 == items.size())) {
        items[i].error(i == 0 ? "a job begins on the cores, where its inputs are latched: add a segment for submission"
                              : "a job ends on the cores, where its output is published: add a segment for completion");
      }
    }
  }
  if (const auto bears = node.find("interference")) budget.interference = interference_of(*bears);
  if (const auto provenance = node.find("provenance")) {
    const std::string word = provenance->one_of({"declared", "exploratory", "profiled"});
    budget.provenance = word == "profiled"      ? Provenance::kProfiled
                        : word == "exploratory" ? Provenance::kExploratory
                                                : Provenance::kDeclared;
  }
  if (const auto samples = node.find("samples")) {
    budget.samples = static_cast<std::uint64_t>(samples->integer(0, std::numeric_limits<std::int64_t>::max()));
  }
  if (const auto margin = node.find("margin")) budget.margin = margin->number(1, 100);
  if (const auto high_water = node.find("high_water_ms")) read_high_water(*high_water, budget);
  read_steps(node, budget);
  return budget;
}

Variant read_variant(const YamlNode& node, const Resources& resources) {
  Variant variant;
  variant.name = node.at("name").text();
  const YamlNode list = node.at("budgets");
  for (const YamlNode& item : list.items()) {
    const Budget budget = read_budget(item, resources);
    const auto same = [&](const Budget& b) { return b.cores == budget.cores; };
    if (std::any_of(variant.budgets.begin(), variant.budgets.end(), same)) {
      item.error("there is already a budget for " + std::to_string(budget.cores) +
                 (budget.cores == 1 ? " core" : " cores"));
    }
    variant.budgets.push_back(budget);
  }
  if (list.is_sequence() && variant.budgets.empty()) list.error("at least one budget is needed");
  if (const auto resident = node.find("resident_mb")) variant.resident = read_megabytes(*resident);
  if (const auto arena = node.find("arena_mb")) variant.arena = read_megabytes(*arena);
  if (const auto mutex = node.find("arena_mutex")) {
    variant.arena_mutex = reference(*mutex, resources.mutexes, "mutex");
    if (variant.arena == 0) mutex->error("there is no arena to share: give 'arena_mb'");
    for (const Budget& budget : variant.budgets) {
      for (const Segment& segment : budget.segments) {
        if (!variant.arena_mutex ||
            std::count(segment.mutexes.begin(), segment.mutexes.end(), *variant.arena_mutex) == 0)
          continue;
        mutex->error("a segment names this mutex too, but the whole job holds it with the arena");
      }
    }
  }
  return variant;
}

// overrun: abort | skip_next | continue_late | degrade, the last with degrade_to: {variant: NAME} or {mode: NAME}.
void read_overrun(const YamlNode& node, Stage& stage) {
  const auto overrun = node.find("overrun");
  const std::string word =
      overrun ? overrun->one_of({"continue_late", "abort", "skip_next", "degrade"}) : "continue_late";
  if (word == "abort") stage.overrun = OverrunPolicy::kAbort;
  if (word == "skip_next") stage.overrun = OverrunPolicy::kSkipNext;
  const auto target = node.find("degrade_to");
  if (word != "degrade") {
    if (target) target->error("only 'overrun: degrade' leads to another variant or mode");
    return;
  }
  if (!target) {
    overrun->error("to what? Give 'degrade_to: {variant: NAME}', or 'degrade_to: {mode: NAME}'");
    return;
  }
  const auto variant = target->find("variant");
  const auto mode = target->find("mode");
  if (variant.has_value() == mode.has_value()) {
    target->error("give either 'variant' or 'mode'");
    return;
  }
  stage.overrun = OverrunPolicy::kDegrade;
  if (mode) {
    stage.degraded_mode = mode->text();
  } else {
    (void)reference(*variant, stage.variants, "variant");
    stage.degraded_variant = variant->text();
  }
}

// `stages` holds names only for stages that come later in the file; `index` is the stage being read.
Input read_input(const YamlNode& node, const std::vector<Sensor>& sensors, const std::vector<Stage>& stages,
                 std::size_t index) {
  Input input;
  input.name = node.at("name").text();
  const auto sensor = node.find("sensor");
  const auto stage = node.find("stage");
  if (sensor.has_value() == stage.has_value()) {
    node.error("give either 'sensor' or 'stage' as the source of this input");
    return input;
  }
  if (sensor) {
    input.from_sensor = true;
    input.source = reference(*sensor, sensors, "sensor").value_or(0);
    return input;
  }
  if (const auto hold = node.find("hold")) {
    input.absence.hold = static_cast<std::uint32_t>(hold->integer(0, 1000));
  }
  if (const auto feedback = node.find("feedback")) input.feedback = feedback->boolean();
  const auto source = reference(*stage, stages, "stage");
  if (source && *source >= index && !input.feedback) {
    stage->error("stage '" + stages[*source].name +
                 "' does not come before this one; list it first or mark the input 'feedback: true'");
  }
  input.source = source.value_or(0);
  return input;
}

}  // namespace

namespace {

void read_figures(const YamlNode& unit, UnitFigures& out) {
  const auto node = unit.find("figures");
  if (!node) return;
  const double gb_s = node->at("gb_s").number(0.1, 1e5);
  const std::string name = unit.at("name").text();
  if (unit.at("kind").text() != "gpu") {
    out.copies.push_back({name, gb_s});
    return;
  }
  GpuFigures& gpu = out.gpus.emplace_back();
  gpu.unit = name;
  gpu.gb_s = gb_s;
  gpu.gflops = node->at("gflops").number(1, 1e7);
  gpu.step = node->at("step_us").microseconds(0, 1000);
  gpu.guard = node->at("guard_ms").milliseconds(0.01, 1000);
}

Board read_board(const YamlNode& root, UnitFigures& figures) {
  Board board;
  board.name = root.at("name").text();
  if (const auto error = root.find("clock_error_us")) board.clock_error = error->microseconds(0, 1000);
  if (const auto cost = root.find("switch_cost_us")) {
    board.switch_cost = cost->microseconds(0, kMostSwitchCost.us());
  }
  if (const auto memory = root.find("memory_mb")) board.memory = read_megabytes(*memory);
  const YamlNode list = root.at("cores");
  for (const YamlNode& node : list.items()) {
    Core core;
    const YamlNode name = node.at("name");
    core.name = name.text();
    refuse_twice(name, core.name, board.cores, "core");
    const YamlNode cpu = node.at("cpu");
    core.cpu = static_cast<int>(cpu.integer(0, 1023));
    const auto same = [&](const Core& other) { return other.cpu == core.cpu; };
    if (std::any_of(board.cores.begin(), board.cores.end(), same)) {
      cpu.error("cpu " + std::to_string(core.cpu) + " is listed twice");
    }
    if (const auto reserve = node.find("reserve")) core.reserve = reserve->number(0, kMostReserve);
    core.wakeup_window = node.at("wakeup_window_us").microseconds(200, 5000);
    core.publish_window = node.at("publish_window_us").microseconds(200, 5000);
    board.cores.push_back(core);
  }
  if (list.is_sequence() && board.cores.empty()) list.error("at least one core is needed");
  const auto units = root.find("units");
  if (!units) return board;
  for (const YamlNode& node : units->items()) {
    Unit unit;
    const YamlNode name = node.at("name");
    unit.name = name.text();
    refuse_twice(name, unit.name, board.units, "unit");
    refuse_twice(name, unit.name, board.cores, "core");
    if (unit.name == "cores") name.error("'cores' stands for a stage's home cores; choose another name");
    const std::string kind = node.at("kind").one_of({"copy", "gpu"});
    unit.kind = kind == "copy" ? UnitKind::kCopyEngine : UnitKind::kGpuPartition;
    read_figures(node, figures);
    board.units.push_back(std::move(unit));
  }
  for (GpuFigures& gpu : figures.gpus) gpu.board = board.name;
  return board;
}

}  // namespace

Board read_board(const YamlNode& root) {
  UnitFigures figures;
  return read_board(root, figures);
}

Result<Board> load_board(const std::string& path) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  Board board = read_board(document.root());
  TAKT_RETURN_IF_ERROR(document.finish());
  return board;
}

Result<UnitFigures> load_unit_figures(const std::string& board_file) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(board_file));
  UnitFigures out;
  static_cast<void>(read_board(document.root(), out));
  TAKT_RETURN_IF_ERROR(document.finish());
  return out;
}

Result<GpuFigures> load_gpu_figures(const std::string& board_file, const std::string& unit) {
  TAKT_ASSIGN(UnitFigures found, load_unit_figures(board_file));
  for (GpuFigures& gpu : found.gpus) {
    if (unit.empty() || gpu.unit == unit) return std::move(gpu);
  }
  return fail(Code::kConfiguration, board_file + ": no unit of the board" + (unit.empty() ? "" : " '" + unit + "'") +
                                        " declares the figures of a GPU (figures: {gflops, gb_s, step_us, guard_ms})");
}

Duration read_hyperperiod(const YamlNode& root) {
  const Duration hyperperiod = root.at("hyperperiod_ms").milliseconds(0.01, kMostMs);
  return std::max(hyperperiod, microseconds(10));
}

namespace {

// At the item of the file that a subject is, or else at the key of the list, or at the top.
void report_at(const YamlNode& root, const Subject& subject, const std::string& message) {
  const auto at = [&](const char* key) {
    const auto node = root.find(key);
    if (!node) return root;
    if (!node->is_sequence()) return *node;
    const std::vector<YamlNode> items = node->items();
    return subject.index < items.size() ? items[subject.index] : *node;
  };
  switch (subject.kind) {
    case Subject::Kind::kWhole: return root.error(message);
    case Subject::Kind::kBoard: return at("board").error(message);
    case Subject::Kind::kSensor: return (root.find("sensors") ? at("sensors") : at("rig")).error(message);
    case Subject::Kind::kStage: return at("stages").error(message);
    case Subject::Kind::kChain: return at("chains").error(message);
    case Subject::Kind::kDisparity: return at("disparities").error(message);
    case Subject::Kind::kPhaseLock: return at("phase_lock").error(message);
  }
}

}  // namespace

void check_in_place(const YamlNode& root, const Problem& problem) {
  Subject subject;
  if (const Status sound = check(problem, subject); !sound) report_at(root, subject, sound.error().message);
}

void check_in_place(const YamlNode& root, const ModeSet& set) {
  ModeSubject subject;
  const Status sound = check(set, subject);
  if (sound) return;
  const YamlNode list = root.at("modes");
  const std::vector<YamlNode> modes = list.items();
  // A part of a mode is declared in the mode or, where it is taken over whole, further up; the mode is what is wrong.
  (subject.mode < modes.size() ? modes[subject.mode] : list).error(sound.error().message);
}

namespace {

std::vector<Mutex> read_mutex_names(const YamlNode& list, const Board& board) {
  std::vector<Mutex> out;
  for (const YamlNode& item : list.items()) {
    Mutex mutex{item.text()};
    refuse_twice(item, mutex.name, out, "mutex");
    refuse_twice(item, mutex.name, board.cores, "core");
    refuse_twice(item, mutex.name, board.units, "unit");
    out.push_back(std::move(mutex));
  }
  return out;
}

// Stage i of the result is item i of the list. Inputs find sensors by name in `sensors`, in the order given there.
std::vector<Stage> read_stages(const YamlNode& list, Duration hyperperiod, const std::vector<Sensor>& sensors,
                               const Resources& resources) {
  std::vector<Stage> stages;
  const std::vector<YamlNode> items = list.items();
  if (list.is_sequence() && items.empty()) list.error("at least one stage is needed");
  // Names first, so that a feedback input may name a later stage.
  for (const YamlNode& node : items) {
    const YamlNode name = node.at("name");
    Stage stage;
    stage.name = name.text();
    refuse_twice(name, stage.name, stages, "stage");
    stages.push_back(std::move(stage));
  }
  std::int64_t all_jobs = 0;  // at the highest rates
  for (std::size_t i = 0; i < items.size(); ++i) {
    const YamlNode& node = items[i];
    Stage& stage = stages[i];
    const auto rate = node.find("rate_hz");
    const auto rates = node.find("rates_hz");
    if (rate.has_value() == rates.has_value()) {
      node.error("give either 'rate_hz' or 'rates_hz'");
    } else if (rate) {
      stage.rates.push_back(read_rate(*rate, hyperperiod));
    } else {
      for (const YamlNode& item : rates->items()) stage.rates.push_back(read_rate(item, hyperperiod));
      if (rates->is_sequence() && stage.rates.empty()) rates->error("at least one rate is needed");
    }
    std::int64_t most_jobs = 0;
    for (const std::int64_t jobs : stage.rates) most_jobs = std::max(most_jobs, jobs);
    all_jobs += most_jobs;
    if (all_jobs > kMostJobs && all_jobs - most_jobs <= kMostJobs) {
      node.error("up to here the stages have " + std::to_string(all_jobs) + " jobs in a hyperperiod of " +
                 ms_text(hyperperiod) + "; at most " + std::to_string(kMostJobs) +
                 " are planned. Choose rates with a shorter common hyperperiod");
    }
    if (const auto inputs = node.find("inputs")) {
      for (const YamlNode& item : inputs->items()) {
        Input input = read_input(item, sensors, stages, i);
        refuse_twice(item, input.name, stage.inputs, "input");
        stage.inputs.push_back(std::move(input));
      }
    }
    const YamlNode variants = node.at("variants");
    for (const YamlNode& item : variants.items()) {
      Variant variant = read_variant(item, resources);
      refuse_twice(item, variant.name, stage.variants, "variant");
      stage.variants.push_back(std::move(variant));
    }
    if (variants.is_sequence() && stage.variants.empty()) variants.error("at least one variant is needed");
    read_overrun(node, stage);
    if (const auto slack = node.find("slack_ms")) stage.slack = slack->milliseconds(0, kMostMs);
  }
  return stages;
}

std::vector<Chain> read_chains(const YamlNode& list, const std::vector<Sensor>& sensors,
                               const std::vector<Stage>& stages) {
  std::vector<Chain> chains;
  for (const YamlNode& node : list.items()) {
    Chain chain;
    const YamlNode name = node.at("name");
    chain.name = name.text();
    refuse_twice(name, chain.name, chains, "chain");
    const YamlNode path = node.at("path");
    const std::vector<YamlNode> items = path.items();
    if (path.is_sequence() && items.size() < 2) path.error("a path is a sensor and at least one stage");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i == 0) {
        chain.sensor = reference(items[i], sensors, "sensor").value_or(0);
        continue;
      }
      const auto stage = reference(items[i], stages, "stage");
      if (!stage) continue;
      const std::vector<Input>& inputs = stages[*stage].inputs;
      const bool connected = std::any_of(inputs.begin(), inputs.end(), [&](const Input& input) {
        if (i == 1) return input.from_sensor && input.source == chain.sensor;
        return !input.from_sensor && !chain.stages.empty() && input.source == chain.stages.back();
      });
      // Without a predecessor an error was recorded above.
      if (!connected && (i == 1 || chain.stages.size() == i - 1)) {
        const std::string& before = i == 1 ? sensors[chain.sensor].name : stages[chain.stages.back()].name;
        items[i].error("stage '" + stages[*stage].name + "' has no input from '" + before + "'");
      }
      chain.stages.push_back(*stage);
    }
    if (const auto limits = node.find("limit_ms")) read_limits(*limits, chain);
    chains.push_back(std::move(chain));
  }
  return chains;
}

std::vector<Disparity> read_disparities(const YamlNode& list, const std::vector<Stage>& stages,
                                        const std::vector<Chain>& chains) {
  std::vector<Disparity> out;
  for (const YamlNode& node : list.items()) {
    Disparity disparity;
    const YamlNode name = node.at("name");
    disparity.name = name.text();
    refuse_twice(name, disparity.name, out, "disparity limit");
    const auto stage = reference(node.at("stage"), stages, "stage");
    disparity.stage = stage.value_or(0);
    const YamlNode members = node.at("chains");
    const std::vector<YamlNode> items = members.items();
    if (members.is_sequence() && items.size() < 2) members.error("samples of at least two chains are compared");
    for (const YamlNode& item : items) {
      const auto chain = reference(item, chains, "chain");
      if (!chain) continue;
      if (std::count(disparity.chains.begin(), disparity.chains.end(), *chain) != 0) item.error("named twice");
      const std::vector<std::uint32_t>& path = chains[*chain].stages;
      if (stage && std::count(path.begin(), path.end(), *stage) != 1) {
        item.error("chain '" + chains[*chain].name + "' does not lead through '" + stages[*stage].name + "' once");
      }
      disparity.chains.push_back(*chain);
    }
    disparity.limit = node.at("limit_ms").milliseconds(kLeastMs, kMostMs);
    out.push_back(std::move(disparity));
  }
  return out;
}

PhaseLock read_phase_lock(const YamlNode& node, Duration hyperperiod, const std::vector<Sensor>& sensors) {
  PhaseLock lock;
  const YamlNode sensor = node.at("sensor");
  const auto found = reference(sensor, sensors, "sensor");
  const YamlNode gap = node.at("gap_ms");
  lock.gap = gap.milliseconds(0, hyperperiod.ms());
  if (const auto filter = node.find("filter_ms")) lock.filter = filter->milliseconds(0, hyperperiod.ms());
  if (const auto hold_over = node.find("hold_over_ms")) lock.hold_over = hold_over->milliseconds(0, kMostMs);
  if (!found) return lock;
  lock.sensor = *found;
  const Sensor& reference_sensor = sensors[*found];
  if (!reference_sensor.phase) {
    sensor.error("sensor '" + reference_sensor.name +
                 "' has no phase; say with phase_ms where in the table its stamps are to lie");
    return lock;
  }
  const Duration correction = largest_correction(lock, reference_sensor, hyperperiod);
  if (lock.gap < correction) {
    gap.error("the largest correction at a boundary is " + ms_text(correction) +
              " (drift times hyperperiod plus the filter term); reserve at least that much");
  }
  return lock;
}

}  // namespace

Problem read_problem(const YamlNode& root, const std::string& name, const Board& board,
                     const std::vector<Sensor>& sensors) {
  Problem problem;
  problem.name = name;
  problem.board = board;
  problem.sensors = sensors;
  problem.hyperperiod = read_hyperperiod(root);
  // Rates beside a hyperperiod that could not be read would all seem wrong.
  const auto length = root.find("hyperperiod_ms");
  const bool known = length && holds_number(*length, 0.01, kMostMs);
  if (const auto mutexes = root.find("mutexes")) problem.mutexes = read_mutex_names(*mutexes, board);
  problem.stages =
      read_stages(root.at("stages"), known ? problem.hyperperiod : Duration{}, sensors, {board, problem.mutexes});
  if (const auto chains = root.find("chains")) problem.chains = read_chains(*chains, sensors, problem.stages);
  if (const auto disparities = root.find("disparities")) {
    problem.disparities = read_disparities(*disparities, problem.stages, problem.chains);
  }
  if (const auto lock = root.find("phase_lock")) {
    problem.phase_lock = read_phase_lock(*lock, problem.hyperperiod, sensors);
  }
  return problem;
}

std::vector<Sensor> read_sensors(const YamlNode& list) {
  std::vector<Sensor> sensors;
  for (const YamlNode& node : list.items()) {
    Sensor sensor;
    const YamlNode name = node.at("name");
    sensor.name = name.text();
    refuse_twice(name, sensor.name, sensors, "sensor");
    const auto rate = node.find("rate_hz");
    const auto period = node.find("period_ms");
    if (rate.has_value() == period.has_value()) {
      node.error("give either 'rate_hz' or 'period_ms'");
    } else if (rate) {
      sensor.period = {std::llround(1e9 / rate->number(0.01, kMostHz))};
    } else {
      sensor.period = period->milliseconds(0.01, kMostMs);
    }
    const YamlNode delay = node.at("delay_ms");
    const std::vector<double> ends = delay.numbers(2, 0, kMostMs);
    if (ends.size() == 2) {
      sensor.delay_min = {std::llround(ends[0] * 1e6)};
      sensor.delay_max = {std::llround(ends[1] * 1e6)};
      if (sensor.delay_max < sensor.delay_min) delay.error("the shortest delay comes first");
    }
    if (const auto drift = node.find("drift_ppm")) sensor.drift_ppm = drift->number(0, 100'000);
    const auto phase = node.find("phase_ms");
    const auto jitter = node.find("phase_jitter_ms");
    if (phase) sensor.phase = Sensor::Phase{phase->milliseconds(0, kMostMs), {}};
    if (jitter && !phase) jitter->error("only a sensor with 'phase_ms' has a phase jitter");
    if (jitter && phase) sensor.phase->jitter = jitter->milliseconds(0, kMostMs);
    sensors.push_back(std::move(sensor));
  }
  return sensors;
}

bool is_problem_file(const std::string& path) {
  const Result<YamlDocument> document = YamlDocument::load(path);
  return document && document->root().is_map() && document->root().find("sensors").has_value();
}

Result<Problem> load_problem(const std::string& path, const std::string& board_file) {
  TAKT_ASSIGN(LoadedProblem loaded, load_problem_and_modes(path, board_file));
  if (loaded.modes) {
    return fail(Code::kConfiguration,
                path + ": it has modes, and one table is asked for; `takt schedule` answers for all");
  }
  return std::move(loaded.problem);
}

Result<LoadedProblem> load_problem_and_modes(const std::string& path, const std::string& board_file) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  const YamlNode root = document.root();
  const std::string name = root.at("name").text();
  const YamlNode board_node = root.at("board");
  Board board;
  const std::filesystem::path own_board = std::filesystem::path(path).parent_path() / board_node.text();
  Result<Board> loaded = load_board(board_file.empty() ? own_board.string() : board_file);
  if (loaded) {
    board = *std::move(loaded);
  } else if (!board_file.empty()) {
    return fail(std::move(loaded).error());
  } else {
    board_node.error("the board cannot be read: " + loaded.error().message);
  }
  const std::vector<Sensor> sensors = read_sensors(root.at("sensors"));
  LoadedProblem out;
  out.problem = read_problem(root, name, board, sensors);
  out.modes = read_modes(root, out.problem);
  TAKT_RETURN_IF_ERROR(document.finish());
  check_in_place(root, out.problem);
  if (out.modes) check_in_place(root, *out.modes);
  TAKT_RETURN_IF_ERROR(document.finish());
  return out;
}

BudgetTable read_budgets(const YamlNode& root) {
  BudgetTable table;
  table.board = root.at("board").text();
  if (const auto machine = root.find("machine")) table.machine = machine->text();
  if (const auto w = root.find("wakeup_window_us")) table.wakeup_window = w->microseconds(200, 5000);
  if (const auto p = root.find("publish_window_us")) table.publish_window = p->microseconds(200, 5000);
  for (const YamlNode& node : root.at("budgets").items()) {
    StageBudget entry;
    entry.budget.place = node.where();
    entry.stage = node.at("stage").text();
    entry.variant = node.at("variant").text();
    entry.budget.cores = static_cast<int>(node.at("cores").integer(1, kMaxGang));
    entry.budget.time = node.at("budget_ms").milliseconds(kLeastMs, kMostMs);
    read_high_water(node.at("high_water_ms"), entry.budget);
    entry.budget.margin = node.at("margin").number(1, 100);
    read_steps(node, entry.budget);
    read_segment_times(node, entry.budget);
    entry.budget.samples =
        static_cast<std::uint64_t>(node.at("samples").integer(0, std::numeric_limits<std::int64_t>::max()));
    const std::string word = node.at("provenance").one_of({"declared", "exploratory", "profiled"});
    entry.budget.provenance = word == "profiled"      ? Provenance::kProfiled
                              : word == "exploratory" ? Provenance::kExploratory
                                                      : Provenance::kDeclared;
    if (const auto bears = node.find("interference")) entry.budget.interference = interference_of(*bears);
    if (const auto beside = node.find("beside")) {
      for (const YamlNode& one : beside->items()) entry.beside.push_back(one.text());
    }
    const auto same = std::find_if(table.budgets.begin(), table.budgets.end(), [&entry](const StageBudget& before) {
      return before.stage == entry.stage && before.variant == entry.variant &&
             before.budget.cores == entry.budget.cores;
    });
    if (same != table.budgets.end()) {
      node.error("there is already a budget for variant '" + entry.variant + "' of stage '" + entry.stage + "' on " +
                 std::to_string(entry.budget.cores) + " core(s), at " + same->budget.place);
    }
    table.budgets.push_back(std::move(entry));
  }
  return table;
}

Result<BudgetTable> load_budgets(const std::string& path) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  BudgetTable table = read_budgets(document.root());
  TAKT_RETURN_IF_ERROR(document.finish());
  return table;
}

}  // namespace takt::sched
