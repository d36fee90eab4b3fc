#include "scheduler/dispatch/real_time.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <limits>

namespace takt::sched {
namespace {

// What a wake-up from a timer costs. Who sets it so much earlier and then looks at the clock begins on time.
constexpr Duration kEarly = microseconds(20);

void sleep_until(HostTime instant) {
  const HostTime early = instant - kEarly;
  // An instant that is over costs no timer: on a virtual machine one that fires at once takes 20 us.
  if (host_now() < early) {
    const timespec until{.tv_sec = early.ns / 1'000'000'000, .tv_nsec = early.ns % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
  }
  while (host_now() < instant) {
  }
}

}  // namespace

CoreDispatcher::CoreDispatcher(const RunPlan& plan, Boundary& boundary, Watchdog& watchdog, std::uint32_t core)
    : plan_(plan),
      boundary_(boundary),
      watchdog_(watchdog),
      core_(core),
      // Four instants for a slot, and two jobs of a stage at once.
      agenda_(8 * plan.slots()),
      last_wake_{std::numeric_limits<std::int64_t>::min()} {
  for (const ModePlan& mode : plan.modes) starts_.push_back(starts_on(mode.schedule, core));
  for (const auto& stage : plan.runs) {
    if (stage->publisher() == core) published_.push_back({stage.get()});
    if (stage->publisher() == core || stage->lead() == core) mine_.push_back({stage.get(), stage->part_of(core)});
  }
}

TableTime CoreDispatcher::entry(std::uint64_t h) const {
  if (!boundary_.decides()) {  // then it is always the first mode
    return plan_.start_at(boundary_.turn(h), starts_.front().empty() ? 0 : starts_.front().front().tick);
  }
  return h == 0 ? TableTime{0} : boundary_.decision_at(h);
}

void CoreDispatcher::run(const TableClock& clock) {
  clock_ = clock;
  for (std::uint64_t h = 0; boundary_.may_come(h); ++h) {
    sleep_to(entry(h));
    if (!boundary_.enter(h)) break;
    const Turn turn = boundary_.turn(h);
    for (const Start& at : starts_[turn.mode]) {
      sleep_to(plan_.start_at(turn, at.tick));
      start(plan_.job_of(at.slot, turn));
    }
  }
  while (!agenda_.empty()) sleep_to(agenda_.first());
  watchdog_.done(core_);
}

void CoreDispatcher::sleep_to(TableTime target) {
  for (;;) {
    TableTime next = target;
    if (!agenda_.empty()) next = std::min(next, agenda_.first());
    for (const Part& mine : mine_) {
      if (mine.stage->running() == 0 || mine.stage->job().nominal_start > last_wake_) continue;
      const TableTime end = over(mine);
      if (end > last_wake_ && end < next) next = end;
    }
    wake_at(next);
    agenda_.pass(next);
    if (next == target) return;
  }
}

void CoreDispatcher::wake_at(TableTime instant) {
  // Nothing is due in between: who sleeps until then is not behind the table.
  watchdog_.reached(core_, std::max(last_wake_, instant - nanoseconds(1)));
  sleep_until(clock_.host(instant));
  excuse(clock_.table(host_now()) - instant);
  last_wake_ = std::max(last_wake_, instant);
  watchdog_.reached(core_, last_wake_);
  conclude(instant);
  make_room_for_segments(instant);
  isolate(instant);
}

void CoreDispatcher::conclude(TableTime wake) {
  // All looks come first: where one segment's time ends, that of another one on the same unit may begin.
  for (const Published& published : published_) look(*published.stage, wake);
  for (const Published& published : published_) advance(*published.stage, wake);
}

void CoreDispatcher::look(StageRun& stage, TableTime wake) {
  if (stage.running() == 0) return;
  if (!stage.noted()) {
    const TableTime now = clock_.table(host_now());
    if (!stage.has_ended()) {
      return stage.overdue(wake, stage.has_begun() ? now - clock_.table(stage.last_start()) : Duration{});
    }
    stage.note(clock_.table(stage.last_start()), clock_.table(stage.last_end()));
  }
  if (stage.over() && (stage.given_up() || wake >= stage.publish_at())) hand_over(stage, wake);
}

void CoreDispatcher::advance(StageRun& stage, TableTime wake) {
  if (stage.running() == 0 || stage.given_up() || stage.job().last_segment()) return;
  const Job& job = stage.job();
  const SegmentSlot& next = job.segments[job.segment + 1];
  const TableTime begin = job.nominal_start + next.start;
  if (wake < begin) return;
  if (stage.noted()) {
    const HostTime patience = clock_.host(begin + plan_.problem.board.cores[core_].wakeup_window);
    const HostTime latest = clock_.host(stage.latest_start(job, job.segment + 1));
    if (!next.unit) make_room(stage, begin);
    stage.begin_next({.latest = next.unit ? patience + clock_.to_host(next.guard) : latest,
                      .patience = patience,
                      .limits = {.end = clock_.host(stage.deadline_of(job, job.segment + 1)), .budget = {}}});
  } else {
    stage.give_up();
  }
  if (stage.over()) hand_over(stage, wake);
}

void CoreDispatcher::hand_over(StageRun& stage, TableTime wake) {
  JobRecord& record = stage.record();
  if (!stage.given_up() && !stage.aborted() && wake <= stage.deadline() && record.completion <= stage.deadline().ns) {
    stage.publish();
    if (record.published != 0) record.publication = clock_.table(host_now()).ns;
  } else {
    stage.discard();
  }
  agenda_.drop(&stage, tag_of(stage.job()));
  stage.close();
  plan_.sink(core_, record);
  stage.isolation(stage.part_of(core_)).let_go();
  stage.free();
}

bool CoreDispatcher::holds(const Part& mine) {
  return mine.stage->running() != 0 && mine.stage->busy(mine.part) && !mine.stage->isolation(mine.part).held();
}

void CoreDispatcher::excuse(Duration stood_still) {
  if (stood_still <= plan_.problem.board.cores[core_].wakeup_window) return;
  for (Part& mine : mine_) {
    if (holds(mine)) mine.late = std::max(mine.late, stood_still);
  }
}

void CoreDispatcher::isolate(TableTime wake) {
  bool any = false;
  bool wanted = false;
  for (const Part& mine : mine_) {
    Isolation& isolation = mine.stage->isolation(mine.part);
    if (mine.stage->running() != 0 && mine.stage->busy(mine.part)) {
      const bool is_over = wake >= over(mine);
      if (!isolation.held() && is_over) mine.stage->isolate(mine.part);
      if (isolation.held() && !is_over) isolation.let_go();  // a later segment of its job has begun
      wanted = wanted || !isolation.held();
    }
    any = any || isolation.held();
  }
  if (any) share_gap(wanted);
}

void CoreDispatcher::share_gap(bool wanted) {
  for (const Part& mine : mine_) mine.stage->isolation(mine.part).run_in_gap(!wanted);
}

void CoreDispatcher::make_room(StageRun& stage, TableTime begin) {
  const Duration late = clock_.table(host_now()) - begin;
  for (Part& mine : mine_) {
    if (mine.stage == &stage) {
      mine.late = late > plan_.problem.board.cores[core_].wakeup_window ? late : Duration{};
    } else if (holds(mine) && mine.stage->worker_deadline() <= begin) {
      mine.late = begin - mine.stage->worker_deadline();  // no longer than until now
      mine.stage->isolate(mine.part);
    }
  }
}

void CoreDispatcher::make_room_for_segments(TableTime wake) {
  for (const Part& mine : mine_) {
    if (mine.stage->publisher() == core_ || mine.stage->running() == 0) continue;
    const Job& job = mine.stage->job();
    for (std::size_t i = 1; i < job.segments.size(); ++i) {
      const TableTime begin = job.nominal_start + job.segments[i].start;
      if (begin == wake && !job.segments[i].unit) make_room(*mine.stage, begin);
    }
  }
}

void CoreDispatcher::release(StageRun& stage, int part, const Job& job) {
  make_room(stage, job.nominal_start);
  stage.isolation(part).let_go();
  share_gap(true);
  stage.release(part);
}

bool CoreDispatcher::too_late_for(const StageRun& stage, const Job& job) const {
  return host_now() > clock_.host(stage.latest_start(job, 0));
}

void CoreDispatcher::start(const Job& job) {
  StageRun& stage = plan_.run_of(job);
  note(stage, job);
  if (stage.lead() == core_) {
    lead(stage, job);
  } else {
    follow(stage, job);
  }
}

void CoreDispatcher::note(const StageRun& stage, const Job& job) {
  const auto add = [&](TableTime instant) { agenda_.add({instant, &stage, tag_of(job)}); };
  if (stage.publisher() == core_) add(plan_.publish_at(job));
  // Of the segments of a gang, the publisher begins all of them, and every core takes itself back from those on it.
  for (std::uint32_t i = 0; i < job.segments.size(); ++i) {
    const SegmentSlot& slot = job.segments[i];
    const TableTime end = job.nominal_start + slot.end;
    if (stage.publisher() != core_ && (slot.unit || i == 0)) continue;
    if (i > 0) add(job.nominal_start + slot.start);
    add(end);
    if (slot.unit ? slot.guard.ns > 0 : i > 0) add(slot.unit ? end + slot.guard : stage.deadline_of(job, i));
  }
}

void CoreDispatcher::lead(StageRun& stage, const Job& job) {
  const Duration window = plan_.problem.board.cores[core_].wakeup_window;
  // Finished, but another core's dispatcher is about to publish it: that is not an overrun yet.
  if (StageRun* const before = stage.in_flight();
      before != nullptr && before->publisher() != core_ && before->running() != 0 && before->complete()) {
    before->await_free(clock_.host(job.nominal_start + window));
  }
  // What is left of the window; never zero, which would mean without limit.
  const HostTime latest = clock_.host(job.nominal_start + window);
  const Duration patience = std::max(latest - host_now(), nanoseconds(1));
  const Gang::Limits limits{.end = clock_.host(stage.deadline_of(job, 0)), .budget = {}};
  const JobRecord* final_record =
      too_late_for(stage, job) ? stage.pass(job) : stage.start(job, plan_.publish_at(job), patience, limits);
  stage.decide(job);
  if (final_record != nullptr) {
    agenda_.drop(&stage, tag_of(job));
    plan_.sink(core_, *final_record);
  } else {
    release(stage, 0, job);
  }
}

void CoreDispatcher::follow(StageRun& stage, const Job& job) {
  const std::uint32_t tag = tag_of(job);
  const int part = stage.part_of(core_);
  for (Published& published : published_) {
    if (published.stage == &stage) published.last_follow = tag;
  }
  if (!stage.await_decision(job, clock_.host(job.slot_end))) stage.give_up(job, part);
  if (!stage.decided(tag)) return;
  if (stage.running() != tag) return agenda_.drop(&stage, tag);  // skipped
  if (too_late_for(stage, job)) stage.forgo(part);
  release(stage, part, job);
}

void CoreDispatcher::drain(HostTime limit) {
  share_gap(false);
  for (const Published& published : published_) {
    StageRun* const stage = published.stage;
    if (published.last_follow != 0) stage->await_decision(published.last_follow);
    while (stage->running() != 0 && stage->await_end(limit)) conclude(clock_.table(host_now()));
  }
}

}  // namespace takt::sched
