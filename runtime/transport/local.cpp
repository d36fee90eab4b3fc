// The in-process back end: the pools, queues and credits of the plan, without iceoryx.
//
// A topic owns its chunks of the pool. Each chunk counts its owners: the publisher (open loan) and every queue or
// subscriber that has it. Only the topic's one publisher turns a free chunk (0 owners) into an owned one, so finding a
// free chunk is a scan without locks, and giving one back is a decrement.
#include <fmt/format.h>
#include <sys/mman.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/transport/backends.h"
#include "runtime/transport/layout.h"

namespace takt::transport {
namespace {

constexpr std::uint64_t kHeaderBytes = round_up(sizeof(ChunkHeader), kPayloadAlignment);

// Anonymous memory of one pool, mapped and touched at start.
class Memory {
 public:
  static Result<Memory> map(std::uint64_t bytes) {
    void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (base == MAP_FAILED) {
      return fail(Code::kEnvironment, fmt::format("{} bytes for the chunks of the local transport cannot be mapped: {}",
                                                  bytes, std::strerror(errno)));
    }
    Memory memory;
    memory.base_ = static_cast<std::byte*>(base);
    memory.bytes_ = bytes;
    return memory;
  }
  Memory(Memory&& other) noexcept : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}
  Memory& operator=(Memory&&) = delete;
  ~Memory() {
    if (base_ != nullptr) ::munmap(base_, bytes_);
  }
  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {base_, bytes_}; }

 private:
  Memory() = default;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Bounded queue of chunk numbers, one producer and one consumer, which discards its oldest entry when full. Whoever
// moves head_ owns the entry that stood there: the consumer when it takes, the producer when it discards.
class Queue {
 public:
  explicit Queue(std::uint32_t depth) : slots_(depth) {}

  // Returns the discarded chunk, or kNone.
  std::uint32_t push(std::uint32_t chunk) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    std::uint32_t discarded = kNone;
    std::uint64_t head = head_.load(std::memory_order_acquire);
    if (tail - head == slots_.size()) {
      const std::uint32_t oldest = slots_[head % slots_.size()].load(std::memory_order_relaxed);
      // On failure the consumer has just taken it, so there is room.
      if (head_.compare_exchange_strong(head, head + 1, std::memory_order_acq_rel)) discarded = oldest;
    }
    slots_[tail % slots_.size()].store(chunk, std::memory_order_relaxed);
    tail_.store(tail + 1, std::memory_order_release);
    return discarded;
  }

  std::uint32_t pop() {
    std::uint64_t head = head_.load(std::memory_order_acquire);
    while (head != tail_.load(std::memory_order_acquire)) {
      const std::uint32_t chunk = slots_[head % slots_.size()].load(std::memory_order_relaxed);
      // Fails only when the producer discarded this entry, which it may also have overwritten by now.
      if (head_.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel)) return chunk;
    }
    return kNone;
  }

  static constexpr std::uint32_t kNone = ~0U;

 private:
  std::vector<std::atomic<std::uint32_t>> slots_;
  alignas(64) std::atomic<std::uint64_t> head_{0};  // moves up only: no ABA
  alignas(64) std::atomic<std::uint64_t> tail_{0};
};

struct SubscriberState {
  explicit SubscriberState(const SubscriberSpec& spec) : queue(spec.queue_depth) {}
  Queue queue;
  bool created = false;
  std::atomic<bool> connected{false};
};

struct Chunk {
  std::atomic<std::uint32_t> owners{0};
  std::uint64_t sequence = 0;  // written by the publisher before the chunk is queued
};

struct TopicState {
  TopicState(const TopicSpec& topic, std::byte* pool_base, std::uint32_t pool_index, std::uint64_t first_chunk,
             std::uint64_t chunk_stride)
      : spec(topic),
        base(pool_base),
        pool(pool_index),
        first(first_chunk),
        stride(chunk_stride),
        chunks(chunk_count(topic)) {
    for (const SubscriberSpec& subscriber : topic.subscribers) {
      subscribers.push_back(std::make_unique<SubscriberState>(subscriber));
    }
  }

