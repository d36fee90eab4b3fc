#include "runtime/base/foreign_call.h"

namespace takt {

ForeignCall::Calls& ForeignCall::of_this_thread() {
  thread_local Calls calls;
  return calls;
}

}  // namespace takt
