#include "runtime/device/host.h"

#include <utility>

#include "runtime/memory/aligned_buffer.h"

namespace takt::device {
namespace {

constexpr std::uintptr_t kAlignment = memory::AlignedBuffer::kAlignment;

class OwnedMemory final : public Memory {
 public:
  explicit OwnedMemory(memory::AlignedBuffer buffer)
      : Memory(buffer.data(), buffer.data(), buffer.span().size()), buffer_(std::move(buffer)) {}

 private:
  memory::AlignedBuffer buffer_;
};

class LentMemory final : public Memory {
 public:
  explicit LentMemory(std::span<std::byte> bytes) : Memory(bytes.data(), bytes.data(), bytes.size()) {}
};

// Writes every page with what it holds, so that no run is the first to.
void touch_pages(std::span<std::byte> bytes) {
  constexpr std::size_t kPage = 4096;
  for (std::size_t at = 0; at < bytes.size(); at += kPage) {
    volatile std::byte& b = bytes[at];
    b = b;
  }
  if (!bytes.empty()) {
    volatile std::byte& last = bytes.back();
    last = last;
  }
}

}  // namespace

Result<std::unique_ptr<Memory>> allocate_host(std::uint64_t bytes) {
  TAKT_ASSIGN(memory::AlignedBuffer buffer, memory::AlignedBuffer::create(bytes));
  return std::make_unique<OwnedMemory>(std::move(buffer));
}

Result<std::unique_ptr<Memory>> lend_host(std::span<std::byte> bytes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment != 0) {
    return fail(Code::kInput, "memory of " + std::to_string(bytes.size()) +
                                  " bytes that is lent to a device does not start at a multiple of 64");
  }
  touch_pages(bytes);
  return std::make_unique<LentMemory>(bytes);
}

Result<std::shared_ptr<const Memory>> share_host(std::span<const std::byte> bytes) {
  // Nobody writes through it: it is handed out as const.
  return std::make_shared<const LentMemory>(std::span(const_cast<std::byte*>(bytes.data()), bytes.size()));  // NOLINT
}

Status check_calls(std::span<const Call> calls, std::size_t bindings, std::span<const std::size_t> cuts) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    std::vector<Operand> operands(calls[i].operands.begin(), calls[i].operands.end());
    for (const Condition& condition : calls[i].conditions) operands.push_back(condition.operand);
    for (const Operand& operand : operands) {
      if (operand.binding != kFixed && operand.binding >= bindings) {
        return fail(Code::kInternal, "call " + std::to_string(i) + " reads entry " + std::to_string(operand.binding) +
                                         " of a binding table of " + std::to_string(bindings));
      }
    }
  }
  std::size_t last = 0;
  for (const std::size_t cut : cuts) {
    if (cut <= last || cut >= calls.size()) {
      return fail(Code::kInternal, "a segment that begins with call " + std::to_string(cut) + " of " +
                                       std::to_string(calls.size()) + ", behind " + std::to_string(last));
    }
    last = cut;
  }
  return {};
}

Status check_stream(const Properties& properties, int priority, int partition) {
  if (priority < 0 || priority >= properties.priorities) {
    return fail(Code::kConfiguration, "device " + properties.name + " has priorities 0 to " +
                                          std::to_string(properties.priorities - 1) + ", asked for is " +
                                          std::to_string(priority));
  }
  if (partition < 0 || partition >= properties.partitions) {
    return fail(Code::kConfiguration, "device " + properties.name + " has partitions 0 to " +
                                          std::to_string(properties.partitions - 1) + ", asked for is " +
                                          std::to_string(partition));
  }
  return {};
}

HostRecording::HostRecording(std::span<const Call> calls, std::size_t bindings, std::span<const std::size_t> cuts)
    : Recording(cuts.size() + 1), table_(bindings) {
  std::size_t count = 0;
  for (const Call& call : calls) count += call.operands.size() + call.conditions.size();
  operands_.reserve(count);  // addresses of operands are kept
  calls_.reserve(calls.size());
  for (const Call& call : calls) {
    calls_.push_back({call.kernel->run, call.params, operands_.data() + operands_.size(), call.operands.size(),
                      call.conditions.size(), when_.size()});
    const auto add = [&](const Operand& operand) {
      if (operand.binding != kFixed) table_[operand.binding].push_back({operands_.size(), operand.offset});
      operands_.push_back({operand.binding == kFixed ? operand.data : nullptr, operand.bytes});
    };
    for (const Operand& operand : call.operands) add(operand);
    for (const Condition& condition : call.conditions) {
      add(condition.operand);
      when_.push_back(condition.when);
    }
  }
  begins_.push_back(0);
  begins_.insert(begins_.end(), cuts.begin(), cuts.end());
  begins_.push_back(calls.size());
}

void HostRecording::bind(std::size_t binding, std::byte* address) {
  for (const Patch& patch : table_[binding]) operands_[patch.operand].data = address + patch.offset;
}

void HostRecording::run_segment(std::size_t segment) {
  for (std::size_t call = begins_[segment]; call < begins_[segment + 1]; ++call) run_call(call, 0, 1);
}

}  // namespace takt::device
