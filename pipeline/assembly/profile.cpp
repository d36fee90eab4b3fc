#include "pipeline/assembly/profile.h"

#include <pthread.h>
#include <sched.h>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <thread>

#include "pipeline/assembly/co_runners.h"
#include "pipeline/assembly/environment.h"
#include "runtime/base/sizes.h"
#include "runtime/exec/offload.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/thread_cost.h"

namespace takt::pipeline {
namespace {

constexpr std::uint32_t kSeeds = 8;  // different hostile inputs in turn: one input alone would sit in the caches
constexpr int kWorkerPriority = 50;  // as in a run
constexpr Duration kLeastSegment = microseconds(1);

// A payload in ordinary memory with the alignment and tail padding of a chunk.
struct Buffer {
  transport::ChunkHeader header;
  std::size_t bytes;
  std::unique_ptr<std::byte, void (*)(void*)> payload;
  explicit Buffer(std::uint64_t capacity)
      : bytes(round_up(capacity + transport::kTailPadding, transport::kPayloadAlignment)),
        payload(static_cast<std::byte*>(std::aligned_alloc(transport::kPayloadAlignment, bytes)), std::free) {
    std::fill_n(payload.get(), bytes, std::byte{0});
  }
};

std::string pin(int cpu, int priority) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  std::string refused;
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) refused = "affinity";
  sched_param parameter{};
  parameter.sched_priority = priority;
  if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter) != 0) {
    refused += (refused.empty() ? "" : ", ") + std::string("SCHED_FIFO");
  }
  return refused;
}

