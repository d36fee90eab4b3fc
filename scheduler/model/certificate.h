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
  std::int64_t excess = 0;  // ns, or bytes for kMemory; at least 1 on every leaf
  std::vector<Certificate> parts;
};

const char* name_of(Certificate::Rule rule);

}  // namespace takt::sched
