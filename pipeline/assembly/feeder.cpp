#include "pipeline/assembly/feeder.h"

#include <algorithm>
#include <ctime>
#include <limits>

#include "sensors/camera/camera_decoder.h"
#include "sensors/ego/ego_decoder.h"
#include "sensors/lidar/lidar_decoder.h"
#include "sensors/radar/radar_decoder.h"

namespace takt::pipeline {
namespace {

constexpr std::size_t kExamples = 5;

void nap() {
  timespec pause{0, 50'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
}

Result<std::unique_ptr<sensors::Decoder>> make_decoder(const sensors::RigSensor& sensor,
                                                       const sensors::LogChannel& channel) {
  switch (sensor.kind) {
    case sensors::SensorKind::kCamera: return sensors::make_camera_decoder(sensor, channel);
    case sensors::SensorKind::kLidar: return sensors::make_lidar_decoder(sensor, channel);
    case sensors::SensorKind::kRadar: return sensors::make_radar_decoder(sensor, channel);
    case sensors::SensorKind::kEgo: return sensors::make_ego_decoder(sensor, channel);
  }
  return fail(Code::kInternal, "sensor of unknown kind");
}

void add_example(SensorHealth& health, const sensors::LogMessage& message, const std::string& what) {
  if (health.examples.size() >= kExamples) return;
  health.examples.push_back("message " + std::to_string(message.index) + " (stamp " +
                            std::to_string(message.capture.ns) + " ns): " + what);
}

}  // namespace

void LocationLedger::note(std::uint64_t job, transport::ChunkLocation where) {
  Entry& entry = entries_[job % kEntries];
  entry.segment.store(where.segment, std::memory_order_relaxed);
  entry.offset.store(where.offset, std::memory_order_relaxed);
  entry.job.store(job, std::memory_order_release);
}

bool LocationLedger::matches(std::uint64_t job, transport::ChunkLocation where) const {
  const Entry& entry = entries_[job % kEntries];
  if (entry.job.load(std::memory_order_acquire) != job) return true;
  return entry.segment.load(std::memory_order_relaxed) == where.segment &&
         entry.offset.load(std::memory_order_relaxed) == where.offset;
}

void StampTrail::note(SensorTime arrival, SensorTime capture) {
  const std::uint64_t at = noted_.load(std::memory_order_relaxed);
  Entry& entry = entries_[at % kEntries];
  entry.arrival.store(arrival.ns, std::memory_order_relaxed);
  entry.capture.store(capture.ns, std::memory_order_relaxed);
  noted_.store(at + 1, std::memory_order_release);
}

std::optional<SensorTime> StampTrail::newest(SensorTime by) const {
  const std::uint64_t noted = noted_.load(std::memory_order_acquire);
  for (std::uint64_t back = 1; back <= std::min(noted, kEntries / 2); ++back) {
    const Entry& entry = entries_[(noted - back) % kEntries];
    if (entry.arrival.load(std::memory_order_relaxed) > by.ns) continue;
    return SensorTime{entry.capture.load(std::memory_order_relaxed)};
  }
  return std::nullopt;
}

// A topic may have several channels, and each its own type.
struct Feeder::Decoders {
  struct OfChannel {
    const sensors::LogChannel* channel;
    std::unique_ptr<sensors::Decoder> decoder;
  };
  std::vector<std::vector<OfChannel>> by_feed;

