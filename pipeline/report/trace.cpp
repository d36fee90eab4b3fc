#include "pipeline/report/trace.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "pipeline/report/causes.h"
#include "pipeline/report/record_index.h"
#include "pipeline/report/text.h"
#include "sensors/logs/wire.h"

namespace takt::pipeline {
namespace {

using sched::JobRecord;
using sched::kNever;
using sensors::wire::Writer;

// perfetto.protos: TrackEvent.Type.
enum EventType : std::uint32_t { kBegin = 1, kEnd = 2, kInstant = 3 };

constexpr std::uint32_t kSequence = 1;  // TracePacket.trusted_packet_sequence_id
constexpr std::uint64_t kRoot = 1;

struct Event {
  std::int64_t at = 0;
  EventType type = kInstant;
  std::uint64_t track = 0;
  std::string name;
  std::vector<std::pair<std::string, std::string>> notes;
  std::vector<std::uint64_t> flows, last_of_flows;
};

class Trace {
 public:
  Trace(const RunData& run, const Judgement& judgement) : run_(run), judgement_(judgement), index_(run) {}

  std::string bytes() {
    follow_samples();
    track(kRoot, 0, "takt: " + run_.pipeline_name, 0);
    std::uint64_t rank = 0;
    for (std::size_t s = 0; s < run_.problem.sensors.size(); ++s) {
      track(sensor_track(s), kRoot, run_.problem.sensors[s].name, rank++);
    }
    for (std::size_t c = 0; c < run_.problem.board.cores.size(); ++c) {
      const std::string& name = run_.problem.board.cores[c].name;
      track(core_track(c), kRoot, name, rank++);
      track(planned_track(c), core_track(c), name + " planned", rank++);
      for (std::size_t s = 0; s < run_.problem.stages.size(); ++s) {
        if (runs_on(s, c)) track(job_track(c, s), core_track(c), name + " " + run_.problem.stages[s].name, rank++);
      }
      track(steal_track(c), core_track(c), name + " taken by the hypervisor", rank++);
    }
    for (std::size_t u = 0; u < run_.problem.board.units.size(); ++u) {
      const std::string& name = run_.problem.board.units[u].name;
      track(unit_track(u), kRoot, name, rank++);
      track(planned_on_unit_track(u), unit_track(u), name + " planned", rank++);
    }
    track(host_track(), kRoot, "process stopped", rank++);
    if (!run_.modes.empty()) track(mode_track(), kRoot, "mode", rank++);
    planned();
    modes();
    for (const JobRecord& record : run_.records) job(record);
    samples();
    stalls();
    std::stable_sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return std::tuple(a.at, a.type != kEnd) < std::tuple(b.at, b.type != kEnd);
    });
    for (const Event& event : events_) put(event);
    return std::move(out_);
  }

 private:
  // Identities of tracks: a kind, and what it belongs to.
  static std::uint64_t id(std::uint64_t kind, std::uint64_t a, std::uint64_t b = 0) {
    return kind << 48 | a << 24 | (b + 1);
  }
  static std::uint64_t sensor_track(std::size_t s) { return id(1, s); }
  static std::uint64_t core_track(std::size_t c) { return id(2, c); }
  static std::uint64_t planned_track(std::size_t c) { return id(3, c); }
  static std::uint64_t job_track(std::size_t c, std::size_t s) { return id(4, c, s); }
  static std::uint64_t steal_track(std::size_t c) { return id(5, c); }
  static std::uint64_t unit_track(std::size_t u) { return id(8, u); }
  static std::uint64_t planned_on_unit_track(std::size_t u) { return id(9, u); }
  static std::uint64_t host_track() { return id(6, 0); }
  static std::uint64_t mode_track() { return id(7, 0); }

  [[nodiscard]] bool runs_on(std::size_t stage, std::size_t core) const {
    const auto has_slot = [&](const sched::Schedule& schedule) {
      return std::any_of(schedule.slots.begin(), schedule.slots.end(), [&](const sched::Slot& slot) {
        return slot.stage == stage && std::find(slot.cores.begin(), slot.cores.end(), core) != slot.cores.end();
      });
    };
    return has_slot(run_.schedule) ||
           std::any_of(run_.modes.begin(), run_.modes.end(), [&](const auto& mode) { return has_slot(mode.schedule); });
  }

  // A packet of TracePacket.track_descriptor.
  void track(std::uint64_t uuid, std::uint64_t parent, const std::string& name, std::uint64_t rank) {
    Writer(out_).message(1, [&](Writer& packet) {
      packet.unsigned_(10, kSequence);
      packet.unsigned_(13, first_packet_ ? 1 : 0);  // SEQ_INCREMENTAL_STATE_CLEARED
      packet.message(60, [&](Writer& t) {
        t.unsigned_(1, uuid);
        t.text(2, name);
        t.unsigned_(5, parent);
        t.unsigned_(11, 3);  // child_ordering: EXPLICIT
        t.unsigned_(12, rank);
      });
    });
    first_packet_ = false;
  }

