// Running a plan in a test: buffers for every input and output, any number of parts one after the other.
#pragma once

#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "runtime/exec/session.h"
#include "runtime/plan/plan.h"

namespace takt::test {

inline std::vector<kernels::Target> targets_of_this_machine() {
  std::vector<kernels::Target> out;
  for (const auto target : kernels::kTargets) {
    if (kernels::unsupported(target) == nullptr) out.push_back(target);
  }
  return out;
}

// Bytes at a multiple of 64.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t size = 0)
      : size_(size), data_(static_cast<std::byte*>(::operator new (size + 1, std::align_val_t{64}))) {}
  ~AlignedBytes() { ::operator delete (data_, std::align_val_t{64}); }
  AlignedBytes(AlignedBytes&& other) noexcept : size_(other.size_), data_(other.data_) { other.data_ = nullptr; }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  [[nodiscard]] std::span<std::byte> span() { return {data_, size_}; }

 private:
  std::size_t size_;
  std::byte* data_;
};

// An input for run_plan.
template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

// Outputs by slot. Outputs and arena begin filled with `fill`: a byte that is read before it is written shows. On a
// device whose callers do not run the calls the job is one submission.
inline std::vector<std::vector<std::byte>> run_plan(const std::shared_ptr<const plan::Plan>& plan,
                                                    const std::vector<std::vector<std::byte>>& inputs, int parts = 1,
                                                    int fill = 0x7f, device::Device& device = device::cpu()) {
  AlignedBytes arena(plan->description().arena_bytes + 64);
  std::memset(arena.span().data(), fill, arena.span().size());
  exec::Placement placement;
  placement.device = &device;
  placement.arena = arena.span();
  // What a device that watches its memory is given beside its own.
  std::vector<std::unique_ptr<device::Memory>> lent;
  const auto lend = [&](std::span<std::byte> bytes) {
    auto memory = device.import_host(bytes);
    EXPECT_TRUE(memory) << memory.error().message;
    if (memory) lent.push_back(*std::move(memory));
  };
  if (!device.properties().callers_run) lend(arena.span());
  auto session = exec::Session::create(plan, placement);
  EXPECT_TRUE(session) << session.error().message;
  if (!session) return {};
  std::vector<AlignedBytes> in, out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    in.emplace_back(inputs[i].size());
    std::memcpy(in.back().span().data(), inputs[i].data(), inputs[i].size());
    lend(in.back().span());
    const Status bound = (*session)->bind_input(i, in.back().span());
    EXPECT_TRUE(bound) << bound.error().message;
  }
  for (std::size_t i = 0; i < plan->description().outputs.size(); ++i) {
    out.emplace_back(plan->description().tensors[plan->description().outputs[i]].bytes);
    std::memset(out.back().span().data(), fill, out.back().span().size());
    lend(out.back().span());
    const Status bound = (*session)->bind_output(i, out.back().span());
    EXPECT_TRUE(bound) << bound.error().message;
  }
  const Status ready = (*session)->ready(parts);
  EXPECT_TRUE(ready) << ready.error().message;
  if (!device.properties().callers_run) {
    EXPECT_EQ((*session)->run(), (*session)->steps());
  } else {
    for (std::size_t step = 0; step < (*session)->steps(); ++step) {
      for (int part = parts - 1; part >= 0; --part) (*session)->run_step(step, part, parts);
    }
  }
  std::vector<std::vector<std::byte>> results;
  for (AlignedBytes& bytes : out) results.emplace_back(bytes.span().begin(), bytes.span().end());
  return results;
}

// Leaves the valid rows of counted outputs whose count is an output too.
inline void cut_to_counts(const plan::Plan& plan, std::vector<std::vector<std::byte>>& outputs) {
  const plan::Description& d = plan.description();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const plan::Tensor& t = d.tensors[d.outputs[i]];
    if (t.count == plan::kNone) continue;
    std::uint32_t counting = t.count;
    while (d.tensors[counting].view_of != plan::kNone) counting = d.tensors[counting].view_of;
    const auto slot =
        static_cast<std::size_t>(std::find(d.outputs.begin(), d.outputs.end(), counting) - d.outputs.begin());
    if (slot == d.outputs.size()) continue;
    std::int32_t count = 0;
    std::memcpy(&count, outputs[slot].data(), sizeof count);
    outputs[i].resize(outputs[i].size() / static_cast<std::size_t>(t.shape.dims[0]) * static_cast<std::size_t>(count));
  }
}

// A plan over jobs one after the other; state goes on. Outputs as cut_to_counts() leaves them.
class Running {
 public:
  explicit Running(std::shared_ptr<const plan::Plan> plan, device::Device& device = device::cpu())
      : plan_(std::move(plan)), device_(device) {
    exec::Placement placement;
    placement.device = &device;
    auto session = exec::Session::create(plan_, placement);
    EXPECT_TRUE(session) << session.error().message;
    if (!session) return;
    session_ = *std::move(session);
    const plan::Description& d = plan_->description();
    for (std::size_t i = 0; i < d.inputs.size(); ++i) {
      EXPECT_TRUE(session_->bind_input(i, buffer(in_, d.tensors[d.inputs[i]].bytes)));
    }
    for (std::size_t i = 0; i < d.outputs.size(); ++i) {
      EXPECT_TRUE(session_->bind_output(i, buffer(out_, d.tensors[d.outputs[i]].bytes)));
    }
  }
  std::vector<std::vector<std::byte>> run(const std::vector<std::vector<std::byte>>& inputs, int parts = 1) {
    if (session_ == nullptr) return {};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(inputs[i].size(), in_[i].span().size()) << "input " << i;
      std::memcpy(in_[i].span().data(), inputs[i].data(), std::min(inputs[i].size(), in_[i].span().size()));
    }
    if (device_.properties().callers_run) {
      for (std::size_t s = 0; s < session_->steps(); ++s) {
        for (int part = parts; part-- > 0;) session_->run_step(s, part, parts);
      }
    } else {
      EXPECT_EQ(session_->run(), session_->steps());
    }
    session_->publish();
    std::vector<std::vector<std::byte>> out;
    for (AlignedBytes& o : out_) out.emplace_back(o.span().begin(), o.span().end());
    cut_to_counts(*plan_, out);
    return out;
  }

 private:
  std::span<std::byte> buffer(std::vector<AlignedBytes>& of, std::uint64_t bytes) {
    const std::span<std::byte> span = of.emplace_back(bytes).span();
    if (!device_.properties().callers_run) {
      auto memory = device_.import_host(span);
      EXPECT_TRUE(memory) << memory.error().message;
      if (memory) lent_.push_back(*std::move(memory));
    }
    return span;
  }

  std::shared_ptr<const plan::Plan> plan_;
  device::Device& device_;
  std::vector<AlignedBytes> in_, out_;
  std::vector<std::unique_ptr<device::Memory>> lent_;
  std::unique_ptr<exec::Session> session_;
};

}  // namespace takt::test
