#include "sensors/logs/packet_log.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "sensors/logs/ars548.h"
#include "sensors/logs/dataset_log.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/pcap.h"
#include "sensors/logs/ros_cursor.h"
#include "sensors/logs/ros_messages.h"
#include "sensors/logs/velodyne.h"

namespace takt::sensors {
namespace {

using Bytes = std::span<const std::byte>;

// --- Captures

// Blocks from one packet to another one: [first_block of first, end_block of last).
struct Sweep {
  std::size_t first = 0, last = 0;  // indices of the sensor's packets
  std::size_t first_block = 0, end_block = 0;
  SensorTime stamp;           // of the first firing
  std::int64_t start_us = 0;  // of the first packet of the sweep, from the sensor's first packet
};

struct SensorPackets {
  std::vector<std::size_t> datagrams;    // indices into the capture
  std::vector<std::int64_t> elapsed_us;  // Velodyne: from the first packet, by its clock
  std::vector<std::uint32_t> hour_us;
};

class Capture {
 public:
  explicit Capture(const std::string& path)
      : path_(path), log_(std::make_unique<DatasetLog>("network capture", path)) {}

  Result<std::unique_ptr<LogReader>> open(const std::vector<ReleaseRule>& rules) {
    TAKT_ASSIGN(file_, PcapFile::open(path_, log_->report()));
    if (file_->datagrams().empty() && file_->records() == 0 && log_->problems().empty()) {
      log_->arrange_empty(rules);
      return std::unique_ptr<LogReader>(std::move(log_));
    }
    TAKT_RETURN_IF_ERROR(sort_datagrams());
    std::size_t number = 0;
    for (const auto& [who, packets] : velodyne_) TAKT_RETURN_IF_ERROR(sweeps(packets, name("/velodyne", ++number)));
    number = 0;
    for (const auto& [who, packets] : radars_) TAKT_RETURN_IF_ERROR(radar(packets, name("/ars548", ++number)));
    if (!others_.empty()) {
      std::string ports;
      for (const auto& [port, count] : others_) {
        ports += (ports.empty() ? "" : ", ") + std::to_string(port) + " (" + std::to_string(count) + ")";
      }
      if (velodyne_.empty() && radars_.empty()) {
        return fail(Code::kInput, path_ + ": holds " + std::to_string(file_->datagrams().size()) +
                                      " datagrams, none of a sensor that takt reads (Velodyne VLP-16, VLP-32C; "
                                      "Continental ARS548). Destination ports: " +
                                      ports);
      }
      log_->note("datagrams of other kinds are not read; by destination port: " + ports);
    }
    TAKT_RETURN_IF_ERROR(log_->finish(rules));
    return std::unique_ptr<LogReader>(std::move(log_));
  }

 private:
  using Who = std::array<std::uint32_t, 2>;  // sender, destination port

  static std::string name(const char* base, std::size_t number) {
    return std::string(base) + (number == 1 ? "" : "_" + std::to_string(number));
  }

  Status sort_datagrams() {
    std::vector<std::byte> bytes;
    std::map<std::string, std::uint64_t> refused;
    for (std::size_t i = 0; i < file_->datagrams().size(); ++i) {
      const Datagram& d = file_->datagrams()[i];
      const Who who{d.source, d.port};
      const bool velodyne = d.size == kVelodyneBytes,
                 radar = d.size == kArs548DetectionBytes || d.size == kArs548ObjectBytes;
      if (velodyne || radar) TAKT_RETURN_IF_ERROR(file_->read(d, bytes));
      std::string reason;
      if (velodyne) {
        if (const auto packet = VelodynePacket::parse(bytes, reason)) {
          SensorPackets& all = velodyne_[who];
          all.elapsed_us.push_back(elapsed(all, d, packet->hour_us()));
          all.datagrams.push_back(i);
          all.hour_us.push_back(packet->hour_us());
          continue;
        }
        if (velodyne_.count(who) != 0 || d.port == 2368) {
          ++refused[reason];
          continue;
        }
      } else if (radar && ars548_kind(bytes) != Ars548Kind::kOther) {
        radars_[who].datagrams.push_back(i);
        continue;
      }
      ++others_[d.port];
    }
    for (const auto& [reason, count] : refused) {
      log_->damage("bad packet", 0, std::to_string(count) + " Velodyne packets: " + reason + "; left out");
    }
    return {};
  }

