// A proof that no table exists, as plain values: a tree whose branches cover every choice and whose leaves are closed
// by arithmetic. Made by scheduler/synthesis, replayed without any search by scheduler/analysis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched {

struct Certificate {
  enum class Rule {
    kChain,      // slots end to end and sensor terms exceed a limit of `chain`
    kStage,      // one stage cannot keep its period on any core
    kMemory,     // what must be resident exceeds the board's memory
    kLoad,       // what must run on `cores` exceeds what they have per hyperperiod
    kWindow,     // the same for [from, to] of the hyperperiod, by limits of chains with locked sensors
    kUnit,       // what must run on unit `unit`, guards included, exceeds the hyperperiod
    kMutex,      // what must hold mutex `mutex` exceeds the hyperperiod
    kDisparity,  // what the arrivals of two of its free-running sensors leave open exceeds disparity limit `disparity`
    kSame,       // this branch is the one of core set `cores` with two equal cores exchanged
    kOptions,    // one part per option of `stage`: by rate, then variant, then budget, as declared, that the board can
                 // hold
    kHomes,      // one part per core set of `stage`, whose option is known: ascending, in lexicographic order
    kOrder,   // two parts: on a core that both use, job `job` of `stage` comes before `other_job` of `other`; behind it
    kReads,   // two parts: when job `job` of `stage` begins, the output of `other_job` of `other` is there; it is not
              // yet
    kCircle,  // `steps`, each from an instant to one that it must not come before, lead back to where they began, later
  };
  // Jobs are numbered through all hyperperiods. Job 0 of the first stage is any of its jobs that begins a hyperperiod;
  // job 0 of another stage is the first that does not start before that one.
  struct Step {
    enum class Kind {
      kSlot,    // start of the job -> its end
      kNext,    // start of the job -> start of the stage's next one
      kFirst,   // start of the first stage's job 0 -> start of job 0 of `stage`
      kLast,    // start of job -1 of `stage` -> start of the first stage's job 0
      kBefore,  // by a branch kOrder: start of the job -> start of `other_job` of `other`
      kThere,   // by a branch kReads: end of `other_job` of `other` -> start of the job
      kMissed,  // by the other part of it: start of the job -> end of `other_job` of `other`
      // End of the last of `jobs` -> start of the first, or of the one before it, within the limit of `chain`: no
      // output comes earlier, or goes back to later samples, since each of `jobs` cannot be read by a job before the
      // next one (latency, age at output: cannot read a job behind the one before), by branches kReads.
      kLimit,
    };
    Kind kind = Kind::kSlot;
    std::uint32_t stage = 0;
    std::int64_t job = 0;
    std::uint32_t other = 0;
    std::int64_t other_job = 0;
    std::uint32_t chain = 0;
    Quantity quantity = Quantity::kLatency;
    std::vector<std::int64_t> jobs;  // by stage of the chain
  };
  Rule rule = Rule::kChain;
  std::uint32_t chain = 0;
  Quantity quantity = Quantity::kLatency;
  std::uint32_t stage = 0;
  std::vector<std::uint32_t> cores;
  Duration from, to;
  std::uint32_t unit = 0;
  std::uint32_t mutex = 0;
  std::uint32_t disparity = 0;
  std::int64_t excess = 0;  // ns, or bytes for kMemory; at least 1 on every leaf. Of a circle: by how much later it
                            // comes back, one more if a step on it never takes as little as it may
  std::vector<Certificate> parts;
  std::int64_t job = 0;  // of `stage`
  std::uint32_t other = 0;
  std::int64_t other_job = 0;
  std::vector<Step> steps;
};

const char* name_of(Certificate::Rule rule);
const char* name_of(Certificate::Step::Kind kind);

}  // namespace takt::sched
