// Where each millisecond of one chain instance went.
#pragma once

#include <string>
#include <vector>

#include "pipeline/report/record_index.h"
#include "pipeline/report/verdict.h"

namespace takt::pipeline {

enum class PartKind : std::uint8_t { kSensor, kWait, kRun, kPublish };

struct Part {
  PartKind kind = PartKind::kWait;
  std::uint32_t stage = 0;  // kRun, kPublish; kWait: the stage that was waited for
  std::string label;        // "camera_detect runs"
  Duration time;
};

// Parts from the stamp reference to publication; they add up to the instance's latency (without the clock map's error).
// Empty when the sample reached no output.
std::vector<Part> breakdown(const RunData& run, const RecordIndex& index, std::size_t chain, const Instance& instance);

// The instance closest to (or furthest beyond) its bound over all chains, latency only.
struct WorstFrame {
  std::size_t chain = 0;               // index into Judgement::chains
  std::uint32_t of_problem = 0;        // its chain there
  const Instance* instance = nullptr;  // in the judgement; nullptr when nothing reached an output
  double share = 0;                    // published / bound; 0 without a bound
};
WorstFrame worst_frame(const Judgement& judgement);

// Its cause in words: the broken assumptions, or the largest part.
std::string cause_in_words(const RunData& run, const RecordIndex& index, const WorstFrame& worst);

}  // namespace takt::pipeline
