#include "pipeline/assembly/profile.h"

#include <pthread.h>
#include <sched.h>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <thread>

#include "pipeline/assembly/environment.h"
#include "runtime/base/sizes.h"
#include "scheduler/dispatch/dispatch.h"

namespace takt::pipeline {
namespace {

constexpr std::uint32_t kSeeds = 8;  // different hostile inputs in turn: one input alone would sit in the caches
constexpr int kWorkerPriority = 50;  // as in a run

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

// One measured configuration: `parts` pinned threads run the phases of a job together, as a gang of workers does.
class Bench {
 public:
  Bench(Stage& stage, std::vector<std::vector<std::unique_ptr<Buffer>>>& inputs, const sched::Board& board, int parts)
      : stage_(stage), inputs_(inputs), board_(board), parts_(parts), output_(stage.output_bytes()) {}

  // Returns wall times: the first `warm_up` belong to the warm-up.
  std::vector<Duration> run(std::uint64_t runs, const std::atomic<bool>* stop, const std::function<void()>& tick) {
    std::vector<Duration> times;
    times.reserve(runs);
    std::vector<std::string> refused(static_cast<std::size_t>(parts_));
    std::vector<StageInput> latched(inputs_.size());
    StageJob job;
    std::atomic<bool> go_on{true};
    sched::Gang start(parts_), phases(parts_);
    const auto work = [&](int part) {
      refused[static_cast<std::size_t>(part)] =
          pin(board_.cores[static_cast<std::size_t>(part) % board_.cores.size()].cpu, kWorkerPriority);
      for (std::uint64_t n = 0; n < runs; ++n) {
        if (part == 0) {
          go_on = stop == nullptr || !*stop;
          prepare(n, job, latched);
        }
        static_cast<void>(start.arrive_and_wait(part));
        if (!go_on) return;
        const HostTime begin = host_now();
        for (int phase = 0; phase < stage_.phases(); ++phase) {
          if (stage_.parallel(phase)) {
            stage_.run(phase, part, parts_, job);
          } else if (part == 0) {
            stage_.run(phase, 0, 1, job);
          }
          static_cast<void>(phases.arrive_and_wait(part));
        }
        const Duration time = host_now() - begin;
        if (part == 0) {
          times.push_back(time);
          stage_.published();
          tick();
        }
        rest(time);
      }
    };
    std::vector<std::thread> threads;
    for (int part = 0; part < parts_; ++part) threads.emplace_back(work, part);
    for (std::thread& thread : threads) thread.join();
    refused_ = refused.front();
    return times;
  }
  [[nodiscard]] const std::string& refused() const { return refused_; }

 private:
  void prepare(std::uint64_t n, StageJob& job, std::vector<StageInput>& latched) {
    // Stamps advance as in a drive, so that filters predict over a real time step.
    const std::int64_t now = static_cast<std::int64_t>(n + 1) * 50'000'000;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      Buffer& buffer = *inputs_[i][n % kSeeds];
      buffer.header.job = n;
      buffer.header.capture_ns = now;
      buffer.header.arrival_ns = now;
      latched[i].chunk = {&buffer.header, buffer.payload.get()};
    }
    output_.header = {};
    job = {};
    job.number = n;
    job.now = {now};
    job.inputs = latched;
    job.output_header = &output_.header;
    job.output = output_.payload.get();
  }

  Stage& stage_;
  std::vector<std::vector<std::unique_ptr<Buffer>>>& inputs_;
  const sched::Board& board_;
  int parts_;
  Buffer output_;
  std::string refused_;
};

Duration quantile(std::vector<Duration> sorted, double q) {
  if (sorted.empty()) return {};
  const auto index = static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1));
  return sorted[index];
}

}  // namespace

Result<Profile> profile_stages(const PipelineConfig& config, const ProfileOptions& options) {
  Profile profile;
  const auto& stages = config.problem.stages;
  double total = 0;
  for (const sched::Stage& stage : stages) {
    for (const sched::Variant& variant : stage.variants) total += static_cast<double>(variant.budgets.size());
  }
  total *= static_cast<double>(options.samples + options.warm_up);
  double done = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (std::size_t v = 0; v < stages[s].variants.size(); ++v) {
      for (const sched::Budget& declared : stages[s].variants[v].budgets) {
        TAKT_ASSIGN(auto stage, config.create(s, v));
        std::vector<std::vector<std::unique_ptr<Buffer>>> inputs(stages[s].inputs.size());
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          const sched::Input& input = stages[s].inputs[i];
          std::uint64_t capacity = 0;
          if (input.from_sensor) {
            capacity = sensors::payload_capacity(config.rig->sensors[input.source]);
          } else {
            TAKT_ASSIGN(auto producer, config.create(input.source, 0));
            capacity = producer->output_bytes();
          }
          for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
            auto buffer = std::make_unique<Buffer>(capacity);
            stage->adversarial_input(i, seed, buffer->header, {buffer->payload.get(), capacity});
            inputs[i].push_back(std::move(buffer));
          }
        }
        Bench bench(*stage, inputs, config.problem.board, declared.cores);
        std::vector<Duration> times = bench.run(options.warm_up + options.samples, options.stop, [&] {
          if (options.progress) options.progress(++done, total);
        });
        if (times.size() < options.warm_up + options.samples) {
          return fail(Code::kInterrupted, "profiling was interrupted; nothing was written");
        }
        if (!bench.refused().empty()) profile.refused = bench.refused();
        ProfileRow row;
        row.stage = stages[s].name;
        row.variant = stages[s].variants[v].name;
        const auto measured = times.begin() + static_cast<std::ptrdiff_t>(options.warm_up);
        if (measured != times.begin()) row.warm_up_max = *std::max_element(times.begin(), measured);
        std::vector<Duration> sorted(measured, times.end());
        std::sort(sorted.begin(), sorted.end());
        row.median = quantile(sorted, 0.5);
        row.p99 = quantile(sorted, 0.99);
        row.budget = sched::budget_from(declared.cores, sorted.back(), options.margin, options.samples);
        profile.rows.push_back(row);
      }
    }
  }
  TAKT_ASSIGN(const sched::WakeupErrors errors, sched::measure_wakeup(config.problem.board, seconds(2)));
  for (const Duration p999 : errors.p999) profile.wakeup_window = std::max(profile.wakeup_window, p999);
  profile.wakeup_window = std::clamp(profile.wakeup_window, microseconds(200), milliseconds(5));
  // The call of the transport itself takes microseconds (tests/bench/transport), far below the least window.
  for (const Duration p999 : errors.publish_p999) profile.publish_window = std::max(profile.publish_window, p999);
  profile.publish_window = std::clamp(profile.publish_window, microseconds(200), milliseconds(5));
  return profile;
}

sched::BudgetTable budget_table(const PipelineConfig& config, const Profile& profile) {
  sched::BudgetTable table;
  table.board = config.problem.board.name;
  table.machine = machine_name();
  table.wakeup_window = profile.wakeup_window;
  table.publish_window = profile.publish_window;
  for (const ProfileRow& row : profile.rows) table.budgets.push_back({row.stage, row.variant, row.budget});
  return table;
}

}  // namespace takt::pipeline
