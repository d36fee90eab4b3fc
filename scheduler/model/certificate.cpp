#include "scheduler/model/certificate.h"

namespace takt::sched {

const char* name_of(Certificate::Rule rule) {
  switch (rule) {
    case Certificate::Rule::kChain: return "chain";
    case Certificate::Rule::kStage: return "stage";
    case Certificate::Rule::kMemory: return "memory";
    case Certificate::Rule::kLoad: return "load";
    case Certificate::Rule::kWindow: return "window";
    case Certificate::Rule::kUnit: return "unit";
    case Certificate::Rule::kMutex: return "mutex";
    case Certificate::Rule::kDisparity: return "disparity";
    case Certificate::Rule::kSame: return "same";
    case Certificate::Rule::kOptions: return "options";
    case Certificate::Rule::kHomes: return "homes";
    case Certificate::Rule::kOrder: return "order";
    case Certificate::Rule::kReads: return "reads";
    case Certificate::Rule::kCircle: return "circle";
  }
  return "?";
}

const char* name_of(Certificate::Step::Kind kind) {
  switch (kind) {
    case Certificate::Step::Kind::kSlot: return "slot";
    case Certificate::Step::Kind::kNext: return "next";
    case Certificate::Step::Kind::kFirst: return "first";
    case Certificate::Step::Kind::kLast: return "last";
    case Certificate::Step::Kind::kBefore: return "before";
    case Certificate::Step::Kind::kThere: return "there";
    case Certificate::Step::Kind::kMissed: return "missed";
    case Certificate::Step::Kind::kLimit: return "limit";
  }
  return "?";
}

}  // namespace takt::sched
