// Any text as a problem file with everything that one may hold: what is read without an error either passes the checks
// of the model or is refused by them, and every error of the file names its place.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "scheduler/model/yaml.h"

using namespace takt;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Result<YamlDocument> document = YamlDocument::parse(text, "fuzz.yaml");
  if (!document) return 0;
  const YamlNode root = document->root();
  sched::Board board;
  board.name = "board";
  board.cores = {{"core0", 0, 0.25, milliseconds(1), microseconds(500)},
                 {"core1", 1, 0, milliseconds(1), microseconds(500)}};
  board.units = {{"copy", sched::UnitKind::kCopyEngine}, {"gpu", sched::UnitKind::kGpuPartition}};
  (void)sched::read_board(root.at("own_board"));
  (void)root.at("board").text();
  const std::string name = root.at("name").text();
  const sched::Problem problem = sched::read_problem(root, name, board, sched::read_sensors(root.at("sensors")));
  const std::optional<sched::ModeSet> modes = sched::read_modes(root, problem);
  if (const Status status = document->finish(); !status) {
    if (status.error().message.rfind("fuzz.yaml:", 0) != 0) std::abort();
    return 0;
  }
  if (sched::check(problem)) {
    (void)sched::digest_of(problem);
    // What the model accepts has segments that add up and a gap that holds its corrections.
    for (const sched::Stage& stage : problem.stages) {
      for (const sched::Variant& variant : stage.variants) {
        for (const sched::Budget& budget : variant.budgets) {
          Duration sum;
          for (const sched::Segment& segment : sched::segments_of(budget)) sum += segment.time;
          if (sum != budget.time) std::abort();
        }
      }
    }
  }
  if (modes && sched::check(*modes)) {
    // One tick for all: H / N is the same fraction.
    const sched::Problem& first = modes->modes.front().problem;
    for (const sched::ModeSpec& mode : modes->modes) {
      __extension__ using Wide = __int128;
      if (static_cast<Wide>(first.ticks) * mode.problem.hyperperiod.ns !=
          static_cast<Wide>(mode.problem.ticks) * first.hyperperiod.ns) {
        std::abort();
      }
    }
  }
  return 0;
}
