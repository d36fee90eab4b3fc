// takt-convert-pandaset FOLDER RIG OUT.mcap

#include <cstdio>

#include "sensors/rig/rig.h"
#include "tools/convert/pandaset.h"
#include "tools/convert/pandaset_to_mcap.h"

int main(int argc, char** argv) {
  using namespace takt;
  if (argc != 4) {
    std::fprintf(
        stderr,
        "usage: takt-convert-pandaset FOLDER RIG OUT.mcap\n"
        "  FOLDER   one sequence in compact form (lidar/00.psl.gz ..., lidar_poses.csv, cuboids.csv, camera/)\n"
        "  RIG      configs/rigs/pandaset.yaml\n");
    return exit_code(Code::kUsage);
  }
  const auto convert = [&]() -> Status {
    TAKT_ASSIGN(const sensors::Rig rig, sensors::load_rig(argv[2]));
    TAKT_ASSIGN(const tools::Pandaset set, tools::open_pandaset(argv[1]));
    return tools::convert_pandaset(set, rig, argv[3]);
  };
  const Status status = convert();
  if (!status) {
    std::fprintf(stderr, "takt-convert-pandaset: %s\n", status.error().message.c_str());
    return exit_code(status.error().code);
  }
  std::printf("%s\n", argv[3]);
  return 0;
}
