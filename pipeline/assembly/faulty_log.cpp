#include "pipeline/assembly/faulty_log.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <tuple>

namespace takt::pipeline {
namespace {

using sensors::LogMessage;
using Kind = SensorFault::Kind;

constexpr Duration kBehind = microseconds(1);  // a reordered message, after the one that it should have preceded

class FaultyLog final : public sensors::LogReader {
 public:
  FaultyLog(std::unique_ptr<sensors::LogReader> log, const sensors::Rig& rig, std::vector<SensorFault> faults,
            std::vector<std::uint64_t>* touched)
      : log_(std::move(log)), rig_(rig), faults_(std::move(faults)), touched_(touched) {
    const auto span = log_->span();
    if (span) start_ = span->first;
    clear();
  }

  [[nodiscard]] const std::vector<sensors::LogChannel>& channels() const override { return log_->channels(); }
  [[nodiscard]] std::optional<std::pair<SensorTime, SensorTime>> span() const override { return log_->span(); }
  void select(const std::vector<std::string>& topics) override { log_->select(topics); }
  [[nodiscard]] const std::vector<sensors::LogProblem>& problems() const override { return log_->problems(); }
  void rewind() override {
    log_->rewind();
    clear();
  }

  Result<std::optional<LogMessage>> next() override {
    // Everything that is still in the log arrives at or after the newest message read: what lies before may go out.
    while (!ended_ && (waiting_.empty() || waiting_.begin()->second.message.arrival >= reached_)) {
      TAKT_ASSIGN(const std::optional<LogMessage> message, log_->next());
      if (!message) {
        ended_ = true;
        for (std::size_t i = 0; i < faults_.size(); ++i) release(i, reached_);
        break;
      }
      reached_ = message->arrival;
      take(*message);
    }
    if (waiting_.empty()) return std::optional<LogMessage>{};
    current_ = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    current_.message.bytes = std::as_bytes(std::span(current_.bytes));
    return std::optional<LogMessage>(current_.message);
  }

  [[nodiscard]] std::vector<std::string> notes() const override { return log_->notes(); }

 private:
  struct Message {
    LogMessage message;
    std::vector<char> bytes;
  };
  using Key = std::tuple<SensorTime, std::string, std::uint64_t>;  // arrival, topic, number of reading

  void clear() {
    waiting_.clear();
    held_.assign(faults_.size(), {});
    seen_.assign(faults_.size(), 0);
    if (touched_ != nullptr) touched_->assign(faults_.size(), 0);
    reached_ = start_;
    number_ = 0;
    ended_ = false;
  }

  void put(Message message) {
    const Key key{message.message.arrival, message.message.channel->topic, number_++};
    waiting_.emplace(key, std::move(message));
  }

  // Lets the message go that a reordering holds back, behind `newer`.
  void release(std::size_t fault, SensorTime newer) {
    if (held_[fault].empty()) return;
    Message message = std::move(held_[fault].front());
    held_[fault].clear();
    message.message.arrival = std::max(message.message.arrival, newer + kBehind);
    put(std::move(message));
  }

  void take(const LogMessage& read) {
    const auto* bytes = reinterpret_cast<const char*>(read.bytes.data());
    Message message{read, {bytes, bytes + read.bytes.size()}};
    const SensorTime arrived = read.arrival;
    for (std::size_t i = 0; i < faults_.size(); ++i) {
      const SensorFault& fault = faults_[i];
      if (rig_.sensors[fault.sensor].topic != read.channel->topic) continue;
      const bool within = arrived >= start_ + fault.from && arrived < start_ + fault.from + fault.length;
      const bool struck = within && ++seen_[i] % fault.every == 0;
      if (fault.kind == Kind::kReorder && !held_[i].empty()) {
        release(i, message.message.arrival);
        continue;  // of a pair only the first is held back
      }
      if (!struck) continue;
      if (touched_ != nullptr) ++(*touched_)[i];
      switch (fault.kind) {
        case Kind::kDrop: return;
        case Kind::kDuplicate: {
          Message again = message;
          again.message.arrival = again.message.arrival + milliseconds(1);
          put(std::move(again));
          break;
        }
        case Kind::kLate: message.message.arrival = message.message.arrival + fault.by; break;
        case Kind::kReorder: held_[i].push_back(std::move(message)); return;
        case Kind::kCorrupt: corrupt(message.bytes, read.index); break;
        case Kind::kClockStep: message.message.capture = message.message.capture + fault.by; break;
        case Kind::kClockDrift: {
          const double since = static_cast<double>((arrived - (start_ + fault.from)).ns);
          message.message.capture = message.message.capture + Duration{std::llround(since * fault.ppm * 1e-6)};
          break;
        }
      }
    }
    put(std::move(message));
  }

  // Cut off in transfer, or bits turned over from its first byte on. A function of the index alone.
  static void corrupt(std::vector<char>& bytes, std::uint64_t index) {
    if (index % 2 == 0) {
      bytes.resize(bytes.size() / 3);
      return;
    }
    std::uint64_t state = index;
    for (std::size_t i = 0; i < bytes.size(); i += 1 + state % 61) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      bytes[i] = static_cast<char>(bytes[i] ^ static_cast<char>(state >> 56 | 1));
    }
  }

  std::unique_ptr<sensors::LogReader> log_;
  const sensors::Rig& rig_;
  std::vector<SensorFault> faults_;
  SensorTime start_;
  std::map<Key, Message> waiting_;
  std::vector<std::deque<Message>> held_;  // by fault
  std::vector<std::uint64_t> seen_;
  std::vector<std::uint64_t>* touched_;
  SensorTime reached_;
  std::uint64_t number_ = 0;
  bool ended_ = false;
  Message current_;
};

}  // namespace

std::unique_ptr<sensors::LogReader> with_sensor_faults(std::unique_ptr<sensors::LogReader> log, const sensors::Rig& rig,
                                                       std::vector<SensorFault> faults,
                                                       std::vector<std::uint64_t>* touched) {
  if (faults.empty()) return log;
  return std::make_unique<FaultyLog>(std::move(log), rig, std::move(faults), touched);
}

}  // namespace takt::pipeline
