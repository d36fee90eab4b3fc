// Calls into libraries that take locks of their own: the driver of a device. Whoever takes the core from a thread
// (scheduler/dispatch/isolation.h) lets it come back from such a call first, since others may wait for what it holds.
#pragma once

#include <atomic>
#include <cstdint>

namespace takt {

// Lives around a call that ends by itself, and soon. May nest.
class ForeignCall {
 public:
  // Of one thread.
  struct Calls {
    std::atomic<std::uint32_t> inside{0};  // written by the thread alone
    void (*left)() = nullptr;              // called on the thread behind the outermost call
  };
  static Calls& of_this_thread();

  ForeignCall() : calls_(of_this_thread()) { calls_.inside.fetch_add(1); }
  ~ForeignCall() {
    if (calls_.inside.fetch_sub(1) == 1 && calls_.left != nullptr) calls_.left();
  }
  ForeignCall(const ForeignCall&) = delete;
  ForeignCall& operator=(const ForeignCall&) = delete;

 private:
  Calls& calls_;
};

}  // namespace takt
