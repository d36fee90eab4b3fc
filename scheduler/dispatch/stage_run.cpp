#include "scheduler/dispatch/stage_run.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <utility>

namespace takt::sched {
namespace {

constexpr std::uint32_t kQuit = std::numeric_limits<std::uint32_t>::max();

}  // namespace

StageRun::StageRun(const SharedByRuns& shared, std::vector<std::uint32_t> cores,
                   std::vector<std::optional<StagePlan>> plans)
    : shared_(shared),
      host_(*shared.host),
      cores_(std::move(cores)),
      plans_(std::move(plans)),
      gang_(static_cast<int>(cores_.size())) {
  for (std::size_t i = 0; i < cores_.size(); ++i) workers_.push_back(std::make_unique<Worker>());
}

void StageRun::identify(const Job& job, JobRecord& record) const {
  record = JobRecord{};
  record.stage = job.stage;
  record.slot = job.slot;
  record.job = job.number;
  record.hyperperiod = job.hyperperiod;
  record.variant = job.variant;
  record.mode = job.mode;
  record.cores = static_cast<std::uint32_t>(cores_.size());
  record.nominal_start = job.nominal_start.ns;
  record.slot_end = job.slot_end.ns;
  if (job.segments.size() > 1) record.segment_count = static_cast<std::uint8_t>(job.segments.size());
}

const JobRecord* StageRun::pass(const Job& asked) {
  Job job = asked;
  job.variant = plans_[job.mode]->admitted.index;
  shared_.state->skipped_since.store(true);
  return skip(job, in_flight() != nullptr ? Reason::kPreviousRunning : Reason::kSlotOver);
}

const JobRecord* StageRun::skip(const Job& job, Reason reason) {
  identify(job, skipped_);
  skipped_.reason = reason;
  classify(skipped_, plans_[job.mode]->admitted.limits);
  return &skipped_;
}

bool StageRun::take() {
  StageRun* nobody = nullptr;
  return shared_.state->taken.compare_exchange_strong(nobody, this);
}

const StagePlan::Variant& StageRun::variant() const {
  const bool degraded = plan().degraded && job_.variant == plan().degraded->index;
  return degraded ? *plan().degraded : plan().admitted;
}

const SegmentPlan* StageRun::segment_plan(std::uint32_t segment) const {
  const std::vector<SegmentPlan>& segments = variant().segments;
  return segment < segments.size() ? &segments[segment] : nullptr;
}

bool StageRun::on_unit() const {
  const SegmentPlan* const segment = segment_plan(segment_.load());
  return segment != nullptr && segment->unit != nullptr;
}

Duration StageRun::segment_budget() const {
  const SegmentPlan* const segment = segment_plan(segment_.load());
  return segment != nullptr ? segment->budget : limits().budget;
}

void StageRun::let_go(const SegmentPlan* segment) {
  if (segment == nullptr) return;
  for (Token* const mutex : segment->mutexes) mutex->give_back();
  if (segment->unit != nullptr) segment->unit->give_back();
}

bool StageRun::take(const SegmentPlan& segment, HostTime limit, Reason& refused) {
  refused = Reason::kUnit;
  if (segment.unit != nullptr && !segment.unit->take_by(limit)) return false;
  refused = Reason::kArena;
  for (std::size_t taken = 0; taken < segment.mutexes.size(); ++taken) {
    if (segment.mutexes[taken]->take_by(limit)) continue;
    while (taken > 0) segment.mutexes[--taken]->give_back();
    if (segment.unit != nullptr) segment.unit->give_back();
    return false;
  }
  return true;
}

void StageRun::charge(const ThreadCost& cost) {
  record_.page_faults += static_cast<std::uint32_t>(cost.page_faults);
  record_.major_faults += static_cast<std::uint32_t>(cost.major_faults);
  record_.voluntary_switches += static_cast<std::uint32_t>(cost.voluntary_switches);
  record_.involuntary_switches += static_cast<std::uint32_t>(cost.involuntary_switches);
  record_.copied_bytes += cost.copied_bytes;
  record_.allocations += static_cast<std::uint32_t>(cost.allocations);
}

const JobRecord* StageRun::start(const Job& asked, TableTime publish_at, Duration patience,
                                 const Gang::Limits& limits_asked) {
  Job job = asked;
  const StagePlan& plan = *plans_[job.mode];
  job.variant = plan.admitted.index;
  StageState& state = *shared_.state;
  // Here, or at the home of the mode before.
  if (running_.load() != 0 || !take()) {
    state.skipped_since.store(true);
    return skip(job, Reason::kPreviousRunning);
  }
  if (job.seen != nullptr) {
    job.variant = job.seen->variant;
  } else {
    if (plan.degraded && state.degraded_jobs > 0) job.variant = plan.degraded->index;
    const bool skipped = state.skipped_since.exchange(false);
    if (std::exchange(state.skip_next, false) && !skipped) {
      give_back();
      return skip(job, Reason::kSkipNext);
    }
  }
  if (plan.arena != nullptr && !plan.arena->take()) {
    give_back();
    return skip(job, Reason::kArena);
  }
  job_ = job;
  publish_at_ = publish_at;
  Reason refused = Reason::kNone;
  const SegmentPlan* const first = segment_plan(0);
  const HostTime limit = host_now() + patience;
  if (first != nullptr && !take(*first, limit, refused)) {
    if (plan.arena != nullptr) plan.arena->give_back();
    give_back();
    return skip(job, refused);
  }
  identify(job, record_);
  const ThreadCost before = ThreadCost::of_this_thread();
  // What is left of it; zero is without limit.
  const Duration rest = patience.ns > 0 ? std::max(limit - host_now(), nanoseconds(1)) : patience;
  const bool runs = host_.latch(job_, rest, record_);
  if (!runs) {
    host_.discard(job_);
    host_.finish(job_, record_);
    let_go(first);
    if (plan.arena != nullptr) plan.arena->give_back();
    give_back();
    classify(record_, limits());
    return &record_;
  }
  add_hand_over(ThreadCost::of_this_thread() - before);
  Gang::Limits limits_now = limits_asked;
  segment_.store(0);
  last_segment_.store(job.segments.empty() ? 0 : static_cast<std::uint32_t>(job.segments.size() - 1));
  noted_ = given_up_ = overruns_ = false;
  if (plan.overrun == OverrunPolicy::kAbort && limits_asked.end) limits_now.budget = segment_budget();
  gang_.begin(limits_now);
  for (const auto& worker : workers_) {
    worker->isolated.store(false, std::memory_order_relaxed);
    worker->forgone.store(false, std::memory_order_relaxed);
    static_cast<void>(worker->isolation.take_deferred());
    worker->cost = {};
  }
  start_round();
  running_.store(tag_of(job));
  return nullptr;
}

void StageRun::start_round() {
  for (const auto& worker : workers_) worker->start.store({}, std::memory_order_relaxed);
  inside_.store(static_cast<std::uint32_t>(workers_.size()));
  remaining_.store(static_cast<std::uint32_t>(workers_.size()));
  round_.fetch_add(1);
}

bool StageRun::has_ended() {
  if (!on_unit()) return remaining_.load() == 0;
  const std::optional<Duration> worked = host_.ended();
  // It began later than it was told to, if it was still seen at work then.
  unit_end_ = worked ? std::max(unit_begin_ + *worked, unit_end_) : host_now();
  return worked.has_value();
}

bool StageRun::await_end(HostTime limit) {
  if (!on_unit()) return remaining_.wait_until(limit, [](std::uint32_t value) { return value == 0; });
  constexpr timespec kPause{0, 50'000};
  while (!has_ended()) {
    if (host_now() >= limit) return false;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &kPause, nullptr);
  }
  return true;
}

void StageRun::note(TableTime start, TableTime end) {
  const std::uint32_t segment = segment_.load();
  if (segment == 0) record_.actual_start = start.ns;
  record_.completion = end.ns;
  if (record_.segment_count != 0) record_.segments[segment] = {start.ns, end.ns};
  let_go(segment_plan(segment));
  noted_ = true;
  if (aborted() && !job_.last_segment()) give_up();
}

bool StageRun::leads_to_mode() const {
  return plan().overrun == OverrunPolicy::kDegrade && plan().degraded_mode && shared_.control != nullptr;
}

bool StageRun::has_begun() const {
  return on_unit() || std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) {
           return worker->start.load(std::memory_order_relaxed) != HostTime{};
         });
}

