// takt-convert-argoverse2 FOLDER OUT.mcap

#include <cstdio>

#include "tools/convert/argoverse2.h"

int main(int argc, char** argv) {
  using namespace takt;
  if (argc != 3) {
    std::fprintf(stderr,
                 "usage: takt-convert-argoverse2 FOLDER OUT.mcap\n"
                 "  FOLDER   one log in compact form (annotations.csv, city_SE3_egovehicle.csv, lidar_NS.bin)\n");
    return exit_code(Code::kUsage);
  }
  const auto result = tools::convert_argoverse2(argv[1], argv[2]);
  if (!result) {
    std::fprintf(stderr, "takt-convert-argoverse2: %s\n", result.error().message.c_str());
    return exit_code(result.error().code);
  }
  std::printf("%s\n", argv[2]);
  return 0;
}
