#include "pipeline/assembly/recorder.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <tuple>

#include "pipeline/messages/messages.h"

namespace takt::pipeline {
namespace {

constexpr std::size_t kRingRecords = 2048;
constexpr std::uint64_t kLosslessLead = 8;  // records the dispatcher may be ahead in a lossless recording

void nap(long nanoseconds) {
  timespec pause{0, nanoseconds};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
}

// Identity fields and used payload bytes, as DESIGN section 4.2 says.
Digest digest_of(Digester& digester, const transport::ChunkView& chunk) {
  digester.reset();
  digester.add_value(chunk.header->schema);
  digester.add_value(chunk.header->job);
  digester.add_value(chunk.header->capture_ns);
  digester.add_value(chunk.header->sources);
  digester.add(chunk.bytes());
  return digester.finish();
}

}  // namespace

bool RecordRing::push(const sched::JobRecord& record) {
  const std::uint64_t at = written_.load(std::memory_order_relaxed);
  if (at - read_.load(std::memory_order_acquire) >= records_.size()) return false;
  records_[at % records_.size()] = record;
  written_.store(at + 1, std::memory_order_release);
  return true;
}

bool RecordRing::pop(sched::JobRecord& record) {
  const std::uint64_t at = read_.load(std::memory_order_relaxed);
  if (at == written_.load(std::memory_order_acquire)) return false;
  record = records_[at % records_.size()];
  read_.store(at + 1, std::memory_order_release);
  return true;
}

Recorder::Recorder(std::size_t cores, std::vector<std::unique_ptr<transport::Subscriber>> outputs, bool lossless)
    : outputs_(std::move(outputs)), pending_(outputs_.size()), lossless_(lossless) {
  for (std::size_t i = 0; i < cores; ++i) rings_.push_back(std::make_unique<RecordRing>(kRingRecords));
}

Recorder::~Recorder() { stop(); }

void Recorder::start() {
  thread_ = std::thread([this] { loop(); });
}

void Recorder::push(std::size_t core, const sched::JobRecord& record) {
  if (lossless_) {
    while (pushed_.load(std::memory_order_relaxed) - done_.load(std::memory_order_acquire) >= kLosslessLead) {
      nap(20'000);
    }
  }
  if (rings_[core]->push(record)) {
    pushed_.fetch_add(1, std::memory_order_release);
  } else {
    lost_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Recorder::loop() {
  HostTime next_idle = host_now();
  while (!stop_.load(std::memory_order_acquire)) {
    if (!drain()) nap(lossless_ ? 20'000 : 1'000'000);
    if (on_idle && host_now() >= next_idle) {
      on_idle();
      next_idle = host_now() + milliseconds(100);
    }
  }
  drain();
}

// Of one stage records lie in the rings of several cores where modes give it another home. What came before a record
// is in some ring when that one is: a pass over all rings that finds nothing has left nothing of it behind.
bool Recorder::drain() {
  batch_.clear();
  sched::JobRecord record;
  for (bool more = true; more;) {
    more = false;
    for (const auto& ring : rings_) {
      while (ring->pop(record)) {
        batch_.push_back(record);
        more = true;
      }
    }
  }
  std::sort(batch_.begin(), batch_.end(), [](const sched::JobRecord& a, const sched::JobRecord& b) {
    return std::tie(a.slot_end, a.stage, a.job) < std::tie(b.slot_end, b.stage, b.job);
  });
  for (sched::JobRecord& of_batch : batch_) {
    if (of_batch.published != 0) take_output(of_batch);
    records_.push_back(of_batch);
    done_.fetch_add(1, std::memory_order_release);
    if (on_record) on_record(of_batch);
  }
  return !batch_.empty();
}

// Chunks come in the order of jobs, and so do the records of one stage in a batch and after it. A chunk of a
// later job means that this job's chunk was lost to a full queue; the later one waits for its own record.
void Recorder::take_output(sched::JobRecord& record) {
  // A digester allocates once; the recorder is no timed thread.
  thread_local Digester digester;
  transport::Subscriber& port = *outputs_[record.stage];
  transport::ChunkView& pending = pending_[record.stage];
  for (;;) {
    if (!pending) pending = port.take();
    if (!pending || pending.header->job > record.job) break;
    const bool wanted = pending.header->job == record.job;
    if (wanted) {
      record.output = digest_of(digester, pending);
      store(record, pending);
    }
    port.release(pending);
    pending = {};
    if (wanted) return;
  }
  ++lost_outputs_;
}

void Recorder::store(const sched::JobRecord& record, const transport::ChunkView& chunk) {
  const auto copy_to = [&chunk](auto& list) {
    std::memcpy(&list, chunk.payload, std::min(chunk.header->payload_bytes, sizeof list));
  };
  if (chunk.header->schema == kObjectListSchema) {
    ObjectList list;
    copy_to(list);
    objects_.push_back({record.stage, record.job, list});
  } else if (chunk.header->schema == kTrackListSchema) {
    TrackList list;
    copy_to(list);
    tracks_.push_back({record.stage, record.job, list, record.publication});
  }
}

void Recorder::stop() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_release);
  thread_.join();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (pending_[i]) outputs_[i]->release(pending_[i]);
    while (transport::ChunkView chunk = outputs_[i]->take()) outputs_[i]->release(chunk);
  }
  outputs_.clear();
  std::sort(records_.begin(), records_.end(), [](const sched::JobRecord& a, const sched::JobRecord& b) {
    return a.stage != b.stage ? a.stage < b.stage : a.job < b.job;
  });
  const auto by_job = [](const auto& a, const auto& b) {
    return a.stage != b.stage ? a.stage < b.stage : a.job < b.job;
  };
  std::sort(objects_.begin(), objects_.end(), by_job);
  std::sort(tracks_.begin(), tracks_.end(), by_job);
}

std::vector<TopicDigest> Recorder::digests(const std::vector<std::string>& topics) const {
  std::vector<TopicDigest> out(topics.size());
  std::vector<Digester> digesters(topics.size());
  for (std::size_t i = 0; i < topics.size(); ++i) out[i].topic = topics[i];
  for (const sched::JobRecord& record : records_) {
    if (record.published == 0) continue;
    ++out[record.stage].chunks;
    digesters[record.stage].add_value(record.job);
    digesters[record.stage].add_value(record.output);
  }
  for (std::size_t i = 0; i < topics.size(); ++i) out[i].digest = digesters[i].finish();
  return out;
}

}  // namespace takt::pipeline
