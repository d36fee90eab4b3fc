// Any bytes as a plan file. Bytes as they come: a plan or an error of kind kInput. Then the same metadata signed again,
// so that only the FlatBuffers verifier and the semantic verification stand between a hostile plan and the kernels:
// what is accepted is run, inside a guarded arena.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "kernels/cpu/host.h"
#include "runtime/exec/session.h"
#include "runtime/plan/crc32c.h"
#include "runtime/plan/format.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/plan_generated.h"

namespace {

using takt::plan::Head;
using takt::plan::Plan;

struct Aligned {
  explicit Aligned(std::size_t bytes)
      : data(static_cast<std::byte*>(::operator new (bytes + 1, std::align_val_t{64}))), size(bytes) {
    std::memset(data, 0x3f, size);  // 0.747 as floats
  }
  ~Aligned() { ::operator delete (data, std::align_val_t{64}); }
  Aligned(Aligned&& other) noexcept : data(other.data), size(other.size) { other.data = nullptr; }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  std::byte* data;
  std::size_t size;
};

// Buffers of exactly the size that the plan states: under AddressSanitizer a kernel that leaves them is caught.
void run(const std::shared_ptr<const Plan>& plan) {
  const takt::plan::Description& d = plan->description();
  constexpr std::uint64_t kMost = std::uint64_t{1} << 24;  // bytes and operations: a fuzzer's time, not a rule
  std::uint64_t total = d.arena_bytes, work = 0;
  for (const takt::plan::Tensor& t : d.tensors) total += t.bytes;
  for (const takt::plan::State& s : d.states) total += 2 * s.bytes;
  for (const takt::plan::Step& step : d.steps) {
    work += takt::kernels::cpu::flops_of(static_cast<takt::kernels::cpu::KernelId>(step.kernel), step.params.data());
    if (work > kMost) return;
  }
  if (total > kMost) return;
  Aligned arena(d.arena_bytes);
  auto session = takt::exec::Session::create(plan, {arena.data, d.arena_bytes});
  if (!session) return;  // of another machine
  std::vector<Aligned> buffers;
  for (std::size_t i = 0; i < d.inputs.size(); ++i) {
    const Aligned& b = buffers.emplace_back(d.tensors[d.inputs[i]].bytes);
    if (!(*session)->bind_input(i, {b.data, b.size})) std::abort();
  }
  for (std::size_t i = 0; i < d.outputs.size(); ++i) {
    const Aligned& b = buffers.emplace_back(d.tensors[d.outputs[i]].bytes);
    if (!(*session)->bind_output(i, {b.data, b.size})) std::abort();
  }
  if (!(*session)->ready(1)) std::abort();
  if ((*session)->run() != d.steps.size()) std::abort();
  (*session)->publish();
}

void parse(std::span<const std::byte> bytes) {
  const auto plan = Plan::parse(bytes);
  if (plan) {
    run(*plan);
  } else if (plan.error().code != takt::Code::kInput || plan.error().message.empty()) {
    std::abort();
  }
}

// Makes every checksum and the outer layout right again.
void sign(std::vector<std::byte>& bytes) {
  Head head{};
  if (bytes.size() < sizeof head) bytes.resize(sizeof head);
  std::memcpy(&head, bytes.data(), sizeof head);
  std::memcpy(head.magic, takt::plan::kMagic, sizeof head.magic);
  head.version = takt::plan::kFormatVersion;
  head.zero = 0;
  std::memset(head.zeros, 0, sizeof head.zeros);
  head.file_bytes = bytes.size();
  head.metadata_offset = sizeof head;
  head.metadata_bytes = std::min<std::uint64_t>(head.metadata_bytes, bytes.size() - sizeof head);
  auto* metadata = reinterpret_cast<std::uint8_t*>(bytes.data()) + sizeof head;
  flatbuffers::Verifier verifier(metadata, head.metadata_bytes, 16);
  if (head.metadata_bytes >= 8 && takt::plan::fb::VerifyPlanBuffer(verifier)) {
    // The checksums of sections stand in the metadata, as structs that can be written in place.
    const auto* sections = takt::plan::fb::GetPlan(metadata)->sections();
    // The verifier does not look whether they are aligned.
    if (sections != nullptr &&
        reinterpret_cast<std::uintptr_t>(sections->Data()) % alignof(takt::plan::fb::Section) == 0) {
      for (const takt::plan::fb::Section* s : *sections) {
        if (s->offset() > bytes.size() || s->bytes() > bytes.size() - s->offset()) continue;
        const takt::plan::fb::Section fixed(s->offset(), s->bytes(),
                                            takt::plan::crc32c(std::span(bytes).subspan(s->offset(), s->bytes())));
        std::memcpy(const_cast<takt::plan::fb::Section*>(s), &fixed, sizeof fixed);  // NOLINT: our own copy
      }
    }
  }
  head.metadata_crc = takt::plan::crc32c(std::span(bytes).subspan(sizeof head, head.metadata_bytes));
  head.head_crc = takt::plan::crc32c(std::as_bytes(std::span(&head, 1)).first(offsetof(Head, head_crc)));
  std::memcpy(bytes.data(), &head, sizeof head);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  parse(bytes);
  sign(bytes);
  parse(bytes);
  return 0;
}
