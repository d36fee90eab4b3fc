// A device that works in another one's name as a GPU would: later than it is asked, sometimes never, until it is lost.
// For tests of whoever uses devices.
#pragma once

#include "runtime/device/device.h"

namespace takt::device {

struct Faults {
  std::uint64_t refuse = 0;  // the n-th thing that is made of this device is refused; 1: the first, 0: none
  std::uint64_t reject = 0;  // the n-th segment is refused, nothing else; 0: none
  std::uint64_t lose = 0;    // it is lost when it comes to its n-th copy, zero or replay; 0: never
  int polls = 0;             // an event says kPending so often before the work in front of it is done
};

class FaultDevice : public Device {
 public:
  // Work is kept in order and done by `inner` on the thread that polls or waits. callers_run is false: as on a GPU,
  // work enters by streams alone. At most 4096 pieces of work wait in a stream; more loses the device.
  static std::unique_ptr<FaultDevice> create(Device& inner, const Faults& faults);

  // While held no work is done, whoever polls: a kernel that hangs. wait() then loses the device, as a watchdog would.
  virtual void hold(bool on) = 0;
  // The next piece of work that the calling thread hands over is refused, copies included: of two stages of a device
  // the one that was meant.
  virtual void reject_next() = 0;
  // Any thread.
  virtual void lose(const char* reason) = 0;
};

}  // namespace takt::device
