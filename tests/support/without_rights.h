// Takes from a thread the right to real-time priorities.
#pragma once

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace takt::test {

// While it lives, this thread and those that it creates may not raise their priority.
class WithoutRights {
 public:
  WithoutRights() {
    header_.version = _LINUX_CAPABILITY_VERSION_3;
    syscall(SYS_capget, &header_, before_);
    __user_cap_data_struct less[2] = {before_[0], before_[1]};
    less[0].effective &= ~(1U << CAP_SYS_NICE);
    syscall(SYS_capset, &header_, less);
    getrlimit(RLIMIT_RTPRIO, &limit_);
    const rlimit none{0, limit_.rlim_max};
    setrlimit(RLIMIT_RTPRIO, &none);
  }
  ~WithoutRights() {
    setrlimit(RLIMIT_RTPRIO, &limit_);
    syscall(SYS_capset, &header_, before_);
  }
  WithoutRights(const WithoutRights&) = delete;
  WithoutRights& operator=(const WithoutRights&) = delete;

 private:
  __user_cap_header_struct header_{};
  __user_cap_data_struct before_[2] = {};
  rlimit limit_{};
};

}  // namespace takt::test