  [[nodiscard]] ChunkHeader* header(std::uint32_t chunk) const {
    return reinterpret_cast<ChunkHeader*>(base + (first + chunk) * stride);
  }
  [[nodiscard]] static std::byte* payload(ChunkHeader* header) {
    return reinterpret_cast<std::byte*>(header) + kHeaderBytes;
  }
  [[nodiscard]] std::uint64_t offset(const ChunkHeader* header) const {
    return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(header) - base);
  }
  [[nodiscard]] std::uint32_t index(const ChunkHeader* header) const {
    return static_cast<std::uint32_t>(offset(header) / stride - first);
  }
  [[nodiscard]] ChunkLocation location(const ChunkHeader* header) const {
    return {pool, offset(header) + kHeaderBytes};
  }

  void release(std::uint32_t chunk) {
    if (chunks[chunk].owners.fetch_sub(1, std::memory_order_acq_rel) == 1) used.fetch_sub(1, std::memory_order_relaxed);
  }

  const TopicSpec spec;
  std::byte* const base;  // of the pool
  const std::uint32_t pool;
  const std::uint64_t first;  // chunk of the pool that is this topic's chunk 0
  const std::uint64_t stride;
  std::vector<Chunk> chunks;
  std::vector<std::unique_ptr<SubscriberState>> subscribers;
  bool publisher_created = false;
  std::atomic<std::uint32_t> used{0};
  std::atomic<std::uint32_t> most_used{0};  // written by the publisher
};

// Everything the ports share. They keep it alive, so a port may outlive the transport.
struct Core {
  TransportSpec spec;
  PoolPlan plan;
  std::vector<Memory> memory;
  std::vector<std::unique_ptr<TopicState>> topics;  // in the order of the spec

  TopicState* find(const std::string& topic) {
    for (const auto& state : topics) {
      if (state->spec.name == topic) return state.get();
    }
    return nullptr;
  }
};

class LocalPublisher final : public Publisher {
 public:
  LocalPublisher(std::shared_ptr<Core> core, TopicState& topic) : core_(std::move(core)), topic_(topic) {}

  Loan loan() override {
    if (open_ == topic_.spec.loans) {
      ++refused_;
      return {};
    }
    const std::uint32_t chunk = find_free();
    if (chunk == Queue::kNone) {
      ++refused_;
      return {};
    }
    ++open_;
    topic_.chunks[chunk].owners.store(1, std::memory_order_relaxed);
    const std::uint32_t used = topic_.used.fetch_add(1, std::memory_order_relaxed) + 1;
    if (used > topic_.most_used.load(std::memory_order_relaxed)) {
      topic_.most_used.store(used, std::memory_order_relaxed);
    }
    auto* header = new (topic_.header(chunk)) ChunkHeader{};
    header->run = core_->spec.run;
    header->schema = topic_.spec.schema;
    return {header, TopicState::payload(header)};
  }

  ChunkLocation publish(Loan loan) override {
    const std::uint32_t chunk = topic_.index(loan.header);
    topic_.chunks[chunk].sequence = sequence_++;
    const ChunkLocation where = topic_.location(loan.header);
    for (const auto& subscriber : topic_.subscribers) {
      if (!subscriber->connected.load(std::memory_order_acquire)) continue;
      topic_.chunks[chunk].owners.fetch_add(1, std::memory_order_relaxed);
      const std::uint32_t discarded = subscriber->queue.push(chunk);
      if (discarded != Queue::kNone) topic_.release(discarded);
    }
    discard(loan);
    return where;
  }

  void discard(Loan loan) override {
    --open_;
    topic_.release(topic_.index(loan.header));
  }

  [[nodiscard]] ChunkLocation location(const Loan& loan) const override { return topic_.location(loan.header); }
  [[nodiscard]] std::uint64_t payload_capacity() const override { return topic_.spec.payload_capacity; }
  [[nodiscard]] std::uint64_t refused_loans() const override { return refused_; }

 private:
  // The plan has a chunk for every owner there can be, so with credit there is always a free one.
  std::uint32_t find_free() {
    const auto count = static_cast<std::uint32_t>(topic_.chunks.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t chunk = next_;
      next_ = next_ + 1 == count ? 0 : next_ + 1;
      if (topic_.chunks[chunk].owners.load(std::memory_order_acquire) == 0) return chunk;
    }
    return Queue::kNone;
  }

  std::shared_ptr<Core> core_;
  TopicState& topic_;
  std::uint32_t open_ = 0;
  std::uint32_t next_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t refused_ = 0;
};

class LocalSubscriber final : public Subscriber {
 public:
  LocalSubscriber(std::shared_ptr<Core> core, TopicState& topic, SubscriberState& state, std::uint32_t held_limit)
      : core_(std::move(core)), topic_(topic), state_(state), held_limit_(held_limit) {
    state_.connected.store(true, std::memory_order_release);
  }
  ~LocalSubscriber() override {
    state_.connected.store(false, std::memory_order_release);
    for (std::uint32_t chunk = state_.queue.pop(); chunk != Queue::kNone; chunk = state_.queue.pop()) {
      topic_.release(chunk);
    }
  }

