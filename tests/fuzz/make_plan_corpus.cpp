// Writes the corpus of fuzz_plan: make_plan_corpus FOLDER. Small plans for every target of x86-64, with views, parts of
// concats, in-place steps, state, and most kernels.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "compiler/compile.h"
#include "tests/compiler/lower/random_net.h"

namespace {

void save(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_plan_corpus FOLDER\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/plan";
  std::filesystem::create_directories(folder);
  for (const std::uint32_t seed : {2, 5, 7, 12, 19, 31}) {
    takt::test::RandomNet net(seed);
    for (int i = 0; i < 5; ++i) net.grow();
    const takt::ir::Graph graph = net.finish();
    for (const auto target : {takt::kernels::Target::kAvx2, takt::kernels::Target::kAvx512}) {
      takt::compiler::Options options;
      options.target = target;
      options.optimise = seed % 2 == 0;
      const auto bytes = takt::compiler::compile(graph, {}, options);
      if (!bytes) {
        std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
        return 1;
      }
      if (bytes->size() > 24'000) continue;
      save(folder + "/" + std::to_string(seed) + "_" + (takt::kernels::name_of(target) + 4), *bytes);
    }
  }
  return 0;
}
