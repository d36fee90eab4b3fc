#include "scheduler/model/yaml.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "runtime/base/suggest.h"
#include "scheduler/model/text.h"

namespace takt::sched {
namespace {

constexpr double kMostMs = 100'000;
constexpr double kMostMb = 1e9;
constexpr std::int64_t kMostJobs = 20'000;  // per hyperperiod: what a search still gets through

std::int64_t read_megabytes(const YamlNode& node) {
  return static_cast<std::int64_t>(std::llround(node.number(0, kMostMb) * 1e6));
}

template <class T>
std::vector<std::string> names(const std::vector<T>& list) {
  std::vector<std::string> out;
  for (const T& item : list) out.push_back(item.name);
  return out;
}

// Index of the item called `node` in `list`; records an error and returns nullopt when there is none.
template <class T>
std::optional<std::uint32_t> reference(const YamlNode& node, const std::vector<T>& list, const char* kind) {
  const std::string name = node.text();
  if (name.empty()) return std::nullopt;  // an error was recorded already
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return static_cast<std::uint32_t>(i);
  }
  node.error(std::string("unknown ") + kind + " '" + name + "'" + did_you_mean(name, names(list)));
  return std::nullopt;
}

template <class T>
void refuse_twice(const YamlNode& node, const std::string& name, const std::vector<T>& known, const char* kind) {
  const auto same = [&](const T& item) { return item.name == name; };
  if (!name.empty() && std::any_of(known.begin(), known.end(), same)) {
    node.error(std::string("there is already a ") + kind + " named '" + name + "'");
  }
}

// Hz to jobs per hyperperiod, which must be a whole number.
std::int64_t read_rate(const YamlNode& node, Duration hyperperiod) {
  const double hz = node.number(0.001, 100'000);
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

Budget read_budget(const YamlNode& node) {
  Budget budget;
  if (const auto cores = node.find("cores")) budget.cores = static_cast<int>(cores->integer(1, kMaxGang));
  budget.time = node.at("ms").milliseconds(0.001, kMostMs);
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
  if (const auto high_water = node.find("high_water_ms")) budget.high_water = high_water->milliseconds(0, kMostMs);
  return budget;
}

Variant read_variant(const YamlNode& node) {
  Variant variant;
  variant.name = node.at("name").text();
  const YamlNode list = node.at("budgets");
  for (const YamlNode& item : list.items()) {
    const Budget budget = read_budget(item);
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
  return variant;
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

Board read_board(const YamlNode& root) {
  Board board;
  board.name = root.at("name").text();
  if (const auto error = root.find("clock_error_us")) board.clock_error = error->microseconds(0, 1000);
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
    if (const auto reserve = node.find("reserve")) core.reserve = reserve->number(0, 0.9);
    core.wakeup_window = node.at("wakeup_window_us").microseconds(200, 5000);
    core.publish_window = node.at("publish_window_us").microseconds(200, 5000);
    board.cores.push_back(core);
  }
  if (list.is_sequence() && board.cores.empty()) list.error("at least one core is needed");
  return board;
}

Result<Board> load_board(const std::string& path) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  Board board = read_board(document.root());
  TAKT_RETURN_IF_ERROR(document.finish());
  return board;
}

Duration read_hyperperiod(const YamlNode& root) {
  const Duration hyperperiod = root.at("hyperperiod_ms").milliseconds(0.01, kMostMs);
  return std::max(hyperperiod, microseconds(10));
}

std::vector<Stage> read_stages(const YamlNode& list, Duration hyperperiod, const std::vector<Sensor>& sensors) {
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
      Variant variant = read_variant(item);
      refuse_twice(item, variant.name, stage.variants, "variant");
      stage.variants.push_back(std::move(variant));
    }
    if (variants.is_sequence() && stage.variants.empty()) variants.error("at least one variant is needed");
    if (const auto overrun = node.find("overrun")) {
      if (overrun->one_of({"continue_late"}) == "continue_late") stage.overrun = OverrunPolicy::kContinueLate;
    }
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
    if (const auto limits = node.find("limit_ms")) {
      constexpr const char* kKeys[kQuantities] = {"latency", "reaction", "age_at_output", "age_until_replaced"};
      for (std::size_t q = 0; q < kQuantities; ++q) {
        if (const auto limit = limits->find(kKeys[q])) chain.limits[q] = limit->milliseconds(0.001, kMostMs);
      }
    }
    chains.push_back(std::move(chain));
  }
  return chains;
}

Problem read_problem(const YamlNode& root, const std::string& name, const Board& board,
                     const std::vector<Sensor>& sensors) {
  Problem problem;
  problem.name = name;
  problem.board = board;
  problem.sensors = sensors;
  problem.hyperperiod = read_hyperperiod(root);
  problem.stages = read_stages(root.at("stages"), problem.hyperperiod, sensors);
  if (const auto chains = root.find("chains")) problem.chains = read_chains(*chains, sensors, problem.stages);
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
      sensor.period = {std::llround(1e9 / rate->number(0.01, 100'000))};
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

Result<Problem> load_problem(const std::string& path) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  const YamlNode root = document.root();
  const std::string name = root.at("name").text();
  const YamlNode board_node = root.at("board");
  Board board;
  const std::filesystem::path board_path = std::filesystem::path(path).parent_path() / board_node.text();
  Result<Board> loaded = load_board(board_path.string());
  if (loaded) {
    board = *std::move(loaded);
  } else {
    board_node.error("the board cannot be read: " + loaded.error().message);
  }
  const std::vector<Sensor> sensors = read_sensors(root.at("sensors"));
  Problem problem = read_problem(root, name, board, sensors);
  TAKT_RETURN_IF_ERROR(document.finish());
  TAKT_RETURN_IF_ERROR(check(problem).map_error([&](Error error) { return std::move(error).with_context(path); }));
  return problem;
}

BudgetTable read_budgets(const YamlNode& root) {
  BudgetTable table;
  table.board = root.at("board").text();
  if (const auto machine = root.find("machine")) table.machine = machine->text();
  if (const auto w = root.find("wakeup_window_us")) table.wakeup_window = w->microseconds(200, 5000);
  if (const auto p = root.find("publish_window_us")) table.publish_window = p->microseconds(200, 5000);
  for (const YamlNode& node : root.at("budgets").items()) {
    StageBudget entry;
    entry.stage = node.at("stage").text();
    entry.variant = node.at("variant").text();
    entry.budget.cores = static_cast<int>(node.at("cores").integer(1, kMaxGang));
    entry.budget.time = node.at("budget_ms").milliseconds(0.001, kMostMs);
    entry.budget.high_water = node.at("high_water_ms").milliseconds(0, kMostMs);
    entry.budget.margin = node.at("margin").number(1, 100);
    entry.budget.samples =
        static_cast<std::uint64_t>(node.at("samples").integer(0, std::numeric_limits<std::int64_t>::max()));
    const std::string word = node.at("provenance").one_of({"declared", "exploratory", "profiled"});
    entry.budget.provenance = word == "profiled"      ? Provenance::kProfiled
                              : word == "exploratory" ? Provenance::kExploratory
                                                      : Provenance::kDeclared;
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
