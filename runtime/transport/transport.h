// The generic topic interface: one publisher, declared subscribers, preplanned pools, two back ends (DESIGN section 4).
//
// Life of a chunk: loan -> fill -> publish -> take (by each subscriber) -> release. A pointer obtained by loan() is
// the pointer every subscriber sees: nothing is copied. All ports are created before the first publish; nothing
// allocates afterwards. A port is used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/transport/chunk.h"

namespace takt::transport {

// A subscriber declared in the plan. Depth and held count are computed from the table, never tuned.
struct SubscriberSpec {
  std::string name;               // "stage/input" or "recorder"; unique within its topic
  std::uint32_t queue_depth = 1;  // chunks that may wait in its queue (<= 256)
  std::uint32_t held = 1;         // chunks it may hold at once after taking them (<= 256)
};

struct TopicSpec {
  std::string name;  // "/camera/front", "/lidar/objects"; at most 100 characters with prefixes
  std::uint32_t schema = 0;
  std::uint64_t payload_capacity = 0;  // largest payload in bytes
  std::uint32_t loans = 1;             // chunks the publisher may have open at once (<= 8; feeders <= 7)
  std::vector<SubscriberSpec> subscribers;
  // Above 0: an export topic. Everybody may subscribe, under the service instance "export" whatever the run, and so
  // many chunks are there for observers. Its size class is its own, above those of all other topics
  // (give_export_classes): whoever keeps its chunks takes nothing from anybody else.
  std::uint32_t exported = 0;
};

enum class Backend { kLocal, kIceoryxEmbedded, kIceoryxExternal };

struct TransportSpec {
  Backend backend = Backend::kIceoryxEmbedded;
  std::uint64_t run = 0;          // random token: the iceoryx service instance of this run
  bool external_clients = false;  // another process attaches: monitoring on
  std::vector<TopicSpec> topics;
};

// One size class. chunk_bytes counts everything the library adds; payload_capacity what a loan may use.
struct Pool {
  std::uint64_t payload_capacity = 0;
  std::uint64_t chunk_bytes = 0;
  std::uint32_t chunks = 0;
  std::vector<std::string> topics;  // that draw from it
};

// Pools derived from the topics: per topic loans + sum over subscribers of (queue depth + held) + 1 kept last chunk
// (iceoryx notes section 4). Topics of equal class share a pool with added counts.
struct PoolPlan {
  std::vector<Pool> pools;
  std::uint64_t user_bytes = 0;            // sum of chunk_bytes * chunks
  std::uint64_t management_bytes = 0;      // of the library (0 for local)
  [[nodiscard]] std::string text() const;  // a table for people
};

// kConfiguration when a library limit is broken (loans, held, pools, name length, sizes); names the topic.
Result<PoolPlan> plan_pools(const TransportSpec& spec);

// Raises the payload capacity of every export topic until its size class is its own and above those of all others.
void give_export_classes(TransportSpec& spec);

// The configuration file (TOML) of an external RouDi with exactly these pools.
std::string roudi_config(const PoolPlan& plan);

// Free bytes of the shared-memory file system; kEnvironment when it cannot be read.
Result<std::uint64_t> shared_memory_free();

// The files that RouDi makes in the shared-memory file system for this user's runs, whether they exist or not.
std::vector<std::string> shared_memory_files();

// Does an iceoryx RouDi run on this machine (does somebody hold its lock file)? kEnvironment when that cannot be told.
Result<bool> roudi_running();

class Publisher {
 public:
  virtual ~Publisher() = default;
  struct Loan {
    ChunkHeader* header = nullptr;
    std::byte* payload = nullptr;  // kPayloadAlignment, payload_capacity + kTailPadding bytes
    explicit operator bool() const { return header != nullptr; }
  };
  // An open chunk with a default header; empty when the credits of the plan are used up (counted, never an abort).
  virtual Loan loan() = 0;
  // Publishes a loan of this publisher (header.payload_bytes set by the caller); says where it lies.
  virtual ChunkLocation publish(Loan loan) = 0;
  // Gives an open loan back unpublished.
  virtual void discard(Loan loan) = 0;
  [[nodiscard]] virtual ChunkLocation location(const Loan& loan) const = 0;
  [[nodiscard]] virtual std::uint64_t payload_capacity() const = 0;
  [[nodiscard]] virtual std::uint64_t refused_loans() const = 0;
};

class Subscriber {
 public:
  virtual ~Subscriber() = default;
  // The oldest queued chunk, which the caller now holds; empty when the queue is empty or `held` is reached.
  virtual ChunkView take() = 0;
  virtual void release(ChunkView chunk) = 0;
  [[nodiscard]] virtual ChunkLocation location(const ChunkView& chunk) const = 0;
  // Chunks lost because the queue was full (sequence gaps seen so far).
  [[nodiscard]] virtual std::uint64_t lost() const = 0;
};

// High-water marks for the report.
struct PoolUse {
  std::uint64_t chunk_bytes = 0;
  std::uint32_t chunks = 0;
  std::uint32_t used = 0;
  std::uint32_t most_used = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Names must be in the spec, each is created once. kInternal otherwise.
  virtual Result<std::unique_ptr<Publisher>> publisher(const std::string& topic) = 0;
  virtual Result<std::unique_ptr<Subscriber>> subscriber(const std::string& topic, const std::string& name) = 0;
  // Waits (bounded) until every subscriber created here is connected and every publisher created here sees all its
  // declared subscribers, those of other processes included. kEnvironment names what is missing.
  virtual Status wait_connected() = 0;
  // Topics, not exported, with more subscribers than the plan declares: somebody else named a timed topic. Not for
  // timed threads.
  [[nodiscard]] virtual std::vector<std::string> undeclared_subscribers() const = 0;
  [[nodiscard]] virtual const PoolPlan& pools() const = 0;
  [[nodiscard]] virtual std::vector<PoolUse> pool_use() const = 0;
  // The mapped blocks that all chunks lie in, for whoever must know them beforehand (a device). They begin at a page
  // and live as long as the transport. kEnvironment when they cannot be told. Before the run.
  virtual Result<std::vector<std::span<std::byte>>> memory() = 0;
};

// Starts the back end. All checks come first: limits, another RouDi (kEnvironment, exit code 5), free shared memory.
// All ports must be destroyed before the transport.
Result<std::unique_ptr<Transport>> make_transport(TransportSpec spec);

// For a declared client in another process: attaches to the RouDi of a running transport under the same spec.
Result<std::unique_ptr<Transport>> attach_transport(TransportSpec spec, const std::string& client_name);

}  // namespace takt::transport
