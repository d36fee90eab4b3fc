#include "sensors/logs/pcap.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <tuple>

namespace takt::sensors {
namespace {

constexpr std::uint64_t kFileHead = 24, kRecordHead = 16;
constexpr std::uint32_t kMaxRecord = 262144;  // what capturing programs allow at most
constexpr std::size_t kMaxPending = 64;       // datagrams with fragments missing
constexpr std::uint32_t kMaxDatagram = 65535;

std::uint32_t big(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8 | static_cast<std::uint32_t>(bytes[at + i]);
  return value;
}

// The file through a window of 1 MiB: records are read in order.
class Window {
 public:
  explicit Window(const InputFile& file) : file_(file) {}
  // Up to `size` bytes from `offset` on, fewer at the end of the file.
  Result<std::span<const std::byte>> at(std::uint64_t offset, std::size_t size) {
    const std::uint64_t left = offset < file_.size() ? file_.size() - offset : 0;
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size, left));
    if (offset < begin_ || offset + wanted > begin_ + bytes_.size()) {
      begin_ = offset;
      bytes_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(std::max<std::size_t>(wanted, 1 << 20), left)));
      TAKT_RETURN_IF_ERROR(file_.read(begin_, bytes_));
    }
    return std::span<const std::byte>(bytes_).subspan(static_cast<std::size_t>(offset - begin_), wanted);
  }

 private:
  const InputFile& file_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> bytes_;
};

struct RecordHead {
  std::uint32_t seconds = 0, fraction = 0, size = 0, original = 0;
};

}  // namespace

class PcapScan {
 public:
  PcapScan(PcapFile& out, const std::string& path, const ReportProblem& report)
      : out_(out), path_(path), report_(report), window_(out.file_) {}

  Status run() {
    TAKT_ASSIGN(const auto head, window_.at(0, kFileHead));
    if (head.size() < kFileHead) return fail(Code::kInput, path_ + ": is too short for a capture file");
    std::uint32_t magic = 0;
    std::memcpy(&magic, head.data(), 4);
    switch (magic) {
      case 0xa1b2c3d4: break;
      case 0xa1b23c4d: nano_ = true; break;
      case 0xd4c3b2a1: swap_ = true; break;
      case 0x4d3cb2a1: swap_ = nano_ = true; break;
      case 0x0a0d0d0a:
        return fail(Code::kInput,
                    path_ + ": is a pcapng capture; takt reads the classic format: editcap -F pcap IN OUT");
      default: return fail(Code::kInput, path_ + ": is no capture file");
    }
    link_ = number(head, 20) & 0xffff;
    static constexpr std::uint32_t kKnown[] = {0, 1, 12, 14, 101, 113, 228, 276};
    if (std::find(std::begin(kKnown), std::end(kKnown), link_) == std::end(kKnown)) {
      return fail(Code::kInput, path_ + ": link type " + std::to_string(link_) +
                                    " is not supported; known: Ethernet, raw IP, Linux cooked, loopback");
    }
    std::uint64_t at = kFileHead;
    while (at < out_.file_.size()) {
      const std::uint64_t left = out_.file_.size() - at;
      TAKT_ASSIGN(const std::optional<RecordHead> record, head_at(at));
      if (!record) {
        report_("truncated record", at, std::to_string(left) + " bytes left, too few for a record");
        break;
      }
      TAKT_ASSIGN(const bool accepted, accepts(*record, at));
      if (!accepted) {
        TAKT_ASSIGN(const std::optional<std::uint64_t> next, resume(at));
        report_("damaged record", at,
                next ? "reading goes on at byte " + std::to_string(*next) : "nothing behind it makes sense");
        if (!next) break;
        at = *next;
        continue;
      }
      if (record->size > left - kRecordHead) {
        // Cut, or a damaged length: then another record is behind it.
        TAKT_ASSIGN(const std::optional<std::uint64_t> next, resume(at));
        report_("truncated record", at,
                std::to_string(record->size) + " bytes announced, " + std::to_string(left - kRecordHead) + " left" +
                    (next ? "; reading goes on at byte " + std::to_string(*next) : ""));
        if (!next) break;
        at = *next;
        continue;
      }
      ++out_.records_;
      last_seconds_ = record->seconds;
      TAKT_ASSIGN(const auto bytes, window_.at(at + kRecordHead, record->size));
      packet(bytes, at + kRecordHead, time_of(*record), record->size < record->original);
      at += kRecordHead + record->size;
    }
    if (cut_ != 0) report_("cut packet", 0, std::to_string(cut_) + " packets were captured only in part; left out");
    lost_ += pending_.size();
    if (lost_ != 0) {
      report_("incomplete datagram", 0, std::to_string(lost_) + " datagrams lack fragments; left out");
    }
    return {};
  }