void StageRun::overdue(TableTime now, Duration worked) {
  // It may have ended since that was read, within its budget.
  if (!overruns_ && !given_up_ && leads_to_mode() && worked > segment_budget() && !has_ended()) {
    overruns_ = true;
    shared_.control->overruns(*plan().degraded_mode, record_.stage, record_.job);
  }
  const SegmentPlan* const plan = segment_plan(segment_.load());
  if (plan == nullptr || job_.segments.empty()) return;
  const TableTime end = job_.nominal_start + job_.segments[segment_.load()].end;
  if (now < end) return;
  for (Token* const mutex : plan->mutexes) mutex->overdue();
  if (plan->unit != nullptr && now >= end + plan->guard) plan->unit->overdue();
}

void StageRun::begin_next(const Begin& when) {
  const std::uint32_t next = segment_.load() + 1;
  const SegmentPlan& plan = *segment_plan(next);
  Reason refused = Reason::kNone;
  if (host_now() > when.latest) return give_up(Reason::kSlotOver);
  if (!take(plan, when.patience, refused)) return give_up(refused);
  job_.segment = next;
  noted_ = false;
  if (plan.unit != nullptr) {
    segment_.store(next);
    unit_begin_ = unit_end_ = host_now();
    const ThreadCost before = ThreadCost::of_this_thread();
    host_.begin(job_);
    add_hand_over(ThreadCost::of_this_thread() - before);
    return;
  }
  Gang::Limits limits = when.limits;
  if (this->plan().overrun == OverrunPolicy::kAbort && limits.end) limits.budget = plan.budget;
  gang_.resume(limits);
  start_round();
  segment_.store(next);
  for (std::size_t part = 0; part < workers_.size(); ++part) release(static_cast<int>(part));
}

