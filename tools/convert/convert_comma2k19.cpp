// takt-convert-comma2k19 FOLDER OUT.mcap

#include <cstdio>

#include "tools/convert/comma2k19.h"

int main(int argc, char** argv) {
  using namespace takt;
  if (argc != 3) {
    std::fprintf(stderr,
                 "usage: takt-convert-comma2k19 FOLDER OUT.mcap\n"
                 "  FOLDER   one segment (processed_log/CAN/radar, global_pose), arrays as .npy\n");
    return exit_code(Code::kUsage);
  }
  const auto result = tools::convert_comma2k19(argv[1], argv[2]);
  if (!result) {
    std::fprintf(stderr, "takt-convert-comma2k19: %s\n", result.error().message.c_str());
    return exit_code(result.error().code);
  }
  std::printf("%s\n", argv[2]);
  return 0;
}
