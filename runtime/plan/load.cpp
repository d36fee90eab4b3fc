#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/sizes.h"
#include "runtime/plan/crc32c.h"
#include "runtime/plan/format.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/plan_generated.h"

namespace takt::plan {
namespace {

constexpr const char* kAgain = "; compile the model again";

tl::unexpected<Error> damaged(const std::string& what) {
  return fail(Code::kInput, "the plan is damaged: " + what + kAgain);
}

std::string bytes_at(std::uint64_t offset, std::uint64_t bytes) {
  return std::to_string(bytes) + " bytes at byte " + std::to_string(offset);
}

// Copies out of the metadata. A file that the writer made never shares a vector between two tables, so all copies
// together are no larger than the metadata; a hostile one is stopped there.
class Decoder {
 public:
  explicit Decoder(std::uint64_t budget) : left_(budget) {}
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  [[nodiscard]] bool misaligned() const { return misaligned_; }

  std::string text(const flatbuffers::String* s) { return s != nullptr && take(s->size(), 1) ? s->str() : ""; }

  template <class T>
  std::vector<T> numbers(const flatbuffers::Vector<T>* v) {
    if (v == nullptr || !aligned(*v, alignof(T)) || !take(v->size(), sizeof(T))) return {};
    return {v->begin(), v->end()};
  }
  // Calls each(struct) for the structs of a vector. No budget: it has been verified to lie inside the metadata.
  template <class T, class Each>
  void structs(const flatbuffers::Vector<const T*>* v, Each each) {
    if (v == nullptr || !aligned(*v, alignof(T))) return;
    for (const T* item : *v) each(*item);
  }
  std::vector<std::byte> raw(const flatbuffers::Vector<std::uint8_t>* v) {
    if (v == nullptr || !take(v->size(), 1)) return {};
    const auto* begin = reinterpret_cast<const std::byte*>(v->data());
    return {begin, begin + v->size()};
  }
  std::vector<std::string> texts(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* v) {
    std::vector<std::string> out;
    if (v == nullptr || !take(v->size(), 4)) return out;
    for (const flatbuffers::String* s : *v) out.push_back(text(s));
    return out;
  }
  // False when there are more dimensions than a shape holds.
  bool shape(const flatbuffers::Vector<std::int64_t>* v, kernels::Shape& out) {
    const std::vector<std::int64_t> dims = numbers(v);
    if (dims.size() > kernels::kMaxRank) return false;
    out.rank = static_cast<int>(dims.size());
    std::copy(dims.begin(), dims.end(), out.dims);
    return true;
  }
  // Calls each(table) for the tables of a vector.
  template <class T, class Each>
  void tables(const flatbuffers::Vector<flatbuffers::Offset<T>>* v, Each each) {
    if (v == nullptr || !take(v->size(), 4)) return;
    for (const T* table : *v) each(*table);
  }