void StageRun::give_up(Reason reason) {
  given_up_ = true;
  if (record_.reason == Reason::kNone) record_.reason = reason;
}

void StageRun::forgo(int part) {
  give_up(Reason::kSlotOver);
  workers_[static_cast<std::size_t>(part)]->forgone.store(true, std::memory_order_relaxed);
}

void StageRun::decide(const Job& job) {
  if (workers_.size() == 1) return;
  const std::uint32_t tag = tag_of(job);
  decided_.store(tag);
  decided_.wake_all();
  // Either the other dispatcher sees the decision after give_up(), or this sees that it gave up; a part released twice
  // runs once.
  if (running_.load() != tag) return;
  for (std::size_t part = 1; part < workers_.size(); ++part) {
    if (workers_[part]->gave_up.load() >= tag) release(static_cast<int>(part));
  }
}

void StageRun::await_free(HostTime limit) {
  static_cast<void>(running_.wait_until(limit, [](std::uint32_t tag) { return tag == 0; }));
}

bool StageRun::await_decision(const Job& job, HostTime limit) {
  return decided_.wait_until(limit, [tag = tag_of(job)](std::uint32_t decided) { return decided >= tag; });
}

void StageRun::await_decision(std::uint32_t tag) {
  decided_.wait([tag](std::uint32_t decided) { return decided >= tag; });
}

void StageRun::give_up(const Job& job, int part) {
  workers_[static_cast<std::size_t>(part)]->gave_up.store(tag_of(job));
}

void StageRun::release(int part) {
  Worker& worker = *workers_[static_cast<std::size_t>(part)];
  worker.ticket.raise(round_.load());
  worker.ticket.wake_all();
}

bool StageRun::busy(int part) const {
  const Worker& worker = *workers_[static_cast<std::size_t>(part)];
  return worker.ticket.load() != worker.finished.load();
}

void StageRun::isolate(int part) {
  Worker& worker = *workers_[static_cast<std::size_t>(part)];
  worker.isolated.store(true, std::memory_order_relaxed);
  worker.isolation.hold_back();
  gang_.end_slot();
}

HostTime StageRun::last_start() const {
  if (on_unit()) return unit_begin_;
  HostTime last = workers_.front()->start.load(std::memory_order_relaxed);
  for (const auto& worker : workers_) last = std::max(last, worker->start.load(std::memory_order_relaxed));
  return last;
}

HostTime StageRun::last_end() const {
  if (on_unit()) return unit_end_;
  HostTime last = workers_.front()->end;
  for (const auto& worker : workers_) last = std::max(last, worker->end);
  return last;
}

void StageRun::publish() {
  const ThreadCost before = ThreadCost::of_this_thread();
  host_.publish(job_, record_);
  add_hand_over(ThreadCost::of_this_thread() - before);
}

void StageRun::add_hand_over(const ThreadCost& cost) {
  record_.copied_bytes += cost.copied_bytes;
  record_.allocations += static_cast<std::uint32_t>(cost.allocations);
}

void StageRun::discard() {
  host_.discard(job_);
  record_.flags |= kFlagDiscarded;
}