  [[nodiscard]] std::int64_t elapsed(const SensorPackets& all, const Datagram& d, std::uint32_t hour_us) const {
    if (all.datagrams.empty()) return 0;
    const Datagram& before = file_->datagrams()[all.datagrams.back()];
    return all.elapsed_us.back() + velodyne_elapsed(all.hour_us.back(), hour_us, d.time - before.time);
  }

  // Time of the sensor's first packet: by its clock where that agrees with the host's. The median of some packets
  // decides, so that one with a wrong time moves nothing.
  SensorTime origin(const SensorPackets& packets, const std::string& topic) {
    struct Pair {
      std::int64_t behind_us;  // host - sensor, modulo the hour
      SensorTime first;        // the first packet by this one's host time
    };
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < std::min<std::size_t>(packets.datagrams.size(), 101); ++i) {
      const SensorTime host = file_->datagrams()[packets.datagrams[i]].time;
      std::int64_t behind = (host.ns / 1000 - packets.hour_us[i]) % kVelodyneHour;
      if (behind > kVelodyneHour / 2) behind -= kVelodyneHour;
      pairs.push_back({behind, host - microseconds(packets.elapsed_us[i])});
    }
    const auto middle = pairs.begin() + static_cast<std::ptrdiff_t>(pairs.size() / 2);
    std::nth_element(pairs.begin(), middle, pairs.end(),
                     [](const Pair& a, const Pair& b) { return a.behind_us < b.behind_us; });
    const std::int64_t behind = middle->behind_us;
    if (behind > -1'000'000 && behind < 1'000'000) {
      return {(middle->first.ns / 1000 - behind) * 1000};
    }
    log_->note(topic + ": the sensor's clock is not set (" + std::to_string(behind / 1'000'000) +
               " s from the host's within the hour); stamps are those of the host");
    std::nth_element(pairs.begin(), middle, pairs.end(),
                     [](const Pair& a, const Pair& b) { return a.first < b.first; });
    return middle->first;
  }

  Status sweeps(const SensorPackets& packets, const std::string& topic) {
    const SensorTime begin = origin(packets, topic);
    std::vector<Sweep> all;
    std::optional<std::uint32_t> last_azimuth;
    std::vector<std::byte> bytes;
    std::uint64_t gaps = 0;
    for (std::size_t i = 0; i < packets.datagrams.size(); ++i) {
      TAKT_RETURN_IF_ERROR(file_->read(file_->datagrams()[packets.datagrams[i]], bytes));
      std::string reason;
      const auto packet = VelodynePacket::parse(bytes, reason);
      if (!packet) return fail(Code::kInput, path_ + ": was changed while it was being read");
      if (i > 0 && packets.elapsed_us[i] - packets.elapsed_us[i - 1] > 3000) ++gaps;  // a packet takes 0.3 to 1.4 ms
      for (std::size_t block = 0; block < kVelodyneBlocks; block += packet->dual() ? 2 : 1) {
        const std::uint32_t azimuth = packet->azimuth(block);
        if (!last_azimuth || azimuth + 18000 < *last_azimuth) {
          if (!all.empty()) {
            all.back().last = block == 0 ? i - 1 : i;
            all.back().end_block = block == 0 ? kVelodyneBlocks : block;
          }
          Sweep& sweep = all.emplace_back();
          sweep.first = i;
          sweep.first_block = block;
          sweep.start_us = packets.elapsed_us[i];
          sweep.stamp = begin + Duration{packets.elapsed_us[i] * 1000} + packet->block_time(block);
        }
        last_azimuth = azimuth;
      }
    }
    if (all.empty()) return {};
    all.back().last = packets.datagrams.size() - 1;
    all.back().end_block = kVelodyneBlocks;
    if (gaps != 0) log_->note(topic + ": " + std::to_string(gaps) + " gaps between packets; their points are missing");

    const std::uint32_t channel = log_->channel(topic + "/points", "foxglove.PointCloud");
    const auto shared = std::make_shared<const SensorPackets>(packets);
    for (const Sweep& sweep : all) {
      const SensorTime arrival = file_->datagrams()[packets.datagrams[sweep.last]].time;
      log_->message(channel, sweep.stamp, arrival, [file = file_, shared, sweep, begin]() -> Result<std::string> {
        std::vector<log::LidarPoint> points;
        std::vector<std::byte> data;
        for (std::size_t i = sweep.first; i <= sweep.last; ++i) {
          TAKT_RETURN_IF_ERROR(file->read(file->datagrams()[shared->datagrams[i]], data));
          std::string why;
          const auto one = VelodynePacket::parse(data, why);
          if (!one) return fail(Code::kInput, "a packet was changed while it was being read");
          const Duration start = begin + Duration{shared->elapsed_us[i] * 1000} - sweep.stamp;
          one->points(i == sweep.first ? sweep.first_block : 0, i == sweep.last ? sweep.end_block : kVelodyneBlocks,
                      start, points);
        }
        return encode_lidar(sweep.stamp, "velodyne", points);
      });
    }
    return {};
  }