  void put(const Event& event) {
    Writer(out_).message(1, [&](Writer& packet) {
      packet.unsigned_(8, static_cast<std::uint64_t>(event.at + shift()));
      packet.unsigned_(10, kSequence);
      packet.message(11, [&](Writer& e) {
        for (const auto& note : event.notes) {
          e.message(4, [&note](Writer& w) {
            w.text(6, note.second);
            w.text(10, note.first);
          });
        }
        e.unsigned_(9, event.type);
        e.unsigned_(11, event.track);
        e.text(23, event.name);
        for (const std::uint64_t flow : event.flows) e.double_(47, std::bit_cast<double>(flow));
        for (const std::uint64_t flow : event.last_of_flows) e.double_(48, std::bit_cast<double>(flow));
      });
    });
  }

  // Samples arrive, and the watch looks, before table time 0.
  [[nodiscard]] std::int64_t shift() const { return run_.problem.hyperperiod.ns * 2; }

  void slice(std::uint64_t on, std::int64_t from, std::int64_t to, Event begin) {
    from = std::max(from, -shift());
    if (to <= from) return;
    begin.at = from;
    begin.type = kBegin;
    begin.track = on;
    events_.push_back(std::move(begin));
    Event end;
    end.at = to;
    end.type = kEnd;
    end.track = on;
    events_.push_back(std::move(end));
  }

  void planned() {
    std::uint64_t last = 0;
    for (const JobRecord& record : run_.records) last = std::max(last, record.hyperperiod);
    // As far as there are records: the count in a file may be anything.
    for (std::uint64_t h = 0; h <= std::min(last, static_cast<std::uint64_t>(run_.records.size())); ++h) {
      const PlannedHyperperiod shown = index_.planned(h);
      for (const sched::Slot& slot : shown.table->slots) {
        for (const std::uint32_t core : slot.cores) {
          Event begin;
          begin.name = job_name(slot.stage, shown.job(slot));
          slice(planned_track(core), shown.start(slot).ns, shown.end(slot).ns, std::move(begin));
        }
        if (!slot.unit) continue;
        Event begin;
        begin.name = job_name(slot.stage, shown.job(slot));
        slice(planned_on_unit_track(*slot.unit), shown.start(slot).ns, shown.end(slot).ns, std::move(begin));
      }
    }
  }

  // From each change of mode to the next.
  void modes() {
    if (run_.modes.empty()) return;
    std::int64_t end = 0;
    for (const JobRecord& record : run_.records) end = std::max(end, record.slot_end);
    for (std::size_t i = 0; i < index_.stays().size(); ++i) {
      const Stay& stay = index_.stays()[i];
      Event begin;
      begin.name = run_.modes[stay.mode].name;
      if (i > 0) begin.notes.emplace_back("cause", in_words(run_, run_.dispatch.changes[i - 1]));
      const std::int64_t to = i + 1 < index_.stays().size() ? index_.stays()[i + 1].begin.ns : end;
      slice(mode_track(), stay.begin.ns, to, std::move(begin));
    }
  }

  [[nodiscard]] std::string job_name(std::uint32_t stage, std::uint64_t number) const {
    return run_.problem.stages[stage].name + "#" + std::to_string(number);
  }

  void job(const JobRecord& record) {
    const sched::Schedule& table = run_.table_of(record);
    if (record.slot >= table.slots.size() || record.stage >= run_.problem.stages.size()) return;
    Event begin;
    begin.name = job_name(record.stage, record.job);
    begin.notes = {{"class", sched::name_of(record.job_class)},
                   {"CPU time", ms_text({record.cpu_ns})},
                   {"budget", ms_text(table.choices[record.stage].budget.time)},
                   {"involuntary switches", std::to_string(record.involuntary_switches)},
                   {"page faults", std::to_string(record.page_faults)}};
    if (record.launch_ns != 0) {
      begin.notes.emplace_back("handed to the device in", ms_text({record.launch_ns}));
      begin.notes.emplace_back("time of the device", ms_text({record.device_ns}));
    }
    if (const std::string cause = cause_of(run_, index_, record); !cause.empty())
      begin.notes.emplace_back("cause", cause);
    if (const std::string effect = effect_of(run_, index_, record);
        record.job_class != sched::JobClass::kOk && !effect.empty()) {
      begin.notes.emplace_back("effect", effect);
    }
    if (const auto flows = flows_.find({record.stage, record.job}); flows != flows_.end()) {
      begin.flows = flows->second.through;
      begin.last_of_flows = flows->second.last;
    }
    const std::vector<std::uint32_t>& cores = table.slots[record.slot].cores;
    for (const std::uint32_t core : cores) {
      const std::uint64_t on = job_track(core, record.stage);
      if (record.actual_start == kNever || record.completion == kNever) {
        Event instant = begin;
        instant.at = record.nominal_start;
        instant.track = on;
        events_.push_back(std::move(instant));
      } else if (record.segment_count == 0) {
        slice(on, record.actual_start, record.completion, begin);
      } else {
        segments(record, table, on, begin);
      }
      begin.flows.clear();  // on the first core alone
      begin.last_of_flows.clear();
    }
    if (record.segment_count != 0) units(record, table);
    if (record.publication != kNever && !cores.empty()) {
      Event instant;
      instant.name = "published";
      instant.at = record.publication;
      instant.track = job_track(cores.front(), record.stage);
      events_.push_back(std::move(instant));
    }
  }

