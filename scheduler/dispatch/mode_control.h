// Which mode comes next (DESIGN section 5): what asks for a mode, and the rules of a change. A mode is left at the end
// of a hyperperiod, when its dwell is over, for one of its exits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "scheduler/dispatch/turn.h"
#include "scheduler/model/modes.h"

namespace takt::sched {

class ModeControl {
 public:
  // `modes` must outlive it; a run begins in the first.
  explicit ModeControl(const std::vector<ModeTable>& modes);

  // ---- before the run
  // Asks for a mode at the first boundary from `at` on. A later request that is due replaces an earlier one.
  void ask_at(std::uint32_t mode, TableTime at);
  // Says at a boundary whether the reference of the phase lock is lost. Dispatcher thread; without it, it never is.
  std::function<bool(const Turn& next)> reference_lost;

  // ---- any thread, lock-free. The newest of its cause counts, of overruns that lead to one mode the first
  // A job overran whose stage degrades to this mode. Dropped where the mode is no exit of the one that runs.
  void overran(std::uint32_t mode, std::uint32_t stage, std::uint64_t job);
  // A job of which that is known while it still runs, and the end of such a job: in between, what led into the mode is
  // not over. One that never ends is never followed by the second.
  void overruns(std::uint32_t mode, std::uint32_t stage, std::uint64_t job);
  void has_ended(std::uint32_t mode);
  // Stays until the mode is entered.
  void request(std::uint32_t mode);
  // A variant of a stage cannot run any more, because its device is gone: from now on no mode that runs it is entered,
  // and one that does is left for its first exit that does not.
  void cannot_run(std::uint32_t stage, std::uint32_t variant, std::uint64_t job);

  // What follows instead of `next`, most urgent cause first: device, reference, overrun, request. What was entered for
  // an overrun is left again for the mode before after kDegradedJobs hyperperiods without one, what was entered
  // for a lost reference as soon as that is back; where the way back is an exit. One thread at a time, at boundaries.
  std::optional<ModeChange> choose(const Turn& next);

 private:
  struct Timed {
    std::uint32_t mode = 0;
    TableTime at;
  };
  // What led into the mode that runs, while there is a way back.
  struct Detour {
    ModeCause cause = ModeCause::kOverrun;
    std::uint32_t from = 0;
    std::uint32_t calm = 0;  // hyperperiods without an overrun, of another job or still of the one that led here
  };
  [[nodiscard]] bool leads_to(std::uint32_t from, std::uint32_t to) const;  // by an exit, and it can run
  std::optional<ModeChange> wanted(const Turn& next);
  [[nodiscard]] std::optional<ModeChange> for_device(std::uint32_t mode) const;
  std::optional<ModeChange> for_overrun(std::uint32_t mode);
  std::optional<ModeChange> for_request(const Turn& next);
  std::optional<ModeChange> way_back(const Turn& next);

  const std::vector<ModeTable>& modes_;
  std::vector<Timed> timed_;                             // ascending
  std::atomic<std::uint64_t> overran_{0};                // packed, 0: none
  std::vector<std::atomic<std::uint32_t>> overrunning_;  // by mode: jobs that lead there and have not ended
  std::atomic<std::uint32_t> requested_{0};              // mode + 1
  std::vector<std::atomic<std::uint64_t>> lost_;         // by mode: what cannot run there, packed, 0: nothing
  std::optional<Detour> detour_;
};

}  // namespace takt::sched