 private:
  // FlatBuffers' verifier looks whether the length of a vector is aligned, not what it holds.
  template <class T>
  bool aligned(const flatbuffers::Vector<T>& v, std::size_t alignment) {
    const bool is = v.size() == 0 || reinterpret_cast<std::uintptr_t>(v.Data()) % alignment == 0;
    misaligned_ = misaligned_ || !is;
    return is;
  }
  bool take(std::uint64_t count, std::uint64_t size) {
    if (exhausted_ || count > left_ / size) {
      exhausted_ = true;
      return false;
    }
    left_ -= count * size;
    return true;
  }
  std::uint64_t left_;
  bool exhausted_ = false;
  bool misaligned_ = false;
};

Status decode(const fb::Plan& in, std::uint64_t metadata_bytes, Description& out) {
  Decoder decoder(metadata_bytes);
  out.name = decoder.text(in.name());
  out.target = static_cast<kernels::Target>(in.target());
  if (in.source() != nullptr) out.source = {in.source()->high(), in.source()->low()};
  if (in.contract() != nullptr) out.contract = {in.contract()->high(), in.contract()->low()};
  if (in.state_schema() != nullptr) out.state_schema = {in.state_schema()->high(), in.state_schema()->low()};
  if (const fb::Statistics* s = in.statistics(); s != nullptr) {
    out.statistics = {s->operators_before(), s->operators_after(), s->views(), s->placements(),
                      s->in_place(),         s->reorders(),        s->copies()};
  }
  bool shapes = true;
  decoder.tables(in.tensors(), [&](const fb::Tensor& t) {
    Tensor& to = out.tensors.emplace_back();
    to.name = decoder.text(t.name());
    to.dtype = static_cast<kernels::DType>(t.dtype());
    shapes = decoder.shape(t.dims(), to.shape) && shapes;
    to.layout.block = t.block();
    to.storage = static_cast<Storage>(t.storage());
    to.slot = t.slot();
    to.offset = t.offset();
    to.bytes = t.bytes();
    to.view_of = t.view_of();
    to.first_step = t.first_step();
    to.last_step = t.last_step();
    to.count = t.count();
    to.count_axis = t.count_axis();
  });
  decoder.tables(in.steps(), [&](const fb::Step& s) {
    Step& to = out.steps.emplace_back();
    to.kernel = s.kernel();
    to.version = s.version();
    to.params = decoder.raw(s.params());
    to.operands = decoder.numbers(s.operands());
    to.flops = s.flops();
    to.bytes_moved = s.bytes_moved();
    to.nodes = decoder.texts(s.nodes());
    to.guard = s.guard();
  });
  decoder.tables(in.states(), [&](const fb::State& s) {
    State& to = out.states.emplace_back();
    to.name = decoder.text(s.name());
    to.dtype = static_cast<kernels::DType>(s.dtype());
    shapes = decoder.shape(s.dims(), to.shape) && shapes;
    to.bytes = s.bytes();
    to.initial = s.initial();
  });
  decoder.structs(in.sections(), [&](const fb::Section& s) {
    out.sections.push_back({s.offset(), s.bytes(), s.crc()});
  });
  decoder.structs(in.guards(), [&](const fb::Guard& g) {
    out.guards.push_back({g.condition(), g.parent(), g.when() != 0});
  });
  out.inputs = decoder.numbers(in.inputs());
  out.outputs = decoder.numbers(in.outputs());
  out.arena_bytes = in.arena_bytes();
  out.lower_bound = in.lower_bound();
  out.proof = static_cast<Proof>(in.proof());
  out.parts = decoder.numbers(in.parts());
  if (decoder.misaligned()) return damaged("its metadata are no valid FlatBuffer: a vector is not aligned");
  if (decoder.exhausted()) return damaged("its metadata refer to one place many times");
  if (!shapes) return damaged("a tensor has more than " + std::to_string(kernels::kMaxRank) + " dimensions");
  return {};
}

// The head, or why not. Everything behind it may rely on file_bytes and the metadata's place.
Result<Head> read_head(std::span<const std::byte> file) {
  Head head{};
  if (file.size() < sizeof head) {
    return fail(Code::kInput, "the plan ends at byte " + std::to_string(file.size()) + ", inside its head of " +
                                  std::to_string(sizeof head) + " bytes" + kAgain);
  }
  std::memcpy(&head, file.data(), sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0) {
    return fail(Code::kInput, "is no plan (it does not begin with TAKTPLAN); plans are written by `takt compile`");
  }
  if (head.version != kFormatVersion) {
    return fail(Code::kInput, "the plan has format version " + std::to_string(head.version) + ", this program reads " +
                                  std::to_string(kFormatVersion) + kAgain);
  }
  if (crc32c(file.first(offsetof(Head, head_crc))) != head.head_crc) {
    return damaged("the checksum of its head (bytes 0 to 59) is wrong");
  }
  if (file.size() != head.file_bytes) {
    return fail(Code::kInput, std::string("the plan ") + (file.size() < head.file_bytes ? "is truncated" : "goes on") +
                                  " at byte " + std::to_string(std::min<std::uint64_t>(file.size(), head.file_bytes)) +
                                  ": it should have " + std::to_string(head.file_bytes) + " bytes and has " +
                                  std::to_string(file.size()) + kAgain);
  }
  if (head.metadata_offset != sizeof head || head.metadata_bytes > head.file_bytes - sizeof head) {
    return damaged("its metadata (" + bytes_at(head.metadata_offset, head.metadata_bytes) + ") leave the file");
  }
  return head;
}

// Sections lie one after the other behind the metadata, aligned, with zeros between: every byte of the file is
// accounted for.
Status check_sections(std::span<const std::byte> file, std::uint64_t end, const std::vector<Section>& sections) {
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const Section& s = sections[i];
    const std::string who = "section " + std::to_string(i) + " (" + bytes_at(s.offset, s.bytes) + ")";
    if (s.offset != round_up(end, kAlignment) || s.offset > file.size() || s.bytes > file.size() - s.offset) {
      return damaged(who + " does not follow the one before it, or leaves the file");
    }
    const auto gap = file.subspan(end, s.offset - end);
    if (std::any_of(gap.begin(), gap.end(), [](std::byte b) { return b != std::byte{0}; })) {
      return damaged("the padding before " + who + " is not zero");
    }
    if (crc32c(file.subspan(s.offset, s.bytes)) != s.crc) return damaged("the checksum of " + who + " is wrong");
    end = s.offset + s.bytes;
  }
  if (end != file.size()) return damaged("bytes follow its last section at byte " + std::to_string(end));
  return {};
}

}  // namespace