void StageRun::close() {
  host_.finish(job_, record_);
  for (const auto& worker : workers_) {
    record_.cpu_ns += worker->cost.cpu_ns;
    charge(worker->cost);
    if (worker->isolated.load(std::memory_order_relaxed)) record_.flags |= kFlagIsolated;
  }
  note_deferred();
  if (aborted()) {
    record_.flags |= kFlagAborted;
    record_.aborted_at = gang_.aborted_at();
  }
  // Behind the last segment its workers have done that.
  if (given_up_ && !job_.last_segment() && plan().arena != nullptr) plan().arena->give_back();
  judge_segments();
  classify(record_, limits());
  note_overrun();
}

void StageRun::judge_segments() {
  for (std::uint32_t i = 0; i < record_.segment_count; ++i) {
    const SegmentRecord& segment = record_.segments[i];
    if (segment.start == kNever) continue;
    const TableTime nominal = job_.nominal_start + job_.segments[i].start;
    if (segment.start - nominal.ns > limits().wakeup_window.ns) record_.flags |= kFlagLateStart;
    if (segment.end - segment.start > segment_plan(i)->budget.ns) record_.flags |= kFlagOverrun;
  }
}

void StageRun::note_overrun() {
  const StagePlan& plan = this->plan();
  const bool overrun = (record_.flags & kFlagOverrun) != 0;
  shared_.state->skip_next = overrun && plan.overrun == OverrunPolicy::kSkipNext;
  if (plan.overrun != OverrunPolicy::kDegrade) return;
  if (overruns_) {
    shared_.control->has_ended(*plan.degraded_mode);
  } else if (overrun && leads_to_mode()) {
    shared_.control->overran(*plan.degraded_mode, record_.stage, record_.job);
  }
  if (overrun) {
    shared_.state->degraded_jobs = kDegradedJobs;
  } else if (shared_.state->degraded_jobs > 0) {
    --shared_.state->degraded_jobs;
  }
}

void StageRun::note_deferred() {
  for (const auto& worker : workers_) {
    if (worker->isolation.take_deferred()) record_.flags |= kFlagInCall;
  }
}

StageRun::Left StageRun::stop_for_good() {
  constexpr Duration kToStop = seconds(1);
  Left left;
  for (int part = 0; part < static_cast<int>(workers_.size()); ++part) {
    if (!busy(part)) continue;
    left.stopped = isolation(part).stop_for_good(kToStop) && left.stopped;
    left.parts.push_back(part);
  }
  return left;
}

void StageRun::abandon(const Left& left, TableTime start, TableTime now) {
  note_deferred();
  if (record_.actual_start == kNever) record_.actual_start = start.ns;
  record_.completion = now.ns;
  record_.flags |= left.parts.empty() ? kFlagStuck : kFlagStuck | kFlagIsolated;
  if (!noted_ && record_.segment_count != 0) record_.segments[segment_.load()] = {start.ns, now.ns};
  discard();
  host_.finish(job_, record_);
  judge_segments();
  classify(record_, limits());
}

void StageRun::free() {
  give_back();
  running_.store(0);
  running_.wake_all();
}

void StageRun::work(int part) {
  Worker& self = *workers_[static_cast<std::size_t>(part)];
  self.isolation.adopt();
  std::uint32_t done = 0;
  for (;;) {
    const std::uint32_t ticket = self.ticket.wait([done](std::uint32_t value) { return value != done; });
    if (ticket == kQuit) return;
    done = ticket;
    const HostTime start = host_now();
    self.start.store(start, std::memory_order_relaxed);
    if (part == 0) gang_.started(start);
    const ThreadCost before = ThreadCost::of_this_thread();
    if (!self.forgone.load(std::memory_order_relaxed)) host_.run(job_, part, gang_);
    self.end = host_now();
    const ThreadCost cost = ThreadCost::of_this_thread() - before;
    self.cost += cost;
    self.total_cpu_ns += cost.cpu_ns;
    self.finished.store(ticket);
    const bool last_inside = inside_.fetch_sub(1) == 1;
    if (last_inside && plan().arena != nullptr && job_.last_segment()) plan().arena->give_back();
    if (remaining_.subtract(1) == 0) remaining_.wake_all();
  }
}

void StageRun::quit() {
  for (const auto& worker : workers_) {
    worker->ticket.raise(kQuit);
    worker->ticket.wake_all();
  }
}

}  // namespace takt::sched