// The kernel stops real-time threads that leave no idle time within a second: rest a third of what was worked.
void rest(Duration worked) {
  timespec pause{0, std::min<long>(worked.ns / 3 + 20'000, 900'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
}

// Job n on the next of its hostile inputs.
void prepare_job(std::uint64_t n, std::vector<std::vector<std::unique_ptr<Buffer>>>& inputs, Buffer& output,
                 StageJob& job, std::vector<StageInput>& latched) {
  // Stamps advance as in a drive, so that filters predict over a real time step.
  const std::int64_t now = static_cast<std::int64_t>(n + 1) * 50'000'000;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Buffer& buffer = *inputs[i][n % kSeeds];
    buffer.header.job = n;
    buffer.header.capture_ns = now;
    buffer.header.arrival_ns = now;
    latched[i].chunk = {&buffer.header, buffer.payload.get()};
  }
  output.header = {};
  job = {};
  job.number = n;
  job.now = {now};
  job.inputs = latched;
  job.output_header = &output.header;
  job.output = output.payload.get();
}

// A job that lost more than this to the hypervisor is measured again.
constexpr Duration kTaken = microseconds(500);

// What the hypervisor took of a thread that ran for `wall`: no other thread had its core, and yet it did not run.
// Nothing where the kernel has never counted steal: there is no hypervisor that takes.
Duration taken(const sched::ThreadCost& cost, Duration wall, bool steals) {
  if (!steals || cost.voluntary_switches + cost.involuntary_switches > 0) return {};
  return std::max(Duration{}, wall - Duration{cost.cpu_ns});
}

// One measured configuration: `parts` pinned threads run the phases of a job together, as a gang of workers does.
class Bench {
 public:
  Bench(Stage& stage, std::vector<std::vector<std::unique_ptr<Buffer>>>& inputs, const sched::Board& board,
        const sched::Budget& declared)
      : stage_(stage),
        inputs_(inputs),
        board_(board),
        parts_(declared.cores),
        segmented_(!declared.segments.empty()),
        output_(stage.output_bytes()) {}

  // Returns wall times: the first `warm_up` belong to the warm-up, whose steps and segments are not looked at. Jobs
  // that the hypervisor interrupted are not among them, as long as there are not more of them than of the others. A job
  // on a device whose work has slots of its own is run as its dispatcher does, one segment behind the other.
  std::vector<Duration> run(std::uint64_t warm_up, std::uint64_t runs, const std::atomic<bool>* stop,
                            const std::function<void()>& tick) {
    std::vector<Duration> times;
    times.reserve(runs);
    steps_.assign(static_cast<std::size_t>(stage_.phases()), {});
    segments_.assign(segmented_ ? stage_.offload()->submissions() + 2 : 0, {});
    std::vector<Duration> steps = steps_;  // of one job
    std::vector<SegmentTimes> segments = segments_;
    const int before_device = segmented_ ? stage_.behind_device() : 0;
    std::vector<std::string> refused(static_cast<std::size_t>(parts_));
    std::vector<Duration> lost(static_cast<std::size_t>(parts_));
    const bool steals = read_cpu_times().steal > 0;
    std::vector<StageInput> latched(inputs_.size());
    StageJob job;
    std::atomic<bool> go_on{true};
    sched::Gang start(parts_), phases(parts_), end(parts_);
    const auto work = [&](int part) {
      refused[static_cast<std::size_t>(part)] =
          pin(board_.cores[static_cast<std::size_t>(part) % board_.cores.size()].cpu, kWorkerPriority);
      for (std::uint64_t n = 0;; ++n) {
        if (part == 0) {
          go_on = times.size() < runs && (stop == nullptr || !*stop) && failed_.empty();
          prepare_job(n, inputs_, output_, job, latched);
        }
        static_cast<void>(start.arrive_and_wait(part));
        if (!go_on) return;
        const sched::ThreadCost before = sched::ThreadCost::of_this_thread();
        const HostTime begin = host_now();
        HostTime step_begin = begin;
        for (int phase = 0; phase < stage_.phases(); ++phase) {
          if (segmented_ && part == 0 && phase == before_device) {
            segments.front().time = host_now() - begin;
            run_on_device(segments);
            step_begin = host_now();
          }
          if (stage_.parallel(phase)) {
            stage_.run(phase, part, parts_, job);
          } else if (part == 0) {
            stage_.run(phase, 0, 1, job);
          }
          static_cast<void>(phases.arrive_and_wait(part));
          if (part != 0) continue;
          const HostTime step_end = host_now();
          steps[static_cast<std::size_t>(phase)] = step_end - step_begin;
          step_begin = step_end;
        }
        if (segmented_ && part == 0) segments.back().time = host_now() - behind_;
        const Duration time = host_now() - begin;
        lost[static_cast<std::size_t>(part)] = taken(sched::ThreadCost::of_this_thread() - before, time, steals);
        static_cast<void>(end.arrive_and_wait(part));
        if (part == 0 && job.failed) {
          failed_ = why_failed();
        } else if (part == 0) {
          stage_.published();
          const Duration most = *std::max_element(lost.begin(), lost.end());
          if (most > kTaken && interrupted_ < runs) {
            ++interrupted_;
            most_taken_ = std::max(most_taken_, most);
          } else {
            for (std::size_t i = 0; times.size() >= warm_up && i < steps.size(); ++i) {
              steps_[i] = std::max(steps_[i], steps[i]);
            }
            for (std::size_t i = 0; times.size() >= warm_up && i < segments.size(); ++i)
              segments_[i].cover(segments[i]);
            times.push_back(time);
            tick();
          }
        }
        rest(time);
      }
    };
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(parts_));
    for (int part = 0; part < parts_; ++part) threads.emplace_back(work, part);
    for (std::thread& thread : threads) thread.join();
    refused_ = refused.front();
    return times;
  }
  [[nodiscard]] std::uint64_t interrupted() const { return interrupted_; }
  [[nodiscard]] Duration most_taken() const { return most_taken_; }
  [[nodiscard]] const std::string& refused() const { return refused_; }
  // Why a job did not do its work, after which none was run; "": all did.
  [[nodiscard]] const std::string& failed() const { return failed_; }
  // The longest time of each step of a job, from the meeting of all parts before it to the one behind it.
  [[nodiscard]] const std::vector<Duration>& steps() const { return steps_; }
  // The longest times of each segment; empty where the budget has none.
  [[nodiscard]] const std::vector<SegmentTimes>& segments() const { return segments_; }

 private:
  [[nodiscard]] std::string why_failed() const {
    const exec::Offload& offload = *stage_.offload();
    if (const char* const lost = offload.lost()) return std::string("its device is lost: ") + lost;
    return "its device refused submission " + std::to_string(offload.refused_at() + 1) + " of " +
           std::to_string(offload.submissions()) + " of a job";
  }
  // What a dispatcher begins at the slots of units: timed as it times them, from before it tells the device to begin.
  void run_on_device(std::vector<SegmentTimes>& segments) {
    exec::Offload& offload = *stage_.offload();
    for (std::size_t i = 1; i + 1 < segments.size(); ++i) {
      const Duration launched = offload.launch();
      const HostTime begin = host_now();
      offload.begin();
      std::optional<Duration> worked;
      while (!(worked = offload.ended())) continue;
      segments[i] = {host_now() - begin, offload.launch() - launched, *worked};
    }
    behind_ = host_now();
  }

  Stage& stage_;
  std::vector<std::vector<std::unique_ptr<Buffer>>>& inputs_;
  const sched::Board& board_;
  int parts_;
  bool segmented_;
  HostTime behind_;  // the device's work of the job
  Buffer output_;
  std::string refused_, failed_;
  std::vector<Duration> steps_;
  std::vector<SegmentTimes> segments_;
  std::uint64_t interrupted_ = 0;
  Duration most_taken_;
};

