// Writers for tests: ROS messages in both serialisations, ROS 1 bags, rosbag2 databases.
#pragma once

#include <bzlib.h>
#include <lz4frame.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace takt::sensors::test {

enum class Wire { kCdr, kCdrBigEndian, kRos1 };

class RosWriter {
 public:
  explicit RosWriter(Wire wire) : wire_(wire) {
    if (wire == Wire::kCdr) out_.assign("\0\1\0\0", 4);
    if (wire == Wire::kCdrBigEndian) out_.assign("\0\0\0\0", 4);
  }
  template <class T>
  RosWriter& number(T value) {
    if (wire_ != Wire::kRos1) {
      while ((out_.size() - 4) % sizeof value != 0) out_ += '\0';
    }
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    if (wire_ == Wire::kCdrBigEndian) std::reverse(raw, raw + sizeof value);
    out_.append(raw, sizeof value);
    return *this;
  }
  template <class T>
  RosWriter& numbers(const std::vector<T>& values) {
    for (const T value : values) number(value);
    return *this;
  }
  RosWriter& zeros(std::size_t doubles) {
    for (std::size_t i = 0; i < doubles; ++i) number(0.0);
    return *this;
  }
  RosWriter& text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size() + (wire_ == Wire::kRos1 ? 0 : 1)));
    out_ += text;
    if (wire_ != Wire::kRos1) out_ += '\0';
    return *this;
  }
  RosWriter& bytes(std::string_view bytes) {
    number(static_cast<std::uint32_t>(bytes.size()));
    out_ += bytes;
    return *this;
  }
  RosWriter& header(std::int64_t ns, std::string_view frame) {
    if (wire_ == Wire::kRos1) number(std::uint32_t{7});
    number(static_cast<std::uint32_t>(ns / 1'000'000'000));
    number(static_cast<std::uint32_t>(ns % 1'000'000'000));
    return text(frame);
  }
  [[nodiscard]] const std::string& str() const { return out_; }

 private:
  Wire wire_;
  std::string out_;
};

struct RosMessage {
  std::string topic, type;  // "sensor_msgs/Image"
  std::int64_t time = 0;    // recorded
  std::string bytes;
};

inline std::string u32(std::uint32_t value) { return {reinterpret_cast<const char*>(&value), 4}; }
inline std::string u64(std::uint64_t value) { return {reinterpret_cast<const char*>(&value), 8}; }
inline std::string bag_fields(const std::map<std::string, std::string>& fields) {
  std::string out;
  for (const auto& [name, value] : fields) {
    out += u32(static_cast<std::uint32_t>(name.size() + 1 + value.size())) + name + '=' + value;
  }
  return out;
}
inline std::string bag_record(const std::map<std::string, std::string>& fields, std::string_view data) {
  const std::string header = bag_fields(fields);
  return u32(static_cast<std::uint32_t>(header.size())) + header + u32(static_cast<std::uint32_t>(data.size())) +
         std::string(data);
}

struct Bag {
  std::string bytes;
  struct Chunk {
    std::size_t begin = 0, end = 0;  // of the record in the file
    std::vector<std::size_t> messages;
  };
  std::vector<Chunk> chunks;
  std::size_t index = 0;  // where the chunks and their indexes end
};

// Each topic gets a connection, declared in the first chunk that uses it and again in the index at the end.
inline Bag make_bag(const std::vector<RosMessage>& messages, const std::string& compression, std::size_t per_chunk,
                    bool indexed = true) {
  const auto op = [](char code) { return std::string(1, code); };
  const auto bag_header = [&](std::uint64_t index, std::uint32_t connections, std::uint32_t chunks) {
    const auto fields = std::map<std::string, std::string>{
        {"op", op(3)}, {"index_pos", u64(index)}, {"conn_count", u32(connections)}, {"chunk_count", u32(chunks)}};
    return bag_record(fields, std::string(4096 - 8 - bag_fields(fields).size(), ' '));
  };
  Bag bag;
  bag.bytes = "#ROSBAG V2.0\n" + bag_header(0, 0, 0);
  std::map<std::string, std::uint32_t> connections;
  std::map<std::string, std::string> declared;
  std::string infos;
  for (std::size_t first = 0; first < messages.size(); first += per_chunk) {
    Bag::Chunk chunk;
    std::string data;
    std::map<std::uint32_t, std::uint32_t> counts;
    for (std::size_t i = first; i < std::min(first + per_chunk, messages.size()); ++i) {
      const RosMessage& m = messages[i];
      const auto [at, added] = connections.try_emplace(m.topic, static_cast<std::uint32_t>(connections.size()));
      if (added) {
        declared[m.topic] = bag_record(
            {{"op", op(7)}, {"conn", u32(at->second)}, {"topic", m.topic}},
            bag_fields({{"topic", m.topic}, {"type", m.type}, {"md5sum", "*"}, {"message_definition", "# none\n"}}));
        data += declared[m.topic];
      }
      const auto seconds = static_cast<std::uint64_t>(m.time / 1'000'000'000),
                 nanos = static_cast<std::uint64_t>(m.time % 1'000'000'000);
      data += bag_record({{"op", op(2)}, {"conn", u32(at->second)}, {"time", u64(seconds | nanos << 32)}}, m.bytes);
      ++counts[at->second];
      chunk.messages.push_back(i);
    }
    std::string packed = data;
    if (compression == "lz4") {
      packed.resize(LZ4F_compressFrameBound(data.size(), nullptr));
      packed.resize(LZ4F_compressFrame(packed.data(), packed.size(), data.data(), data.size(), nullptr));
    } else if (compression == "bz2") {
      auto size = static_cast<unsigned>(data.size() + data.size() / 100 + 600);
      packed.resize(size);
      BZ2_bzBuffToBuffCompress(packed.data(), &size, data.data(), static_cast<unsigned>(data.size()), 9, 0, 30);
      packed.resize(size);
    }
    chunk.begin = bag.bytes.size();
    bag.bytes += bag_record(
        {{"op", op(5)}, {"compression", compression}, {"size", u32(static_cast<std::uint32_t>(data.size()))}}, packed);
    chunk.end = bag.bytes.size();
    std::string info;
    for (const auto& [connection, count] : counts) {
      info += u32(connection) + u32(count);
      bag.bytes += bag_record({{"op", op(4)}, {"ver", u32(1)}, {"conn", u32(connection)}, {"count", u32(count)}},
                              std::string(count * 12, '\0'));
    }
    infos += bag_record({{"op", op(6)},
                         {"ver", u32(1)},
                         {"chunk_pos", u64(chunk.begin)},
                         {"start_time", u64(0)},
                         {"end_time", u64(0)},
                         {"count", u32(static_cast<std::uint32_t>(counts.size()))}},
                        info);
    bag.chunks.push_back(chunk);
  }
  bag.index = bag.bytes.size();
  if (!indexed) return bag;
  for (const auto& [topic, record] : declared) bag.bytes += record;
  bag.bytes += infos;
  const std::string header = bag_header(bag.index, static_cast<std::uint32_t>(connections.size()),
                                        static_cast<std::uint32_t>(bag.chunks.size()));
  bag.bytes.replace(13, header.size(), header);
  return bag;
}

inline void save(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}
inline std::string load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "sensor_msgs/Image" as ROS 2 writes it.
inline std::string ros2_type(const std::string& type) {
  std::string name = type;
  return name.insert(name.find('/'), "/msg");
}

// A .db3 as the oldest rosbag2 wrote it: no definitions, no metadata.
inline void write_db3(const std::string& path, const std::vector<RosMessage>& messages) {
  std::remove(path.c_str());
  sqlite3* db = nullptr;
  sqlite3_open(path.c_str(), &db);
  sqlite3_exec(db,
               "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,"
               " serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL);"
               "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL,"
               " data BLOB NOT NULL); CREATE INDEX timestamp_idx ON messages (timestamp ASC); BEGIN;",
               nullptr, nullptr, nullptr);
  sqlite3_stmt *topic = nullptr, *row = nullptr;
  sqlite3_prepare_v2(db, "INSERT INTO topics VALUES(?1, ?2, ?3, 'cdr', '')", -1, &topic, nullptr);
  sqlite3_prepare_v2(db, "INSERT INTO messages(topic_id, timestamp, data) VALUES(?1, ?2, ?3)", -1, &row, nullptr);
  std::map<std::string, int> ids;
  for (const RosMessage& m : messages) {
    const auto [id, added] = ids.try_emplace(m.topic, static_cast<int>(ids.size()) + 1);
    if (added) {
      sqlite3_bind_int(topic, 1, id->second);
      sqlite3_bind_text(topic, 2, m.topic.c_str(), -1, SQLITE_TRANSIENT);
      sqlite3_bind_text(topic, 3, ros2_type(m.type).c_str(), -1, SQLITE_TRANSIENT);
      sqlite3_step(topic);
      sqlite3_reset(topic);
    }
    sqlite3_bind_int(row, 1, id->second);
    sqlite3_bind_int64(row, 2, m.time);
    sqlite3_bind_blob(row, 3, m.bytes.data(), static_cast<int>(m.bytes.size()), SQLITE_TRANSIENT);
    sqlite3_step(row);
    sqlite3_reset(row);
  }
  sqlite3_finalize(topic);
  sqlite3_finalize(row);
  sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
  sqlite3_close(db);
}

}  // namespace takt::sensors::test