  // A job's segments on a core: the first says all about it.
  void segments(const JobRecord& record, const sched::Schedule& table, std::uint64_t on, Event begin) {
    const std::vector<sched::Segment>& planned = table.choices[record.stage].budget.segments;
    for (std::size_t i = 0; i < std::min<std::size_t>(record.segment_count, planned.size()); ++i) {
      if (planned[i].unit || record.segments[i].start == kNever) continue;
      slice(on, record.segments[i].start, record.segments[i].end, begin);
      begin = {};
      begin.name = job_name(record.stage, record.job);
    }
  }

  void units(const JobRecord& record, const sched::Schedule& table) {
    const std::vector<sched::Segment>& planned = table.choices[record.stage].budget.segments;
    for (std::size_t i = 0; i < std::min<std::size_t>(record.segment_count, planned.size()); ++i) {
      if (!planned[i].unit || record.segments[i].start == kNever) continue;
      Event begin;
      begin.name = job_name(record.stage, record.job);
      begin.notes = {{"class", sched::name_of(record.job_class)}, {"budget", ms_text(planned[i].time)}};
      slice(unit_track(*planned[i].unit), record.segments[i].start, record.segments[i].end, std::move(begin));
    }
  }

  // One flow per latency instance that reached an output.
  void follow_samples() {
    for (std::size_t c = 0; c < judgement_.chains.size(); ++c) {
      const sched::Chain& chain = run_.problem.chains[judgement_.chains[c].chain];
      for (const Instance& i : judgement_.chains[c].latency().instances) {
        if (!i.reached || i.path.size() != chain.stages.size() || i.path.empty()) continue;
        const std::uint64_t flow = (c + 1) << 48 | (i.sample + 1);
        for (std::size_t k = 0; k < i.path.size(); ++k) {
          Flows& flows = flows_[{chain.stages[k], i.path[k]}];
          (k + 1 == i.path.size() ? flows.last : flows.through).push_back(flow);
        }
        sample_flows_[{chain.sensor, i.sample}].push_back(flow);
      }
    }
  }

  // Every sample that a job used, once: an instant at its arrival, with its stamp.
  void samples() {
    std::set<std::pair<std::uint32_t, std::uint64_t>> seen;
    for (const JobRecord& record : run_.records) {
      if (record.stage >= run_.problem.stages.size()) continue;
      const std::vector<sched::Input>& inputs = run_.problem.stages[record.stage].inputs;
      for (std::size_t k = 0; k < inputs.size() && k < record.input_count; ++k) {
        const sched::InputRecord& input = record.inputs[k];
        if (!inputs[k].from_sensor || input.kind > 1 || !seen.insert({inputs[k].source, input.job}).second) continue;
        Event instant;
        instant.name = "sample " + std::to_string(input.job);
        instant.at = std::max(table_time(run_.sensor_from_table, SensorTime{input.arrival_ns}).ns, -shift());
        instant.track = sensor_track(inputs[k].source);
        const double age = static_cast<double>(input.arrival_ns - input.capture_ns);
        instant.notes = {{"captured before", ms_text({static_cast<std::int64_t>(age)})}};
        if (const auto flows = sample_flows_.find({inputs[k].source, input.job}); flows != sample_flows_.end()) {
          instant.flows = flows->second;
        }
        events_.push_back(std::move(instant));
      }
    }
  }

  void stalls() {
    for (const HostStall& stall : run_.host_stalls) {
      Event begin;
      begin.name = "up to " + ms_text(stall.lost);
      const auto core = static_cast<std::size_t>(stall.core);
      if (stall.core >= 0 && core >= run_.problem.board.cores.size()) continue;
      slice(stall.core < 0 ? host_track() : steal_track(core), stall.from_ns, stall.to_ns, std::move(begin));
    }
  }

  struct Flows {
    std::vector<std::uint64_t> through, last;
  };
  const RunData& run_;
  const Judgement& judgement_;
  RecordIndex index_;
  std::vector<Event> events_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Flows> flows_;                              // stage, job
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::uint64_t>> sample_flows_;  // sensor, sample
  std::string out_;
  bool first_packet_ = true;
};

}  // namespace

std::string perfetto_trace(const RunData& run, const Judgement& judgement) { return Trace(run, judgement).bytes(); }

}  // namespace takt::pipeline