// A stage with its inputs at declared capacity, as hostile as it knows them.
struct Measured {
  std::unique_ptr<Stage> stage;
  std::vector<std::vector<std::unique_ptr<Buffer>>> inputs;  // by input, by seed

  static Result<Measured> create(const PipelineConfig& config, std::size_t s, std::size_t variant) {
    Measured out;
    TAKT_ASSIGN(out.stage, config.create(s, variant));
    const auto& declared = config.problem.stages[s].inputs;
    out.inputs.resize(declared.size());
    for (std::size_t i = 0; i < declared.size(); ++i) {
      std::uint64_t capacity = 0;
      if (declared[i].from_sensor) {
        capacity = sensors::payload_capacity(config.rig->sensors[declared[i].source]);
      } else {
        TAKT_ASSIGN(auto producer, config.create(declared[i].source, 0));
        capacity = producer->output_bytes();
      }
      for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
        auto buffer = std::make_unique<Buffer>(capacity);
        out.stage->adversarial_input(i, seed, buffer->header, {buffer->payload.get(), capacity});
        out.inputs[i].push_back(std::move(buffer));
      }
    }
    return out;
  }
};

// The other stages as co-runners: each core has its own of each, and runs them in turn, job by job.
class OtherStages {
 public:
  static Result<std::shared_ptr<OtherStages>> create(const PipelineConfig& config, std::size_t measured) {
    auto out = std::make_shared<OtherStages>();
    for (std::size_t core = 0; core < config.problem.board.cores.size(); ++core) {
      OfCore& of_core = out->cores_.emplace_back();
      for (std::size_t s = 0; s < config.problem.stages.size(); ++s) {
        if (s == measured) continue;
        TAKT_ASSIGN(Measured other, Measured::create(config, s, 0));
        of_core.outputs.emplace_back(other.stage->output_bytes());
        of_core.stages.push_back(std::move(other));
      }
    }
    return out;
  }
  void run(std::size_t core) {
    OfCore& mine = cores_[core];
    if (mine.stages.empty()) return;
    const std::size_t n = mine.jobs++ % mine.stages.size();
    Measured& other = mine.stages[n];
    std::vector<StageInput> latched(other.inputs.size());
    StageJob job;
    prepare_job(mine.jobs, other.inputs, mine.outputs[n], job, latched);
    for (int phase = 0; phase < other.stage->phases(); ++phase) other.stage->run(phase, 0, 1, job);
    other.stage->published();
  }

 private:
  struct OfCore {
    std::vector<Measured> stages;
    std::vector<Buffer> outputs;
    std::uint64_t jobs = 0;
  };
  std::vector<OfCore> cores_;
};

Result<std::unique_ptr<CoRunners>> company_of(const PipelineConfig& config, std::size_t measured, Beside beside,
                                              int cores) {
  const sched::Board& board = config.problem.board;
  switch (beside) {
    case Beside::kAlone: break;
    case Beside::kStages: {
      TAKT_ASSIGN(auto others, OtherStages::create(config, measured));
      return std::make_unique<CoRunners>(board, cores, [others](std::size_t core) { others->run(core); });
    }
    case Beside::kMemory: {
      auto streams = std::make_shared<MemoryStreams>(board.cores.size());
      return std::make_unique<CoRunners>(board, cores, [streams](std::size_t core) { streams->run(core); });
    }
  }
  return std::unique_ptr<CoRunners>{};
}