Result<std::shared_ptr<const Plan>> Plan::verified(std::shared_ptr<Plan> plan) {
  const std::span<const std::byte> file = plan->bytes_;
  TAKT_ASSIGN(const Head head, read_head(file));
  const auto metadata = file.subspan(head.metadata_offset, head.metadata_bytes);
  if (crc32c(metadata) != head.metadata_crc) {
    return damaged("the checksum of its metadata (" + bytes_at(head.metadata_offset, head.metadata_bytes) +
                   ") is wrong");
  }
  const auto* raw = reinterpret_cast<const std::uint8_t*>(metadata.data());
  flatbuffers::Verifier verifier(raw, metadata.size(), 16);
  if (metadata.size() < 8 || !fb::VerifyPlanBuffer(verifier)) return damaged("its metadata are no valid FlatBuffer");
  TAKT_RETURN_IF_ERROR(decode(*fb::GetPlan(raw), metadata.size(), plan->description_));
  TAKT_RETURN_IF_ERROR(check_sections(file, head.metadata_offset + head.metadata_bytes, plan->description_.sections));
  TAKT_RETURN_IF_ERROR(verify(plan->description_, &plan->kernels_));
  plan->digest_ = takt::digest(file);
  return plan;
}

Result<std::shared_ptr<const Plan>> Plan::parse(std::span<const std::byte> bytes) {
  std::shared_ptr<Plan> plan(new Plan);
  plan->storage_.reset(new std::byte[bytes.size() + kAlignment]);
  const auto address = reinterpret_cast<std::uintptr_t>(plan->storage_.get());
  std::byte* aligned = plan->storage_.get() + (round_up(address, kAlignment) - address);
  if (!bytes.empty()) std::memcpy(aligned, bytes.data(), bytes.size());
  plan->bytes_ = {aligned, bytes.size()};
  return verified(std::move(plan));
}

Result<std::shared_ptr<const Plan>> Plan::load(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || ::fstat(fd, &info) != 0) {
    const Error error{Code::kInput, path + ": cannot be opened: " + std::strerror(errno)};
    if (fd >= 0) ::close(fd);
    return fail(error);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return fail(Code::kInput, path + ": is no file; name a plan written by `takt compile`");
  }
  std::shared_ptr<Plan> plan(new Plan);
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size > 0) {
    // Private: a file that is replaced by `takt compile` (rename) stays as it was here. Populate: read ahead now, so
    // that no job waits for the disk.
    void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (mapping == MAP_FAILED) {
      const Error error{Code::kInput, path + ": cannot be mapped: " + std::strerror(errno)};
      ::close(fd);
      return fail(error);
    }
    plan->mapping_ = mapping;
    plan->bytes_ = {static_cast<const std::byte*>(mapping), size};
  }
  ::close(fd);
  auto out = verified(std::move(plan));
  if (!out) return fail(std::move(out.error()).with_context(path));
  return out;
}

Plan::~Plan() {
  if (mapping_ != nullptr) ::munmap(mapping_, bytes_.size());
}

std::span<const std::byte> Plan::section(std::size_t index) const {
  const Section& s = description_.sections[index];
  return bytes_.subspan(s.offset, s.bytes);
}

bool Plan::admits(int parts) const {
  return std::find(description_.parts.begin(), description_.parts.end(), parts) != description_.parts.end();
}

namespace {

std::optional<std::size_t> find(const Description& d, const std::vector<std::uint32_t>& slots, std::string_view name) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (d.tensors[slots[i]].name == name) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> Plan::find_input(std::string_view name) const {
  return find(description_, description_.inputs, name);
}
std::optional<std::size_t> Plan::find_output(std::string_view name) const {
  return find(description_, description_.outputs, name);
}

}  // namespace takt::plan
