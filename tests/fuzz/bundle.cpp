// Any bytes as a board bundle. Bytes as they come: a bundle or an error of kind kInput. Then the same sections signed
// again, so that only the reader's bounds and its semantic checks stand between a hostile bundle and the board: what is
// accepted must be written back to the same bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "pipeline/bundle/bundle.h"
#include "pipeline/bundle/format.h"
#include "runtime/plan/crc32c.h"

namespace {

using takt::pipeline::bundle::Entry;
using takt::pipeline::bundle::Head;

void read(std::span<const std::byte> bytes) {
  const auto bundle = takt::pipeline::read_bundle(bytes);
  if (!bundle) {
    if (bundle.error().code != takt::Code::kInput || bundle.error().message.empty()) std::abort();
    return;
  }
  const auto again = takt::pipeline::write_bundle(*bundle);
  if (!again || again->size() != bytes.size() || std::memcmp(again->data(), bytes.data(), bytes.size()) != 0)
    std::abort();
}

// Makes the checksums of whatever head and directory say right again.
void sign(std::vector<std::byte>& bytes) {
  Head head{};
  if (bytes.size() < sizeof head) return;
  std::memcpy(&head, bytes.data(), sizeof head);
  const std::uint64_t room = (bytes.size() - sizeof head) / sizeof(Entry);
  const std::uint64_t sections = head.sections < room ? head.sections : room;
  for (std::uint64_t i = 0; i < sections; ++i) {
    Entry entry{};
    std::byte* at = bytes.data() + sizeof head + i * sizeof entry;
    std::memcpy(&entry, at, sizeof entry);
    if (entry.offset > bytes.size() || entry.bytes > bytes.size() - entry.offset) continue;
    entry.crc = takt::plan::crc32c(std::span(bytes).subspan(entry.offset, entry.bytes));
    std::memcpy(at, &entry, sizeof entry);
  }
  head.directory_crc = takt::plan::crc32c(std::span(bytes).subspan(sizeof head, sections * sizeof(Entry)));
  head.head_crc = takt::plan::crc32c(std::as_bytes(std::span(&head, 1)).first(offsetof(Head, head_crc)));
  std::memcpy(bytes.data(), &head, sizeof head);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  read(bytes);
  sign(bytes);
  read(bytes);
  return 0;
}