Duration quantile(std::vector<Duration> sorted, double q) {
  if (sorted.empty()) return {};
  const auto index = static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1));
  return sorted[index];
}

Status calibrate(const sched::Board& board, Profile& profile) {
  constexpr int kBlocks = 5;
  constexpr Duration kBlock = milliseconds(400);
  std::vector<std::vector<Duration>> dispatched(board.cores.size()), slept(board.cores.size());
  for (int block = 0; block < kBlocks; ++block) {
    TAKT_ASSIGN(const sched::WakeupErrors jobs, sched::measure_wakeup(board, kBlock));
    TAKT_ASSIGN(const sched::WakeupErrors sleeps, sched::measure_sleep(board, kBlock));
    for (std::size_t core = 0; core < board.cores.size(); ++core) {
      dispatched[core].push_back(jobs.p999[core]);
      slept[core].push_back(sleeps.p999[core]);
    }
  }
  for (std::size_t core = 0; core < board.cores.size(); ++core) {
    std::sort(dispatched[core].begin(), dispatched[core].end());
    std::sort(slept[core].begin(), slept[core].end());
    profile.dispatch_error.push_back(dispatched[core][kBlocks / 2]);
    profile.sleep_error.push_back(slept[core][kBlocks / 2]);
  }
  return {};
}

ProfileClass class_of(Beside beside, std::vector<Duration> times, std::uint64_t warm_up) {
  ProfileClass out;
  out.beside = beside;
  const auto measured = times.begin() + static_cast<std::ptrdiff_t>(warm_up);
  if (measured != times.begin()) out.warm_up_max = *std::max_element(times.begin(), measured);
  times.erase(times.begin(), measured);
  out.tail = estimate_tail(times);
  std::sort(times.begin(), times.end());
  out.median = quantile(times, 0.5);
  out.p99 = quantile(times, 0.99);
  out.max = times.back();
  return out;
}

// Each segment by its own largest time; where the budget stood before they were measured, the jobs as wholes did.
void budget_segments(const sched::Budget& declared, ProfileRow& row, const ProfileOptions& options) {
  row.budget.segments = declared.segments;
  row.budget.time = row.budget.high_water = {};
  for (std::size_t i = 0; i < row.segments.size(); ++i) {
    const Duration most = std::max(row.segments[i].time, kLeastSegment);
    row.budget.segments[i].time = sched::budget_from(declared.cores, most, options.margin, options.samples).time;
    row.budget.time += row.budget.segments[i].time;
    row.budget.high_water += most;
  }
}

// Whoever works for a stage's segments on units: what is profiled is to be what runs.
Status check_devices(const PipelineConfig& config) {
  for (std::size_t s = 0; s < config.problem.stages.size(); ++s) {
    for (const sched::Variant& variant : config.problem.stages[s].variants) {
      const bool on_units = std::any_of(variant.budgets.begin(), variant.budgets.end(),
                                        [](const sched::Budget& budget) { return !budget.segments.empty(); });
      if (!on_units || config.stages[s].variant(variant.name).on_device) continue;
      return fail(Code::kConfiguration, config.file + ": stage '" + config.stages[s].name + "', variant '" +
                                            variant.name +
                                            "': its budget has segments on a device, but it runs on "
                                            "the cores: name the device with --device");
    }
  }
  return {};
}

}  // namespace

const char* name_of(Beside beside) {
  switch (beside) {
    case Beside::kAlone: return "alone";
    case Beside::kStages: return "stages";
    case Beside::kMemory: return "memory";
  }
  return "";
}

std::string cores_not_here(const sched::Board& board) {
  cpu_set_t before;
  CPU_ZERO(&before);
  if (sched_getaffinity(0, sizeof before, &before) != 0) return "";
  std::string out;
  for (const sched::Core& core : board.cores) {
    cpu_set_t one;
    CPU_ZERO(&one);
    if (core.cpu < CPU_SETSIZE) CPU_SET(static_cast<unsigned>(core.cpu), &one);  // an empty set is refused
    if (sched_setaffinity(0, sizeof one, &one) == 0) continue;
    out += (out.empty() ? "" : ", ") + core.name + " (CPU " + std::to_string(core.cpu) + ")";
  }
  sched_setaffinity(0, sizeof before, &before);
  return out;
}

