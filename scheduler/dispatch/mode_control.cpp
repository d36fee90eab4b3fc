#include "scheduler/dispatch/mode_control.h"

#include <algorithm>

namespace takt::sched {
namespace {

// A mode or variant, a stage and a job in one word that is never 0. Jobs are cut to 40 bits: 1000 years at 30 Hz.
constexpr std::uint64_t pack(std::uint32_t what, std::uint32_t stage, std::uint64_t job) {
  return (std::uint64_t{what + 1} << 56) | (std::uint64_t{stage & 0xFFFF} << 40) | (job & 0xFF'FFFF'FFFF);
}
static_assert(kMostModes < 255);
constexpr std::uint32_t what_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 56) - 1; }
constexpr std::uint32_t stage_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 40) & 0xFFFF; }
constexpr std::uint64_t job_of(std::uint64_t word) { return word & 0xFF'FFFF'FFFF; }

ModeChange change_to(std::uint32_t mode, ModeCause cause, std::uint64_t word = 0) {
  ModeChange out;
  out.to = mode;
  out.cause = cause;
  out.stage = stage_of(word);
  out.job = job_of(word);
  return out;
}

}  // namespace

const char* name_of(ModeCause cause) {
  switch (cause) {
    case ModeCause::kOverrun: return "overrun";
    case ModeCause::kReference: return "reference lost";
    case ModeCause::kDevice: return "device";
    case ModeCause::kRequest: return "request";
    case ModeCause::kRecovered: return "recovered";
  }
  return "unknown";
}

ModeControl::ModeControl(const std::vector<ModeTable>& modes)
    : modes_(modes), overrunning_(modes.size()), lost_(modes.size()) {}

void ModeControl::ask_at(std::uint32_t mode, TableTime at) {
  const auto later = [](TableTime t, const Timed& timed) { return t < timed.at; };
  timed_.insert(std::upper_bound(timed_.begin(), timed_.end(), at, later), {mode, at});
}

void ModeControl::overran(std::uint32_t mode, std::uint32_t stage, std::uint64_t job) {
  std::uint64_t pending = overran_.load();
  do {
    if (pending != 0 && what_of(pending) == mode) return;  // the first one led there
  } while (!overran_.compare_exchange_weak(pending, pack(mode, stage, job)));
}

void ModeControl::overruns(std::uint32_t mode, std::uint32_t stage, std::uint64_t job) {
  overrunning_[mode].fetch_add(1);
  overran(mode, stage, job);
}

void ModeControl::has_ended(std::uint32_t mode) { overrunning_[mode].fetch_sub(1); }

void ModeControl::request(std::uint32_t mode) { requested_.store(mode + 1); }

void ModeControl::cannot_run(std::uint32_t stage, std::uint32_t variant, std::uint64_t job) {
  for (std::size_t m = 0; m < modes_.size(); ++m) {
    const std::vector<Choice>& choices = modes_[m].schedule.choices;
    if (modes_[m].runs(stage) && choices[stage].variant == variant) lost_[m].store(pack(variant, stage, job));
  }
}

bool ModeControl::leads_to(std::uint32_t from, std::uint32_t to) const {
  const std::vector<std::uint32_t>& exits = modes_[from].exits;
  return std::find(exits.begin(), exits.end(), to) != exits.end() && lost_[to].load() == 0;
}

std::optional<ModeChange> ModeControl::choose(const Turn& next) {
  if (detour_ && detour_->cause == ModeCause::kOverrun) {
    std::uint64_t again = overran_.load();
    if (again != 0 && what_of(again) == next.mode) {
      detour_->calm = 0;
      overran_.compare_exchange_strong(again, 0);  // one that came since waits
    } else if (overrunning_[next.mode].load() == 0) {
      ++detour_->calm;
    }
  }
  const ModeTable& mode = modes_[next.mode];
  const Duration stayed = mode.schedule.clock.hyperperiod * static_cast<std::int64_t>(next.in_mode);
  if (stayed < mode.dwell) return std::nullopt;
  const std::optional<ModeChange> change = wanted(next);
  if (!change) return std::nullopt;
  detour_.reset();
  if (change->cause == ModeCause::kOverrun || change->cause == ModeCause::kReference) {
    detour_ = {change->cause, next.mode, 0};
  }
  return change;
}

std::optional<ModeChange> ModeControl::wanted(const Turn& next) {
  if (const auto change = for_device(next.mode)) return change;
  const ModeTable& mode = modes_[next.mode];
  if (mode.lost && reference_lost && leads_to(next.mode, *mode.lost) && reference_lost(next)) {
    return change_to(*mode.lost, ModeCause::kReference);
  }
  if (const auto change = for_overrun(next.mode)) return change;
  if (const auto change = for_request(next)) return change;
  return way_back(next);
}

std::optional<ModeChange> ModeControl::for_device(std::uint32_t mode) const {
  const std::uint64_t lost = lost_[mode].load();
  if (lost == 0) return std::nullopt;
  for (const std::uint32_t exit : modes_[mode].exits) {
    if (leads_to(mode, exit)) return change_to(exit, ModeCause::kDevice, lost);
  }
  return std::nullopt;
}

std::optional<ModeChange> ModeControl::for_overrun(std::uint32_t mode) {
  const std::uint64_t overran = overran_.exchange(0);
  if (overran == 0 || !leads_to(mode, what_of(overran))) return std::nullopt;
  return change_to(what_of(overran), ModeCause::kOverrun, overran);
}

std::optional<ModeChange> ModeControl::for_request(const Turn& next) {
  while (!timed_.empty() && timed_.front().at <= next.begin) {
    requested_.store(timed_.front().mode + 1);
    timed_.erase(timed_.begin());
  }
  std::uint32_t requested = requested_.load();
  if (requested == 0) return std::nullopt;
  const std::uint32_t mode = requested - 1;
  if (mode != next.mode && !leads_to(next.mode, mode)) return std::nullopt;
  requested_.compare_exchange_strong(requested, 0);  // a newer request stays
  if (mode == next.mode) return std::nullopt;
  return change_to(mode, ModeCause::kRequest);
}

std::optional<ModeChange> ModeControl::way_back(const Turn& next) {
  if (!detour_ || !leads_to(next.mode, detour_->from)) return std::nullopt;
  const bool over =
      detour_->cause == ModeCause::kOverrun ? detour_->calm >= kDegradedJobs : !reference_lost || !reference_lost(next);
  if (!over) return std::nullopt;
  return change_to(detour_->from, ModeCause::kRecovered);
}

}  // namespace takt::sched