  // kConfiguration when the topic has channels, but none whose messages the sensor reads.
  Status add_feed(const sensors::LogReader& log, const sensors::RigSensor& sensor) {
    std::vector<OfChannel>& feed = by_feed.emplace_back();
    Status failure;
    for (const sensors::LogChannel& channel : log.channels()) {
      if (channel.topic != sensor.topic) continue;
      auto decoder = make_decoder(sensor, channel);
      if (decoder) {
        feed.push_back({&channel, *std::move(decoder)});
      } else if (failure) {
        failure = fail(std::move(decoder).error().with_context("sensor " + sensor.name));
      }
    }
    if (feed.empty()) return failure;
    return {};
  }
  sensors::Decoder* find(std::size_t feed, const sensors::LogChannel* channel) const {
    for (const OfChannel& one : by_feed[feed]) {
      if (one.channel == channel) return one.decoder.get();
    }
    return nullptr;
  }
};

Feeder::Feeder(sensors::LogReader& log, const sensors::Rig& rig, std::vector<std::unique_ptr<SensorFeed>>& feeds,
               std::uint64_t run, Duration hyperperiod, const ReplayGate* gate)
    : log_(log),
      rig_(rig),
      feeds_(feeds),
      run_(run),
      hyperperiod_(hyperperiod),
      gate_(gate),
      health_(feeds.size()),
      progress_(feeds.size()) {
  decoders_ = std::make_unique<Decoders>();
  for (std::size_t i = 0; i < feeds_.size(); ++i) {
    const sensors::RigSensor& sensor = rig_.sensors[feeds_[i]->sensor];
    health_[i].sensor = sensor.name;
    status_ = decoders_->add_feed(log_, sensor);
    if (!status_) return;
  }
}

Feeder::~Feeder() { stop(); }

void Feeder::start() {
  thread_ = std::thread([this] { loop(); });
}

void Feeder::stop() {
  stop_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
}

void Feeder::loop() {
  SensorTime last{std::numeric_limits<std::int64_t>::min()};
  while (status_ && !stop_.load(std::memory_order_acquire)) {
    Result<std::optional<sensors::LogMessage>> next = log_.next();
    if (!next) {
      status_ = fail(std::move(next).error());
      break;
    }
    if (!next->has_value()) {
      for (std::size_t i = 0; i < feeds_.size(); ++i) count_silence(i, last);
      break;
    }
    const sensors::LogMessage& message = **next;
    last = message.arrival;
    for (std::size_t i = 0; i < feeds_.size(); ++i) {
      if (rig_.sensors[feeds_[i]->sensor].topic != message.channel->topic) continue;
      if (gate_ != nullptr) wait_at_gate(message.arrival);
      // Everything earlier has been published: messages come in order of arrival.
      watermark_.store(message.arrival.ns - 1, std::memory_order_release);
      if (!wait_for_room(*feeds_[i], message.arrival, progress_[i].pending)) return;
      feed(*feeds_[i], health_[i], message);
      break;
    }
  }
  // The end of the log, or of what can be read of it: nothing more will come, nobody waits for it.
  watermark_.store(std::numeric_limits<std::int64_t>::max(), std::memory_order_release);
}

// Everything before `arrival` has been published, so jobs may go on up to the limit.
void Feeder::wait_at_gate(SensorTime arrival) {
  while (arrival.ns > gate_->limit_ns() && !stop_.load(std::memory_order_acquire)) {
    const std::int64_t reached = std::min(arrival.ns - 1, gate_->limit_ns());
    if (reached > watermark_.load(std::memory_order_relaxed)) watermark_.store(reached, std::memory_order_release);
    nap();
  }
}

void Feeder::want(SensorTime latch) {
  std::int64_t known = wanted_.load(std::memory_order_relaxed);
  while (known < latch.ns && !wanted_.compare_exchange_weak(known, latch.ns, std::memory_order_release)) {
  }
}

bool Feeder::wait_for_room(const SensorFeed& feed, SensorTime arrival, std::vector<std::int64_t>& pending) {
  for (;;) {
    std::int64_t latched = std::numeric_limits<std::int64_t>::max();
    const std::int64_t wanted = wanted_.load(std::memory_order_acquire);
    const std::int64_t passed = wanted == transport::kNoStamp ? wanted : wanted - hyperperiod_.ns;
    for (const auto& consumer : feed.latched) {
      latched = std::min(latched, std::max(passed, consumer->load(std::memory_order_acquire)));
    }
    std::erase_if(pending, [latched](std::int64_t delivered) { return delivered <= latched; });
    if (pending.size() < feed.ahead || arrival.ns <= wanted) return true;
    if (stop_.load(std::memory_order_acquire)) return false;
    nap();
  }
}

// A sensor that fell silent while others went on: no later frame shows the gap.
void Feeder::count_silence(std::size_t feed, SensorTime last) {
  const sensors::RigSensor& sensor = rig_.sensors[feeds_[feed]->sensor];
  const std::int64_t since = progress_[feed].last_capture;
  if (since == transport::kNoStamp) return;
  const std::int64_t silent = last.ns - sensor.delay_max().ns - since;
  const std::int64_t missing = (silent - sensor.period.ns / 2) / sensor.period.ns;
  if (missing < 1) return;
  SensorHealth& health = health_[feed];
  health.gaps += static_cast<std::uint64_t>(missing);
  if (health.examples.size() < kExamples) {
    health.examples.push_back("frames missing at the end: none came in the last " + std::to_string(silent / 1'000'000) +
                              " ms of the log");
  }
}

void Feeder::feed(SensorFeed& feed, SensorHealth& health, const sensors::LogMessage& message) {
  const std::size_t index = static_cast<std::size_t>(&health - health_.data());
  const sensors::RigSensor& sensor = rig_.sensors[feed.sensor];
  Progress& progress = progress_[index];
  ++health.messages;
  if (message.capture > message.arrival) {
    ++health.order_faults;
    add_example(health, message, "captured after it arrived: left out");
    return;
  }
  if (progress.last_capture != transport::kNoStamp) {
    const std::int64_t step = message.capture.ns - progress.last_capture;
    if (step < 0) {
      ++health.order_faults;
      add_example(health, message, "stamp lies before the one of the frame before: left out");
      return;
    }
    if (step == 0) {
      ++health.repeats;
      add_example(health, message, "same stamp as the frame before: left out");
      return;
    }
    if (step * 2 > sensor.period.ns * 3) {
      health.gaps += static_cast<std::uint64_t>((step + sensor.period.ns / 2) / sensor.period.ns - 1);
      add_example(health, message,
                  "frames missing before it: " + std::to_string(step / 1'000'000) + " ms since the last");
    }
  }
  progress.last_capture = message.capture.ns;
  const Digest bytes = digest(message.bytes);
  // Ego motion of a standing vehicle repeats its numbers; a picture or a sweep with noise never does.
  if (sensor.kind != sensors::SensorKind::kEgo && bytes == progress.last_bytes) {
    ++health.repeats;
    add_example(health, message, "same bytes as the frame before: used, with its own stamp");
  }
  progress.last_bytes = bytes;

  const auto bad_frame = [&](const std::string& why) {
    ++health.bad_frames;
    health.left_out.push_back({message.index, message.capture, message.arrival});
    if (health.bad_frames == 1) feed.first_bad.store(message.arrival.ns, std::memory_order_release);
    add_example(health, message, why + ": left out");
  };
  sensors::Decoder* const decoder = decoders_->find(index, message.channel);
  if (decoder == nullptr) {
    bad_frame(message.channel->schema + " is no type of this sensor");
    return;
  }
  transport::Publisher::Loan loan = feed.publisher->loan();
  if (!loan) {
    // Cannot happen by plan: the feeder holds one loan and waits for room in the queues.
    bad_frame("no free chunk in the pool");
    return;
  }
  *loan.header = {};
  const sensors::DecodeReport report =
      decoder->decode(message.bytes, {loan.payload, feed.publisher->payload_capacity()});
  health.invalid_points += report.invalid_points;
  health.dropped_points += report.dropped_points;
  if (report.invalid_points > 0) {
    add_example(health, message, std::to_string(report.invalid_points) + " points are NaN or infinite: removed");
  }
  if (report.dropped_points > 0) {
    add_example(health, message,
                std::to_string(report.dropped_points) + " points over the capacity of " +
                    std::to_string(sensor.capacity) + ": dropped");
  }
  if (report.repaired != nullptr) add_example(health, message, std::string("repaired: ") + report.repaired);
  if (!report.ok) {
    bad_frame(report.reason);
    feed.publisher->discard(loan);
    return;
  }
  const Duration apart = feed.stamp.map_unchecked({report.stamp.ns}) - message.capture;
  if (apart.ns != 0 && ++health.other_stamps == 1) {
    add_example(health, message,
                "the stamp inside it lies " + std::to_string(apart.ms()) +
                    " ms after the one that the log gives (MCAP: publish time), which is used");
  }
  loan.header->run = run_;
  loan.header->schema = decoder->schema();
  loan.header->job = message.index;
  loan.header->capture_ns = message.capture.ns;
  loan.header->arrival_ns = message.arrival.ns;
  loan.header->payload_bytes = report.payload_bytes;
  loan.header->sources[feed.sensor] = {message.capture.ns, message.capture.ns};
  feed.ledger.note(message.index, feed.publisher->location(loan));
  feed.publisher->publish(loan);
  feed.trail.note(message.arrival, message.capture);
  ++health.delivered;
  progress.pending.push_back(message.arrival.ns);
}

}  // namespace takt::pipeline