Result<Profile> profile_stages(const PipelineConfig& config, const ProfileOptions& options) {
  TAKT_RETURN_IF_ERROR(check_devices(config));
  Profile profile;
  const auto& stages = config.problem.stages;
  double total = 0;
  for (const sched::Stage& stage : stages) {
    for (const sched::Variant& variant : stage.variants) total += static_cast<double>(variant.budgets.size());
  }
  total *= static_cast<double>((options.samples + options.warm_up) * options.beside.size());
  double done = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (std::size_t v = 0; v < stages[s].variants.size(); ++v) {
      for (const sched::Budget& declared : stages[s].variants[v].budgets) {
        ProfileRow row;
        row.stage = stages[s].name;
        row.variant = stages[s].variants[v].name;
        Duration high_water;
        std::vector<Duration> steps;
        for (const Beside beside : options.beside) {
          TAKT_ASSIGN(Measured measured, Measured::create(config, s, v));
          TAKT_ASSIGN(const auto company, company_of(config, s, beside, declared.cores));
          Bench bench(*measured.stage, measured.inputs, config.problem.board, declared);
          std::vector<Duration> times =
              bench.run(options.warm_up, options.warm_up + options.samples, options.stop, [&] {
                if (options.progress) options.progress(++done, total);
              });
          if (!bench.failed().empty()) {
            return fail(Code::kEnvironment, "stage '" + row.stage + "', variant '" + row.variant + "', beside " +
                                                name_of(beside) + ": " + bench.failed() + "; nothing was written");
          }
          if (times.size() < options.warm_up + options.samples) {
            return fail(Code::kInterrupted, "profiling was interrupted; nothing was written");
          }
          if (!bench.refused().empty()) profile.refused = bench.refused();
          row.classes.push_back(class_of(beside, std::move(times), options.warm_up));
          row.classes.back().interrupted = bench.interrupted();
          row.classes.back().most_taken = bench.most_taken();
          high_water = std::max(high_water, row.classes.back().max);
          steps.resize(bench.steps().size());
          for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = std::max(steps[i], bench.steps()[i]);
          row.segments.resize(bench.segments().size());
          for (std::size_t i = 0; i < row.segments.size(); ++i) row.segments[i].cover(bench.segments()[i]);
        }
        row.budget = sched::budget_from(declared.cores, high_water, options.margin, options.samples);
        if (!row.segments.empty()) budget_segments(declared, row, options);
        // The check points of `abort`: with the margin of the whole, each step for itself.
        for (const Duration step : row.segments.empty() ? steps : std::vector<Duration>{}) {
          row.budget.steps.push_back(sched::budget_from(declared.cores, step, options.margin, options.samples).time);
        }
        // Measured without company only, it bears none.
        const bool alone = std::all_of(options.beside.begin(), options.beside.end(),
                                       [](Beside beside) { return beside == Beside::kAlone; });
        if (alone) row.budget.interference = sched::Interference::kNone;
        profile.rows.push_back(std::move(row));
      }
    }
  }
  TAKT_ASSIGN(const sched::WakeupErrors errors, sched::measure_wakeup(config.problem.board, seconds(2)));
  for (const Duration p999 : errors.p999) profile.start_error = std::max(profile.start_error, p999);
  profile.wakeup_window = std::clamp(profile.start_error, microseconds(200), milliseconds(5));
  // The call of the transport itself takes microseconds (tests/bench/transport), far below the least window.
  for (const Duration p999 : errors.publish_p999) profile.publish_error = std::max(profile.publish_error, p999);
  profile.publish_window = std::clamp(profile.publish_error, microseconds(200), milliseconds(5));
  TAKT_RETURN_IF_ERROR(calibrate(config.problem.board, profile));
  return profile;
}

sched::BudgetTable budget_table(const PipelineConfig& config, const Profile& profile) {
  sched::BudgetTable table;
  table.board = config.problem.board.name;
  table.machine = machine_name();
  table.wakeup_window = profile.wakeup_window;
  table.publish_window = profile.publish_window;
  for (const ProfileRow& row : profile.rows) {
    std::vector<std::string> beside;
    for (const ProfileClass& one : row.classes) beside.emplace_back(name_of(one.beside));
    table.budgets.push_back({row.stage, row.variant, row.budget, std::move(beside)});
  }
  return table;
}

}  // namespace takt::pipeline
