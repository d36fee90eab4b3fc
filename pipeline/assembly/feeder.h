// The replay feeder: reads the log, decodes into loaned chunks, publishes ahead (DESIGN section 4.1). It runs on the
// housekeeping reserve. The arrival stamp alone decides which sample a job uses, never the moment of delivery.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/assembly/replay_gate.h"
#include "pipeline/report/run_data.h"
#include "runtime/base/time.h"
#include "runtime/transport/transport.h"
#include "sensors/logs/log_reader.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

// Where the last chunks of a topic were published, so that every consumer can check that it got the very same place.
// One writer; readers look up a job they have taken, hence after its publication.
class LocationLedger {
 public:
  void note(std::uint64_t job, transport::ChunkLocation where);
  // True when `job` was published at `where` (or lies too far back to tell).
  [[nodiscard]] bool matches(std::uint64_t job, transport::ChunkLocation where) const;

 private:
  static constexpr std::size_t kEntries = 1024;
  struct Entry {
    std::atomic<std::uint64_t> job{~0ULL};
    std::atomic<std::uint64_t> segment{0};
    std::atomic<std::uint64_t> offset{0};
  };
  std::vector<Entry> entries_{kEntries};
};

// When the last samples of a topic arrived, and what they are stamped. One writer, any readers.
class StampTrail {
 public:
  void note(SensorTime arrival, SensorTime capture);
  // Stamp of the newest one that has arrived by then, among the last kEntries / 2.
  [[nodiscard]] std::optional<SensorTime> newest(SensorTime by) const;

 private:
  static constexpr std::uint64_t kEntries = 256;
  struct Entry {
    std::atomic<std::int64_t> arrival{0}, capture{0};
  };
  std::vector<Entry> entries_{kEntries};
  std::atomic<std::uint64_t> noted_{0};
};

// One sensor topic of the feeder and the consumers' progress on it.
struct SensorFeed {
  std::size_t sensor = 0;         // in the rig
  sensors::DeviceClockMap stamp;  // stamp in a message -> stamp reference
  std::uint32_t ahead = 1;        // A: samples published beyond the slowest consumer's last latch
  std::unique_ptr<transport::Publisher> publisher;
  std::vector<std::unique_ptr<std::atomic<std::int64_t>>> latched;  // per consumer: SensorTime ns of its last latch
  LocationLedger ledger;
  StampTrail trail;
  // Arrival of the first message that could not be decoded (SensorTime ns). Told before the watermark passes it.
  std::atomic<std::int64_t> first_bad{std::numeric_limits<std::int64_t>::max()};
};

class Feeder {
 public:
  // `log` is opened and selected to the topics of `feeds`; both must outlive the feeder, and so must `gate` (null: no
  // pause). Every consumer latches at least once a `hyperperiod`; one that has not, while others went on, skips its
  // jobs and is not waited for.
  Feeder(sensors::LogReader& log, const sensors::Rig& rig, std::vector<std::unique_ptr<SensorFeed>>& feeds,
         std::uint64_t run, Duration hyperperiod, const ReplayGate* gate = nullptr);
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  void start();
  void stop();

  // Every sample with arrival <= watermark has been published or left out. Any thread.
  [[nodiscard]] SensorTime watermark() const { return {watermark_.load(std::memory_order_acquire)}; }
  // A job waits for everything up to `latch`: the feeder goes on to there even where a topic has no room. What the
  // full queue then loses are samples that a newer one, also wanted, has superseded. Any thread.
  void want(SensorTime latch);
  // After stop(): what was met, by feed.
  [[nodiscard]] const std::vector<SensorHealth>& health() const { return health_; }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  void loop();
  void feed(SensorFeed& feed, SensorHealth& health, const sensors::LogMessage& message);
  void count_silence(std::size_t feed, SensorTime last);
  void wait_at_gate(SensorTime arrival);
  bool wait_for_room(const SensorFeed& feed, SensorTime arrival, std::vector<std::int64_t>& pending);

  struct Decoders;
  sensors::LogReader& log_;
  const sensors::Rig& rig_;
  std::vector<std::unique_ptr<SensorFeed>>& feeds_;
  std::uint64_t run_;
  Duration hyperperiod_;
  const ReplayGate* gate_;
  std::vector<SensorHealth> health_;
  struct Progress {
    std::vector<std::int64_t> pending;  // arrivals published and not yet latched by every consumer
    std::int64_t last_capture = transport::kNoStamp;
    Digest last_bytes;
  };
  std::vector<Progress> progress_;
  std::unique_ptr<Decoders> decoders_;
  std::atomic<std::int64_t> watermark_{transport::kNoStamp};
  std::atomic<std::int64_t> wanted_{transport::kNoStamp};
  std::atomic<bool> stop_{false};
  Status status_;
  std::thread thread_;
};

}  // namespace takt::pipeline