  ChunkView take() override {
    if (held_ == held_limit_) return {};
    const std::uint32_t chunk = state_.queue.pop();
    if (chunk == Queue::kNone) return {};
    ++held_;
    const std::uint64_t sequence = topic_.chunks[chunk].sequence;
    lost_ += sequence - expected_;
    expected_ = sequence + 1;
    ChunkHeader* header = topic_.header(chunk);
    return {header, TopicState::payload(header)};
  }
  void release(ChunkView chunk) override {
    --held_;
    topic_.release(topic_.index(chunk.header));
  }
  [[nodiscard]] ChunkLocation location(const ChunkView& chunk) const override { return topic_.location(chunk.header); }
  [[nodiscard]] std::uint64_t lost() const override { return lost_; }

 private:
  std::shared_ptr<Core> core_;
  TopicState& topic_;
  SubscriberState& state_;
  const std::uint32_t held_limit_;
  std::uint32_t held_ = 0;
  std::uint64_t expected_ = 0;
  std::uint64_t lost_ = 0;
};

class LocalTransport final : public Transport {
 public:
  explicit LocalTransport(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  Result<std::unique_ptr<Publisher>> publisher(const std::string& topic) override {
    TopicState* state = core_->find(topic);
    if (state == nullptr) return fail(unknown_topic(topic));
    if (std::exchange(state->publisher_created, true)) return fail(second_port(topic, "publisher"));
    return std::make_unique<LocalPublisher>(core_, *state);
  }

  Result<std::unique_ptr<Subscriber>> subscriber(const std::string& topic, const std::string& name) override {
    TopicState* state = core_->find(topic);
    if (state == nullptr) return fail(unknown_topic(topic));
    for (std::size_t i = 0; i < state->subscribers.size(); ++i) {
      const SubscriberSpec& spec = state->spec.subscribers[i];
      if (spec.name != name) continue;
      SubscriberState& subscriber = *state->subscribers[i];
      if (std::exchange(subscriber.created, true)) return fail(second_port(topic, "subscriber '" + name + "'"));
      return std::make_unique<LocalSubscriber>(core_, *state, subscriber, spec.held);
    }
    return fail(unknown_subscriber(topic, name));
  }

  Status wait_connected() override {
    std::string missing;
    for (const auto& topic : core_->topics) {
      if (!topic->publisher_created) continue;
      for (std::size_t i = 0; i < topic->subscribers.size(); ++i) {
        if (topic->subscribers[i]->created) continue;
        missing += (missing.empty() ? "" : ", ") + topic->spec.name + " <- " + topic->spec.subscribers[i].name;
      }
    }
    if (missing.empty()) return {};
    return fail(Code::kEnvironment, "declared subscribers that were never created: " + missing);
  }

  [[nodiscard]] std::vector<std::string> undeclared_subscribers() const override { return {}; }
  [[nodiscard]] const PoolPlan& pools() const override { return core_->plan; }

  [[nodiscard]] std::vector<PoolUse> pool_use() const override {
    std::vector<PoolUse> use;
    for (const Pool& pool : core_->plan.pools) use.push_back({pool.chunk_bytes, pool.chunks, 0, 0});
    for (const auto& topic : core_->topics) {
      use[topic->pool].used += topic->used.load(std::memory_order_relaxed);
      // Of topics that share a pool the peaks are added: an upper bound of the pool's own peak.
      use[topic->pool].most_used += topic->most_used.load(std::memory_order_relaxed);
    }
    return use;
  }

  Result<std::vector<std::span<std::byte>>> memory() override {
    std::vector<std::span<std::byte>> blocks;
    for (const Memory& pool : core_->memory) blocks.push_back(pool.bytes());
    return blocks;
  }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_local(TransportSpec spec, PoolPlan plan) {
  auto core = std::make_shared<Core>();
  std::vector<std::uint64_t> next;
  for (const Pool& pool : plan.pools) {
    TAKT_ASSIGN(Memory memory, Memory::map(round_up(pool.chunk_bytes, kPayloadAlignment) * pool.chunks));
    core->memory.push_back(std::move(memory));
    next.push_back(0);
  }
  for (const TopicSpec& topic : spec.topics) {
    const std::uint64_t bytes = chunk_bytes(topic.payload_capacity);
    const auto pool = static_cast<std::uint32_t>(
        std::find_if(plan.pools.begin(), plan.pools.end(), [&](const Pool& p) { return p.chunk_bytes == bytes; }) -
        plan.pools.begin());
    core->topics.push_back(std::make_unique<TopicState>(topic, core->memory[pool].base(), pool, next[pool],
                                                        round_up(bytes, kPayloadAlignment)));
    next[pool] += chunk_count(topic);
  }
  core->spec = std::move(spec);
  core->plan = std::move(plan);
  return std::make_unique<LocalTransport>(std::move(core));
}

}  // namespace takt::transport