  Status radar(const SensorPackets& packets, const std::string& topic) {
    const std::uint32_t detections = log_->channel(topic + "/detections", "foxglove.PointCloud");
    const std::uint32_t objects = log_->channel(topic + "/objects", "foxglove.SceneUpdate");
    std::vector<std::byte> bytes;
    std::uint64_t unset = 0;
    for (const std::size_t index : packets.datagrams) {
      const Datagram& d = file_->datagrams()[index];
      TAKT_RETURN_IF_ERROR(file_->read(d, bytes));
      const auto refuse = [&](const Error& error) { log_->damage("bad packet", 0, error.message + "; left out"); };
      const auto stamp_of = [&](const Ars548Stamp& stamp) {
        const Duration off = stamp.time - d.time;
        const bool usable = stamp.synchronised && off > seconds(-1) && off < seconds(1);
        unset += usable ? 0 : 1;
        return usable ? stamp.time : d.time;
      };
      if (ars548_kind(bytes) == Ars548Kind::kDetections) {
        auto list = parse_ars548_detections(bytes);
        if (!list) {
          refuse(list.error());
          continue;
        }
        const SensorTime stamp = stamp_of(list->stamp);
        log_->message(detections, stamp, d.time, [list = *std::move(list), stamp]() -> Result<std::string> {
          return ars548_radar_message(list, stamp, "ars548");
        });
      } else {
        auto list = parse_ars548_objects(bytes);
        if (!list) {
          refuse(list.error());
          continue;
        }
        const SensorTime stamp = stamp_of(list->stamp);
        log_->message(objects, stamp, d.time, [list = *std::move(list), stamp]() -> Result<std::string> {
          return ars548_scene_message(list, stamp, "vehicle");
        });
      }
    }
    if (unset != 0) {
      log_->note(topic + ": the clock of " + std::to_string(unset) +
                 " packets is not set; their stamps are those of the host");
    }
    return {};
  }

  const std::string path_;
  std::unique_ptr<DatasetLog> log_;
  std::shared_ptr<const PcapFile> file_;
  std::map<Who, SensorPackets> velodyne_, radars_;
  std::map<std::uint16_t, std::uint64_t> others_;  // by destination port
};

// --- Recordings of drivers

struct StampedPacket {
  SensorTime stamp;
  Bytes bytes;
};

// velodyne_msgs/VelodyneScan (packets of 1206 bytes) and nebula_msgs/NebulaPackets (packets with a length of their
// own).
struct PacketMessage {
  ros::Header header;
  std::vector<StampedPacket> packets;
};
Result<PacketMessage> parse_packets(ros::Encoding encoding, Bytes bytes, bool velodyne) {
  ros::Cursor cursor(encoding, bytes);
  PacketMessage message;
  message.header = cursor.header();
  const std::uint32_t count = cursor.count(velodyne ? 8 + kVelodyneBytes : 12);
  for (std::uint32_t i = 0; i < count && cursor.ok(); ++i) {
    StampedPacket packet;
    packet.stamp = cursor.time();
    packet.bytes = velodyne ? cursor.take(kVelodyneBytes) : cursor.bytes();
    message.packets.push_back(packet);
  }
  TAKT_RETURN_IF_ERROR(cursor.status());
  return message;
}

Result<std::string> velodyne_scan(const PacketMessage& message) {
  std::vector<log::LidarPoint> points;
  std::optional<std::uint32_t> first_us;
  SensorTime stamp = message.header.stamp;
  for (const StampedPacket& raw : message.packets) {
    std::string reason;
    const auto packet = VelodynePacket::parse(raw.bytes, reason);
    if (!packet) return fail(Code::kInput, "a Velodyne packet: " + reason);
    if (!first_us) {
      first_us = packet->hour_us();
      stamp = raw.stamp;
    }
    const std::int64_t us = velodyne_elapsed(*first_us, packet->hour_us(), raw.stamp - stamp);
    packet->points(0, kVelodyneBlocks, Duration{us * 1000}, points);
  }
  return encode_lidar(stamp, message.header.frame_id, points);
}

struct Decoded {
  Ars548Kind kind = Ars548Kind::kOther;  // kOther: a cloud
  std::string bytes;
};

class PacketTopics final : public LogReader {
 public:
  explicit PacketTopics(std::unique_ptr<LogReader> inner) : inner_(std::move(inner)) {}

