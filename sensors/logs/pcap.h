// UDP datagrams of a capture file (libpcap's classic format,
// https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-03): either byte order, micro- or nanoseconds; Ethernet (with
// VLAN tags), raw IP, Linux cooked and loopback captures; IPv4, fragments put together. Everything else is skipped and
// counted. Own reader: datagrams are found by position, so that a capture of any size takes 40 bytes of memory per
// datagram.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "sensors/logs/dataset_log.h"
#include "sensors/logs/input_file.h"

namespace takt::sensors {

struct Datagram {
  SensorTime time;  // of its last fragment, by the capturing host
  std::uint32_t source = 0;
  std::uint16_t source_port = 0, port = 0;  // port: destination
  std::uint32_t size = 0;                   // bytes of payload
  std::uint32_t first_piece = 0, pieces = 0;
};

class PcapFile {
 public:
  // Scans the whole file. kInput: missing, no capture, pcapng. Damage goes to `report`; after a damaged record header
  // reading goes on at the next place where two records in a row make sense.
  static Result<std::shared_ptr<const PcapFile>> open(const std::string& path, const ReportProblem& report);

  [[nodiscard]] const std::vector<Datagram>& datagrams() const { return datagrams_; }
  [[nodiscard]] std::uint64_t records() const { return records_; }  // of the file, whatever they hold
  // Payload of a datagram.
  Status read(const Datagram& datagram, std::vector<std::byte>& out) const;

 private:
  struct Piece {
    std::uint64_t offset = 0;
    std::uint32_t size = 0;
  };
  friend class PcapScan;
  InputFile file_;
  std::uint64_t records_ = 0;
  std::vector<Datagram> datagrams_;
  std::vector<Piece> pieces_;
};

}  // namespace takt::sensors
