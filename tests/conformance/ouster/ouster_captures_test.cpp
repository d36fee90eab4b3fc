// Real captures of a sensor whose packets takt does not decode: records are counted, fragments put together, and the
// refusal names the ports.
#include <gtest/gtest.h>

#include "sensors/logs/log_reader.h"
#include "sensors/logs/pcap.h"
#include "tests/support/test_data.h"

namespace takt::sensors {
namespace {

struct Figures {
  const char* file;
  std::uint64_t records;
  std::size_t datagrams;
  const char* ports;  // named by the refusal; nullptr: an empty log
};
constexpr Figures kCaptures[] = {{"OS-0-128-U1_v2.3.0_1024x10.pcap", 74, 74, "7502 (64), 7503 (10)"},
                                 {"OS-1-32-G_v2.1.1_1024x10.pcap", 64, 64, "7502 (64)"},
                                 {"OS-1-128_v2.3.0_1024x10_lb_n3.pcap", 222, 222, "7502 (192), 7503 (30)"},
                                 {"duplicate_id.pcap", 7, 1, "34636 (1)"},  // fragments of one datagram
                                 {"empty_pcap.pcap", 0, 0, nullptr}};

TEST(OusterCaptures, AreScannedWholeAndRefusedByName) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/ouster_sdk");
  for (const Figures& want : kCaptures) {
    const std::string path = folder + "/" + want.file;
    const auto file = PcapFile::open(path, [&](std::string kind, std::uint64_t offset, std::string detail) {
      ADD_FAILURE() << want.file << ": " << kind << " at " << offset << ": " << detail;
    });
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ((*file)->records(), want.records) << want.file;
    EXPECT_EQ((*file)->datagrams().size(), want.datagrams) << want.file;
    const auto log = open_log(path);
    if (want.ports == nullptr) {
      ASSERT_TRUE(log) << log.error().message;
      EXPECT_TRUE((*log)->channels().empty());
    } else {
      ASSERT_FALSE(log) << want.file;
      EXPECT_EQ(log.error().code, Code::kInput);
      EXPECT_NE(log.error().message.find(want.ports), std::string::npos) << log.error().message;
    }
  }
}

}  // namespace
}  // namespace takt::sensors