 private:
  struct Fragments {
    std::uint64_t order = 0;                         // of arrival, to give up the oldest
    std::map<std::uint32_t, PcapFile::Piece> parts;  // by offset in the datagram
    std::optional<std::uint32_t> size;               // known from the last fragment
  };
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // source, destination, identification

  [[nodiscard]] std::uint32_t number(std::span<const std::byte> bytes, std::size_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, 4);
    return swap_ ? __builtin_bswap32(value) : value;
  }
  Result<std::optional<RecordHead>> head_at(std::uint64_t at) {
    TAKT_ASSIGN(const auto bytes, window_.at(at, kRecordHead));
    if (bytes.size() < kRecordHead) return std::optional<RecordHead>();
    return std::optional(RecordHead{number(bytes, 0), number(bytes, 4), number(bytes, 8), number(bytes, 12)});
  }
  [[nodiscard]] bool plausible(const RecordHead& r) const {
    return r.size > 0 && r.size <= kMaxRecord && r.original >= r.size && r.original <= kMaxRecord * 4 &&
           r.fraction < (nano_ ? 1'000'000'000U : 1'000'000U);
  }
  static bool within_a_day(std::uint32_t a, std::uint32_t b) {
    const std::int64_t gap = std::int64_t{a} - std::int64_t{b};
    return gap > -86400 && gap < 86400;
  }
  // A record that makes sense after the one before: by its time, or, where a clock was set, together with the next one.
  Result<bool> accepts(const RecordHead& r, std::uint64_t at) {
    if (!plausible(r)) return false;
    if (!last_seconds_ || within_a_day(r.seconds, *last_seconds_)) return true;
    return continues(r, at);
  }
  // Whether another record follows where this one ends.
  Result<bool> continues(const RecordHead& r, std::uint64_t at) {
    TAKT_ASSIGN(const std::optional<RecordHead> next, head_at(at + kRecordHead + r.size));
    return next && plausible(*next) && within_a_day(next->seconds, r.seconds);
  }
  // The next place behind a damaged record head where a record is and another one, or the end, behind it.
  Result<std::optional<std::uint64_t>> resume(std::uint64_t at) {
    constexpr std::uint64_t kReach = 1 << 20;
    const std::uint64_t end = std::min(out_.file_.size(), at + kReach);
    for (std::uint64_t candidate = at + 1; candidate + kRecordHead <= end; ++candidate) {
      TAKT_ASSIGN(const std::optional<RecordHead> head, head_at(candidate));
      if (!head || !plausible(*head)) continue;
      const bool ends_the_file = candidate + kRecordHead + head->size == out_.file_.size();
      if (ends_the_file && (!last_seconds_ || within_a_day(head->seconds, *last_seconds_))) {
        return std::optional(candidate);
      }
      TAKT_ASSIGN(const bool goes_on, continues(*head, candidate));
      if (goes_on) return std::optional(candidate);
    }
    return std::optional<std::uint64_t>();
  }
  [[nodiscard]] SensorTime time_of(const RecordHead& r) const {
    return {std::int64_t{r.seconds} * 1'000'000'000 + std::int64_t{r.fraction} * (nano_ ? 1 : 1000)};
  }

  // Bytes before the IPv4 header; nullopt when the packet holds no IPv4.
  [[nodiscard]] std::optional<std::size_t> link_bytes(std::span<const std::byte> bytes) const {
    constexpr std::uint32_t kIpv4 = 0x0800;
    switch (link_) {
      case 0: return bytes.size() >= 4 ? std::optional<std::size_t>(4) : std::nullopt;
      case 12:
      case 14:
      case 101:
      case 228: return 0;
      case 113: return bytes.size() >= 16 && big(bytes, 14, 2) == kIpv4 ? std::optional<std::size_t>(16) : std::nullopt;
      case 276: return bytes.size() >= 20 && big(bytes, 0, 2) == kIpv4 ? std::optional<std::size_t>(20) : std::nullopt;
      default: break;
    }
    std::size_t at = 12;
    while (at + 2 <= bytes.size()) {
      const std::uint32_t type = big(bytes, at, 2);
      if (type == kIpv4) return at + 2;
      if (type != 0x8100 && type != 0x88a8) return std::nullopt;  // VLAN tags
      at += 4;
    }
    return std::nullopt;
  }

  void packet(std::span<const std::byte> bytes, std::uint64_t offset, SensorTime time, bool cut) {
    const auto link = link_bytes(bytes);
    if (!link || bytes.size() < *link + 20) return;
    const auto ip = bytes.subspan(*link);
    const std::size_t head = (static_cast<std::size_t>(ip[0]) & 15U) * 4;
    const std::size_t total = big(ip, 2, 2);
    if (static_cast<unsigned>(ip[0]) >> 4 != 4 || head < 20 || static_cast<unsigned>(ip[9]) != 17) return;  // UDP
    if (total < head) return;
    if (total > ip.size()) {
      if (cut) ++cut_;
      return;
    }
    const auto body = ip.subspan(head, total - head);
    const std::uint64_t body_offset = offset + *link + head;
    const std::uint32_t flags = big(ip, 6, 2);
    const bool more = (flags & 0x2000) != 0;
    const std::uint32_t place = (flags & 0x1fff) * 8;
    if (!more && place == 0) {
      const PcapFile::Piece piece{body_offset, static_cast<std::uint32_t>(body.size())};
      datagram({&piece, 1}, body, big(ip, 12, 4), time);
      return;
    }
    const Key key{big(ip, 12, 4), big(ip, 16, 4), big(ip, 4, 2)};
    Fragments& all = pending_[key];
    if (all.parts.empty()) all.order = ++order_;
    all.parts[place] = {body_offset, static_cast<std::uint32_t>(body.size())};
    if (!more) all.size = place + static_cast<std::uint32_t>(body.size());
    if (all.size && *all.size <= kMaxDatagram) complete(key, time);
    if (pending_.size() > kMaxPending) {
      const auto oldest = std::min_element(pending_.begin(), pending_.end(), [](const auto& a, const auto& b) {
        return a.second.order < b.second.order;
      });
      pending_.erase(oldest);
      ++lost_;
    }
  }

  void complete(const Key& key, SensorTime time) {
    const Fragments& all = pending_.at(key);
    std::uint32_t reached = 0;
    std::vector<PcapFile::Piece> pieces;
    for (const auto& [place, piece] : all.parts) {
      if (place > reached) return;  // a gap
      const std::uint32_t skip = reached - place;
      if (skip >= piece.size) continue;
      pieces.push_back({piece.offset + skip, piece.size - skip});
      reached += piece.size - skip;
    }
    if (reached != *all.size) return;
    const auto head = window_head(pieces);
    datagram(pieces, head, std::get<0>(key), time);
    pending_.erase(key);
  }
  // The eight bytes of the UDP header, which is never split: fragments are multiples of eight.
  std::span<const std::byte> window_head(const std::vector<PcapFile::Piece>& pieces) {
    if (pieces.empty() || pieces[0].size < 8) return {};
    if (!out_.file_.read(pieces[0].offset, udp_)) return {};
    return udp_;
  }

  void datagram(std::span<const PcapFile::Piece> pieces, std::span<const std::byte> head, std::uint32_t source,
                SensorTime time) {
    std::uint32_t there = 0;
    for (const auto& piece : pieces) there += piece.size;
    if (head.size() < 8) return;
    const std::uint32_t length = big(head, 4, 2);
    if (length < 8 || length > there) return;
    Datagram d;
    d.time = time;
    d.source = source;
    d.source_port = static_cast<std::uint16_t>(big(head, 0, 2));
    d.port = static_cast<std::uint16_t>(big(head, 2, 2));
    d.size = length - 8;
    d.first_piece = static_cast<std::uint32_t>(out_.pieces_.size());
    std::uint32_t skip = 8, left = d.size;
    for (PcapFile::Piece piece : pieces) {
      const std::uint32_t off = std::min(skip, piece.size);
      skip -= off;
      piece.offset += off;
      piece.size = std::min(piece.size - off, left);
      left -= piece.size;
      if (piece.size != 0) out_.pieces_.push_back(piece);
    }
    d.pieces = static_cast<std::uint32_t>(out_.pieces_.size()) - d.first_piece;
    out_.datagrams_.push_back(d);
  }

  PcapFile& out_;
  const std::string& path_;
  const ReportProblem& report_;
  Window window_;
  bool swap_ = false, nano_ = false;
  std::uint32_t link_ = 0;
  std::optional<std::uint32_t> last_seconds_;
  std::map<Key, Fragments> pending_;
  std::uint64_t order_ = 0, lost_ = 0, cut_ = 0;
  std::array<std::byte, 8> udp_{};
};

Result<std::shared_ptr<const PcapFile>> PcapFile::open(const std::string& path, const ReportProblem& report) {
  auto file = std::make_shared<PcapFile>();
  TAKT_RETURN_IF_ERROR(file->file_.open(path));
  TAKT_RETURN_IF_ERROR(PcapScan(*file, path, report).run());
  return std::shared_ptr<const PcapFile>(std::move(file));
}

Status PcapFile::read(const Datagram& datagram, std::vector<std::byte>& out) const {
  out.resize(datagram.size);
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < datagram.pieces; ++i) {
    const Piece& piece = pieces_[datagram.first_piece + i];
    TAKT_RETURN_IF_ERROR(file_.read(piece.offset, std::span(out).subspan(at, piece.size)));
    at += piece.size;
  }
  return {};
}

}  // namespace takt::sensors
