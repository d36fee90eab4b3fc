// Writes the corpus of the bundle fuzzer: make_bundle_corpus FOLDER.
#include <cstdio>
#include <string>

#include "runtime/base/file.h"
#include "tests/pipeline/bundle/sample_bundles.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: make_bundle_corpus FOLDER\n"), 2;
  const auto write = [&](const char* name, const takt::pipeline::Bundle& bundle) {
    const auto bytes = takt::pipeline::write_bundle(bundle);
    if (!bytes) return false;
    return takt::write_file_atomically(std::string(argv[1]) + "/" + name,
                                       {reinterpret_cast<const char*>(bytes->data()), bytes->size()})
        .has_value();
  };
  const takt::pipeline::Bundle three = takt::pipeline::test::sample_bundle();
  takt::pipeline::Bundle one = three;
  one.modes.resize(1);
  one.changes.clear();
  one.stages[1].variants.resize(1);
  return write("three_modes", three) && write("one_mode", one) ? 0 : 1;
}
