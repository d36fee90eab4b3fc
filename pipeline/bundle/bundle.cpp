#include "pipeline/bundle/bundle.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "pipeline/bundle/fields.h"
#include "pipeline/bundle/format.h"
#include "runtime/base/file.h"
#include "runtime/plan/crc32c.h"

namespace takt::pipeline {
namespace {

using bundle::Entry;
using bundle::Head;
using bundle::kAlignment;
using bundle::SectionKind;

constexpr const char* kSectionNames[] = {"", "manifest", "modes", "stages", "rig", "transport", "arenas", "plan"};

std::uint64_t aligned(std::uint64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

tl::unexpected<Error> refuse(const std::string& why) {
  return fail(Code::kInput, "bundle: " + why + "; write it again with takt schedule --bundle");
}

template <class... T>
std::vector<std::byte> encoded(const T&... values) {
  bundle::Writer writer;
  writer(values...);
  return writer.take();
}

template <class... T>
Status decode(std::span<const std::byte> bytes, const Entry& entry, T&... values) {
  bundle::Reader reader(bytes.subspan(entry.offset, entry.bytes), entry.offset);
  reader(values...);
  reader.finish();
  if (reader.error().empty()) return {};
  return refuse(std::string("section '") + kSectionNames[static_cast<std::size_t>(entry.kind)] +
                "': " + reader.error());
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// The directory of a file whose head and checksums hold.
Result<std::vector<Entry>> read_directory(std::span<const std::byte> bytes) {
  Head head{};
  if (bytes.size() < sizeof head) {
    return refuse("only " + std::to_string(bytes.size()) + " bytes: shorter than its head");
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  if (std::memcmp(head.magic, bundle::kMagic, sizeof head.magic) != 0) return refuse("the file is none (byte 0)");
  if (head.version != kBundleVersion) {
    return refuse("format " + std::to_string(head.version) + " (byte 8), this program reads " +
                  std::to_string(kBundleVersion));
  }
  if (plan::crc32c(bytes.first(offsetof(Head, head_crc))) != head.head_crc)
    return refuse("the head is damaged (byte 60)");
  if (head.file_bytes != bytes.size()) {
    return refuse("it ends at byte " + std::to_string(bytes.size()) + ", " + std::to_string(head.file_bytes) +
                  " are stated (byte 16)");
  }
  if (!all_zero(std::as_bytes(std::span(head.zeros)))) return refuse("bytes 28 to 59 are not zero");
  if (head.sections < bundle::kFixedSections || head.sections > bundle::kFixedSections + bundle::kMostPlans) {
    return refuse(std::to_string(head.sections) + " sections (byte 12)");
  }
  const std::uint64_t directory_bytes = std::uint64_t{head.sections} * sizeof(Entry);
  if (directory_bytes > bytes.size() - sizeof head) return refuse("the directory is cut off (byte 64)");
  const auto directory = bytes.subspan(sizeof head, directory_bytes);
  if (plan::crc32c(directory) != head.directory_crc) return refuse("the directory is damaged (byte 24)");
  std::vector<Entry> entries(head.sections);
  std::memcpy(entries.data(), directory.data(), directory_bytes);
  std::uint64_t at = sizeof head + directory_bytes;
  for (std::uint32_t i = 0; i < head.sections; ++i) {
    const Entry& entry = entries[i];
    const std::string where = "section " + std::to_string(i);
    const auto expected = static_cast<SectionKind>(std::min(i + 1, bundle::kFixedSections + 1));
    if (entry.kind != expected) return refuse(where + " is of another kind than its place says");
    const std::uint64_t begin = aligned(at);
    if (begin > bytes.size() || entry.offset != begin || entry.bytes > bytes.size() - begin) {
      return refuse(where + " does not begin at byte " + std::to_string(begin) + " or is cut off");
    }
    if (!all_zero(bytes.subspan(at, begin - at))) return refuse("byte " + std::to_string(at) + ": padding is not zero");
    if (plan::crc32c(bytes.subspan(entry.offset, entry.bytes)) != entry.crc) {
      return refuse(where + " ('" + kSectionNames[static_cast<std::size_t>(entry.kind)] + "', byte " +
                    std::to_string(entry.offset) + ") is damaged");
    }
    at = entry.offset + entry.bytes;
  }
  if (at != bytes.size()) return refuse("byte " + std::to_string(at) + ": bytes that belong to nothing");
  return entries;
}

}  // namespace

Result<std::vector<std::byte>> write_bundle(const Bundle& bundle) {
  if (Status sound = check_bundle(bundle); !sound) return fail(Code::kInternal, sound.error().message);
  std::vector<std::vector<std::byte>> sections;
  sections.push_back(encoded(bundle.name, bundle.sources));
  sections.push_back(encoded(bundle.modes, bundle.changes));
  sections.push_back(encoded(bundle.stages));
  sections.push_back(encoded(bundle.rig));
  sections.push_back(encoded(bundle.topics, bundle.pools));
  sections.push_back(encoded(bundle.arenas));
  for (const auto& plan : bundle.plans) sections.emplace_back(plan->bytes().begin(), plan->bytes().end());

  std::vector<Entry> directory;
  std::uint64_t at = sizeof(Head) + sections.size() * sizeof(Entry);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const auto kind = static_cast<SectionKind>(std::min<std::size_t>(i + 1, bundle::kFixedSections + 1));
    directory.push_back({kind, plan::crc32c(sections[i]), aligned(at), sections[i].size()});
    at = directory.back().offset + sections[i].size();
  }
  Head head{};
  std::memcpy(head.magic, bundle::kMagic, sizeof head.magic);
  head.version = kBundleVersion;
  head.sections = static_cast<std::uint32_t>(sections.size());
  head.file_bytes = at;
  head.directory_crc = plan::crc32c(std::as_bytes(std::span(directory)));
  head.head_crc = plan::crc32c(std::as_bytes(std::span(&head, 1)).first(offsetof(Head, head_crc)));

  std::vector<std::byte> out(at);
  std::memcpy(out.data(), &head, sizeof head);
  std::memcpy(out.data() + sizeof head, directory.data(), directory.size() * sizeof(Entry));
  for (std::size_t i = 0; i < sections.size(); ++i) {
    std::copy(sections[i].begin(), sections[i].end(), out.begin() + static_cast<std::ptrdiff_t>(directory[i].offset));
  }
  return out;
}

Result<Bundle> read_bundle(std::span<const std::byte> bytes) {
  TAKT_ASSIGN(const std::vector<Entry> directory, read_directory(bytes));
  Bundle out;
  TAKT_RETURN_IF_ERROR(decode(bytes, directory[0], out.name, out.sources));
  TAKT_RETURN_IF_ERROR(decode(bytes, directory[1], out.modes, out.changes));
  TAKT_RETURN_IF_ERROR(decode(bytes, directory[2], out.stages));
  TAKT_RETURN_IF_ERROR(decode(bytes, directory[3], out.rig));
  TAKT_RETURN_IF_ERROR(decode(bytes, directory[4], out.topics, out.pools));
  TAKT_RETURN_IF_ERROR(decode(bytes, directory[5], out.arenas));
  for (std::size_t i = bundle::kFixedSections; i < directory.size(); ++i) {
    auto plan = plan::Plan::parse(bytes.subspan(directory[i].offset, directory[i].bytes));
    if (!plan) {
      return fail(Code::kInput,
                  "bundle: plan " + std::to_string(i - bundle::kFixedSections) + ": " + plan.error().message);
    }
    out.plans.push_back(*std::move(plan));
  }
  TAKT_RETURN_IF_ERROR(check_bundle(out));
  return out;
}

bool is_bundle(const std::string& path) {
  char head[sizeof bundle::kMagic] = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(head, sizeof head) && std::memcmp(head, bundle::kMagic, sizeof head) == 0;
}

Result<Bundle> load_bundle(const std::string& path) {
  TAKT_ASSIGN(const std::string text, read_file(path));
  return read_bundle(std::as_bytes(std::span(text.data(), text.size()))).map_error([&](Error error) {
    return std::move(error).with_context(path);
  });
}

}  // namespace takt::pipeline
