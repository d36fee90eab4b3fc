// Drains job records and output chunks on the housekeeping reserve: digests, results, nothing of it in timed threads
// (DESIGN section 4.6).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "pipeline/report/run_data.h"
#include "runtime/transport/transport.h"
#include "scheduler/dispatch/record.h"

namespace takt::pipeline {

// Single producer (the dispatcher of one core), single consumer (the recorder). Preallocated.
class RecordRing {
 public:
  explicit RecordRing(std::size_t capacity) : records_(capacity) {}
  // False when full: the caller counts it.
  bool push(const sched::JobRecord& record);
  bool pop(sched::JobRecord& record);

 private:
  std::vector<sched::JobRecord> records_;
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> read_{0};
};

class Recorder {
 public:
  // One declared subscription ("recorder") per stage topic, by stage.
  Recorder(std::size_t cores, std::vector<std::unique_ptr<transport::Subscriber>> outputs, bool lossless);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void start();
  // Dispatcher context. In a lossless recording (lockstep) it waits until the recorder has caught up to within a few
  // records; otherwise it never blocks and a full ring is counted.
  void push(std::size_t core, const sched::JobRecord& record);
  // Drains what is left and ends the thread. Chunks are released.
  void stop();

  // After stop():
  [[nodiscard]] std::vector<sched::JobRecord>& records() { return records_; }
  [[nodiscard]] std::vector<ObjectFrame>& objects() { return objects_; }
  [[nodiscard]] std::vector<TrackFrame>& tracks() { return tracks_; }
  [[nodiscard]] std::uint64_t lost_records() const { return lost_.load(); }
  [[nodiscard]] std::uint64_t lost_outputs() const { return lost_outputs_; }
  // Digest over the digests of every published output of a stage in job order.
  [[nodiscard]] std::vector<TopicDigest> digests(const std::vector<std::string>& topics) const;

  // Called on the recorder's thread after every record: progress for a person.
  std::function<void(const sched::JobRecord&)> on_record;
  // Called on the recorder's thread about ten times a second: what the housekeeping reserve watches besides.
  std::function<void()> on_idle;

 private:
  void loop();
  bool drain();
  void take_output(sched::JobRecord& record);
  void store(const sched::JobRecord& record, const transport::ChunkView& chunk);

  std::vector<std::unique_ptr<RecordRing>> rings_;
  std::vector<std::unique_ptr<transport::Subscriber>> outputs_;
  std::vector<transport::ChunkView> pending_;  // by stage: taken, but of a job whose record has not come yet
  bool lossless_;
  std::atomic<std::uint64_t> pushed_{0}, done_{0}, lost_{0};
  std::atomic<bool> stop_{false};
  std::uint64_t lost_outputs_ = 0;
  std::vector<sched::JobRecord> records_, batch_;
  std::vector<ObjectFrame> objects_;
  std::vector<TrackFrame> tracks_;
  std::thread thread_;
};

}  // namespace takt::pipeline