  static bool is_velodyne(const LogChannel& channel) {
    return ros::is_type(channel.schema, "velodyne_msgs/VelodyneScan");
  }
  static bool is_nebula(const LogChannel& channel) { return ros::is_type(channel.schema, "nebula_msgs/NebulaPackets"); }
  static bool has_packets(const LogReader& log) {
    return std::any_of(log.channels().begin(), log.channels().end(), [](const LogChannel& channel) {
      return ros::encoding_of(channel.encoding) && (is_velodyne(channel) || is_nebula(channel));
    });
  }

  // Reads all packet messages once: which kinds there are and what is damaged is known from the start.
  Status open() {
    std::map<const LogChannel*, std::array<std::uint64_t, 3>> counts;  // by kind
    std::vector<std::string> topics;
    for (const LogChannel& channel : inner_->channels()) {
      if (decodes(channel)) topics.push_back(channel.topic);
    }
    inner_->select(topics);
    for (;;) {
      TAKT_ASSIGN(const std::optional<LogMessage> message, inner_->next());
      if (!message) break;
      if (const auto decoded = decode(*message)) {
        ++counts[message->channel][static_cast<std::size_t>(decoded->kind)];
      } else {
        bad_.insert({message->channel, message->index});
        found_.push_back({"bad packet message", 0,
                          message->channel->topic + ", message " + std::to_string(message->index) + ": " +
                              decoded.error().message + "; left out"});
      }
    }
    inner_->select({});
    for (const LogChannel& channel : inner_->channels()) {
      if (!decodes(channel)) {
        places_[&channel].fill(channels_.size());
        add(channel, channel.topic, channel.schema, channel.messages);
        continue;
      }
      auto& place = places_[&channel];
      const auto& count = counts[&channel];
      if (is_velodyne(channel)) {
        place.fill(channels_.size());
        add(channel, channel.topic + "/points", "foxglove.PointCloud", count[0]);
      } else {
        place = {channels_.size(), channels_.size(), channels_.size() + 1};
        add(channel, channel.topic + "/detections", "foxglove.PointCloud", count[1]);
        add(channel, channel.topic + "/objects", "foxglove.SceneUpdate", count[2]);
      }
    }
    selected_.assign(channels_.size(), true);
    rewind();
    return {};
  }

  [[nodiscard]] const std::vector<LogChannel>& channels() const override { return channels_; }
  [[nodiscard]] std::optional<std::pair<SensorTime, SensorTime>> span() const override { return inner_->span(); }
  void select(const std::vector<std::string>& topics) override {
    std::vector<std::string> inner;
    for (const auto& [channel, place] : places_) {
      for (const std::size_t at : place) {
        if (std::find(topics.begin(), topics.end(), channels_[at].topic) != topics.end())
          inner.push_back(channel->topic);
      }
    }
    // Nothing that exists: the inner reader takes an empty list as everything.
    if (inner.empty() && !topics.empty()) inner = topics;
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      selected_[i] = topics.empty() || std::find(topics.begin(), topics.end(), channels_[i].topic) != topics.end();
    }
    inner_->select(inner);
    rewind();
  }
  void rewind() override {
    indices_.assign(channels_.size(), 0);
    inner_->rewind();
  }
  Result<std::optional<LogMessage>> next() override {
    for (;;) {
      TAKT_ASSIGN(std::optional<LogMessage> message, inner_->next());
      if (!message) return message;
      const auto& place = places_.at(message->channel);
      std::size_t at = place[0];
      if (decodes(*message->channel)) {
        if (bad_.count({message->channel, message->index}) != 0) continue;
        TAKT_ASSIGN(Decoded decoded, decode(*message));
        at = place[static_cast<std::size_t>(decoded.kind)];
        buffer_ = std::move(decoded.bytes);
        message->bytes = std::as_bytes(std::span(buffer_));
      }
      if (!selected_[at]) continue;
      message->channel = &channels_[at];
      message->index = indices_[at]++;
      return message;
    }
  }
  [[nodiscard]] const std::vector<LogProblem>& problems() const override {
    all_problems_ = inner_->problems();
    all_problems_.insert(all_problems_.end(), found_.begin(), found_.end());
    return all_problems_;
  }
  [[nodiscard]] std::vector<std::string> notes() const override {
    auto all = inner_->notes();
    for (const auto& [channel, place] : places_) {
      if (decodes(*channel)) all.push_back(channel->topic + ": packets are decoded into " + channels_[place[1]].topic);
    }
    return all;
  }
  [[nodiscard]] std::vector<LogAttachment> attachments() const override { return inner_->attachments(); }
  Result<std::string> read_attachment(std::size_t index) override { return inner_->read_attachment(index); }
  [[nodiscard]] std::vector<LogMetadata> metadata() const override { return inner_->metadata(); }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> properties() const override {
    return inner_->properties();
  }

