// Input selection at the nominal start of a job (DESIGN section 4.3). A binder drains its port, keeps what a later
// job is bound to, and releases the rest. Dispatcher threads only; no allocation after construction.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/time.h"
#include "runtime/transport/transport.h"

namespace takt::transport {

enum class Selection : std::uint8_t {
  kNew,      // the bound job's chunk, or a sample not used before
  kRepeat,   // a sensor sample that was used before
  kHeld,     // an older job's chunk, inside hold(n)
  kMissing,  // nothing: the producer produced nothing, or no sample has arrived yet
};

struct Selected {
  Selection selection = Selection::kMissing;
  ChunkView chunk;  // valid until the next select() or release_all(); empty when missing
  ChunkLocation location;
};

// Binds a consumer to exactly one job of a producing stage.
class JobBinder {
 public:
  // `hold`: for how many consecutive bound jobs that produced nothing the last produced chunk is used instead.
  // `capacity`: chunks kept at once; at most `held` of the plan. At least 1, with hold at least 2: the held chunk and
  // the one that may replace it.
  JobBinder(std::unique_ptr<Subscriber> port, std::uint32_t hold, std::uint32_t capacity);
  ~JobBinder();
  // The chunk with header.job == job. Jobs are asked for in ascending order (equal allowed: several consumer jobs may
  // be bound to one producer job). Chunks of later jobs stay, in the binder or, when it is full, in the queue.
  Selected select(std::uint64_t job);
  // Chunks that the port lost to a full queue.
  [[nodiscard]] std::uint64_t lost() const { return port_->lost(); }
  void release_all();

 private:
  void release_before(std::uint64_t job);
  void drain(std::uint64_t job);
  std::unique_ptr<Subscriber> port_;
  std::uint32_t hold_;
  std::uint32_t capacity_;
  std::uint32_t missed_ = 0;  // consecutive bound jobs that produced nothing
  std::uint64_t last_asked_ = ~0ULL;
  std::vector<ChunkView> kept_;  // ascending by job
};

// Binds a consumer to the newest sensor sample whose arrival stamp is not later than the latch.
class SampleBinder {
 public:
  // `capacity`: chunks kept at once; at most `held` of the plan. At least 2: the sample in use and the next one, whose
  // stamp decides.
  SampleBinder(std::unique_ptr<Subscriber> port, std::uint32_t capacity);
  ~SampleBinder();
  // The newest sample with header.arrival_ns <= latch (ties count as arrived); kRepeat when it was used before.
  // Later samples stay queued. The caller makes sure that the feeder has delivered everything up to `latch`.
  Selected select(SensorTime latch);
  // Takes the use of the last select() back: its job does not run, so the sample counts as never used by it.
  void undo_use();
  // Drains and lets superseded samples go, as select() does, but uses nothing.
  void skip(SensorTime latch) { drain(latch); }
  // Samples that were released without ever being selected.
  [[nodiscard]] std::uint64_t unused() const { return unused_; }
  void release_all();

 private:
  struct Kept {
    ChunkView chunk;
    bool used = false;
  };
  void release_superseded(SensorTime latch);
  void drain(SensorTime latch);
  std::unique_ptr<Subscriber> port_;
  std::uint32_t capacity_;
  std::vector<Kept> kept_;  // ascending by arrival
  bool first_use_ = false;  // the last select() was the first use of its sample
  std::uint64_t unused_ = 0;
};

}  // namespace takt::transport
