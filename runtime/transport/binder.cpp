#include "runtime/transport/binder.h"

#include <algorithm>
#include <utility>

namespace takt::transport {

JobBinder::JobBinder(std::unique_ptr<Subscriber> port, std::uint32_t hold, std::uint32_t capacity)
    : port_(std::move(port)), hold_(hold), capacity_(std::max(hold > 0 ? 2U : 1U, capacity)) {
  kept_.reserve(capacity_);
}

JobBinder::~JobBinder() { release_all(); }

void JobBinder::release_before(std::uint64_t job) {
  while (!kept_.empty() && kept_.front().header->job < job) {
    // With hold, the newest older chunk stays: it stands in for bound jobs that produce nothing.
    const bool newest_older = kept_.size() == 1 || kept_[1].header->job >= job;
    if (hold_ > 0 && newest_older) return;
    port_->release(kept_.front());
    kept_.erase(kept_.begin());
  }
}

void JobBinder::drain(std::uint64_t job) {
  for (;;) {
    release_before(job);
    if (kept_.size() == capacity_) return;
    const ChunkView chunk = port_->take();
    if (!chunk) return;
    // A publisher publishes in job order, so this almost always appends.
    const auto place = std::upper_bound(kept_.begin(), kept_.end(), chunk.header->job,
                                        [](std::uint64_t j, const ChunkView& c) { return j < c.header->job; });
    kept_.insert(place, chunk);
  }
}

Selected JobBinder::select(std::uint64_t job) {
  drain(job);
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [job](const ChunkView& c) { return c.header->job == job; });
  const bool asked_before = last_asked_ == job;
  last_asked_ = job;
  if (found != kept_.end()) {
    missed_ = 0;
    return {Selection::kNew, *found, port_->location(*found)};
  }
  // Several consumer jobs bound to one producer job count its absence once.
  if (!asked_before) ++missed_;
  if (missed_ <= hold_ && !kept_.empty() && kept_.front().header->job < job) {
    return {Selection::kHeld, kept_.front(), port_->location(kept_.front())};
  }
  return {};
}

void JobBinder::release_all() {
  for (const ChunkView& chunk : kept_) port_->release(chunk);
  kept_.clear();
}

SampleBinder::SampleBinder(std::unique_ptr<Subscriber> port, std::uint32_t capacity)
    : port_(std::move(port)), capacity_(std::max(2U, capacity)) {
  kept_.reserve(capacity_);
}

SampleBinder::~SampleBinder() { release_all(); }

void SampleBinder::release_superseded(SensorTime latch) {
  while (kept_.size() >= 2 && kept_[1].chunk.header->arrival_ns <= latch.ns) {
    if (!kept_.front().used) ++unused_;
    port_->release(kept_.front().chunk);
    kept_.erase(kept_.begin());
  }
}

void SampleBinder::drain(SensorTime latch) {
  for (;;) {
    release_superseded(latch);
    if (kept_.size() == capacity_) return;
    const ChunkView chunk = port_->take();
    if (!chunk) return;
    // Of equal arrivals the later published is the newer one: the feeder publishes in the order of the log.
    const auto place =
        std::upper_bound(kept_.begin(), kept_.end(), chunk.header->arrival_ns,
                         [](std::int64_t arrival, const Kept& k) { return arrival < k.chunk.header->arrival_ns; });
    kept_.insert(place, Kept{chunk, false});
  }
}

Selected SampleBinder::select(SensorTime latch) {
  drain(latch);
  first_use_ = false;
  if (kept_.empty() || kept_.front().chunk.header->arrival_ns > latch.ns) return {};
  Kept& newest = kept_.front();
  const Selection selection = newest.used ? Selection::kRepeat : Selection::kNew;
  first_use_ = !newest.used;
  newest.used = true;
  return {selection, newest.chunk, port_->location(newest.chunk)};
}

void SampleBinder::undo_use() {
  if (first_use_ && !kept_.empty()) kept_.front().used = false;
  first_use_ = false;
}

void SampleBinder::release_all() {
  for (const Kept& kept : kept_) {
    if (!kept.used) ++unused_;
    port_->release(kept.chunk);
  }
  kept_.clear();
}

}  // namespace takt::transport