 private:
  static bool decodes(const LogChannel& channel) {
    return ros::encoding_of(channel.encoding) && (is_velodyne(channel) || is_nebula(channel));
  }

  void add(const LogChannel& from, const std::string& topic, const std::string& schema, std::uint64_t messages) {
    LogChannel& channel = channels_.emplace_back(from);
    channel.id = static_cast<std::uint32_t>(channels_.size());
    channel.topic = topic;
    channel.messages = messages;
    if (schema == from.schema) return;
    channel.encoding = "protobuf";
    channel.schema = schema;
    channel.schema_encoding.clear();
    channel.schema_data.clear();
    channel.metadata.clear();
    if (auto known = log_schema(schema)) {
      channel.schema_encoding = known->encoding;
      channel.schema_data = std::move(known->data);
    }
  }

  static Result<Decoded> decode(const LogMessage& message) {
    const LogChannel& channel = *message.channel;
    const bool velodyne = is_velodyne(channel);
    TAKT_ASSIGN(const PacketMessage packets,
                parse_packets(*ros::encoding_of(channel.encoding), message.bytes, velodyne));
    if (velodyne) {
      TAKT_ASSIGN(std::string bytes, velodyne_scan(packets));
      return Decoded{Ars548Kind::kOther, std::move(bytes)};
    }
    if (packets.packets.size() != 1) {
      return fail(Code::kInput,
                  std::to_string(packets.packets.size()) + " packets in one message; an ARS548 sends one");
    }
    const StampedPacket& packet = packets.packets.front();
    switch (ars548_kind(packet.bytes)) {
      case Ars548Kind::kDetections: {
        TAKT_ASSIGN(const Ars548Detections list, parse_ars548_detections(packet.bytes));
        return Decoded{Ars548Kind::kDetections, ars548_radar_message(list, packet.stamp, packets.header.frame_id)};
      }
      case Ars548Kind::kObjects: {
        TAKT_ASSIGN(const Ars548Objects list, parse_ars548_objects(packet.bytes));
        return Decoded{Ars548Kind::kObjects, ars548_scene_message(list, packet.stamp, "vehicle")};
      }
      case Ars548Kind::kOther: break;
    }
    return fail(Code::kInput, "packets of " + std::to_string(packet.bytes.size()) +
                                  " bytes are not those of a sensor that takt reads (Continental ARS548)");
  }

  std::unique_ptr<LogReader> inner_;
  std::vector<LogChannel> channels_;
  std::map<const LogChannel*, std::array<std::size_t, 3>> places_;  // by kind, into channels_
  std::set<std::pair<const LogChannel*, std::uint64_t>> bad_;       // messages that cannot be decoded
  std::vector<LogProblem> found_;
  mutable std::vector<LogProblem> all_problems_;
  std::vector<bool> selected_;
  std::vector<std::uint64_t> indices_;
  std::string buffer_;
};

constexpr std::string_view kSuffixes[] = {"/points", "/detections", "/objects"};

}  // namespace

Result<std::unique_ptr<LogReader>> open_capture(const std::string& path, const std::vector<ReleaseRule>& rules) {
  return Capture(path).open(rules);
}

Result<std::unique_ptr<LogReader>> decode_packet_topics(std::unique_ptr<LogReader> log) {
  if (!PacketTopics::has_packets(*log)) return log;
  auto reader = std::make_unique<PacketTopics>(std::move(log));
  TAKT_RETURN_IF_ERROR(reader->open());
  return std::unique_ptr<LogReader>(std::move(reader));
}

std::vector<ReleaseRule> with_packet_topics(const std::vector<ReleaseRule>& rules) {
  std::vector<ReleaseRule> all = rules;
  for (const ReleaseRule& rule : rules) {
    for (const std::string_view suffix : kSuffixes) {
      if (!rule.topic.ends_with(suffix)) continue;
      all.push_back(rule);
      all.back().topic = rule.topic.substr(0, rule.topic.size() - suffix.size());
    }
  }
  return all;
}

}  // namespace takt::sensors
