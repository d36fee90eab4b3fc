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
  }
  return "?";
}

}  // namespace takt::sched
