#include "runtime/base/status.h"

namespace takt {

int exit_code(Code code) {
  switch (code) {
    case Code::kGate: return 1;
    case Code::kUsage: return 2;
    case Code::kInput: return 3;
    case Code::kConfiguration: return 4;
    case Code::kEnvironment: return 5;
    case Code::kInterrupted: return 130;
    case Code::kInternal: return 70;
  }
  return 70;
}

Error Error::with_context(std::string_view context) && {
  message = std::string(context) + ": " + message;
  return std::move(*this);
}

}  // namespace takt
