// Compiles an ONNX file and runs it where the caller's buffers lie, by two threads:
// compile_model NET.onnx [DIMENSION=NUMBER ...]
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "compiler/compile.h"
#include "runtime/base/file.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/takt.h"

namespace {

takt::Status run(int argc, char** argv) {
  takt::compiler::Options options;
  options.source = argv[1];
  options.parts = {1, 2};  // workers that the plan admits
  for (int i = 2; i < argc; ++i) {
    const std::string text = argv[i];
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) return takt::fail(takt::Code::kUsage, text + ": DIMENSION=NUMBER");
    options.dims[text.substr(0, equals)] = std::atoll(text.c_str() + equals + 1);
  }

  TAKT_ASSIGN(const std::string onnx, takt::read_file(argv[1]));
  TAKT_ASSIGN(const std::vector<std::byte> bytes,
              takt::compiler::compile_onnx(std::as_bytes(std::span(onnx)), options));
  TAKT_ASSIGN(const std::shared_ptr<const takt::plan::Plan> plan, takt::plan::Plan::parse(bytes));
  TAKT_ASSIGN(const std::unique_ptr<takt::exec::Session> session, takt::exec::Session::create(plan));

  // Buffers of the caller, at multiples of 64 bytes, are bound where they lie; a later call may bind others.
  const takt::plan::Description& description = plan->description();
  std::vector<takt::memory::AlignedBuffer> memory;
  for (std::size_t slot = 0; slot < description.inputs.size(); ++slot) {
    const std::uint64_t size = description.tensors[description.inputs[slot]].bytes;
    TAKT_ASSIGN(memory.emplace_back(), takt::memory::AlignedBuffer::create(size));
    TAKT_RETURN_IF_ERROR(session->bind_input(slot, memory.back().span()));
  }
  for (std::size_t slot = 0; slot < description.outputs.size(); ++slot) {
    const std::uint64_t size = description.tensors[description.outputs[slot]].bytes;
    TAKT_ASSIGN(memory.emplace_back(), takt::memory::AlignedBuffer::create(size));
    TAKT_RETURN_IF_ERROR(session->bind_output(slot, memory.back().span()));
  }
  TAKT_RETURN_IF_ERROR(session->ready(2));

  // A session has no threads: yours run the parts of each step and meet before the next one.
  std::barrier<> meeting(2);
  const auto worker = [&](int part) {
    for (std::size_t step = 0; step < session->steps(); ++step) {
      session->run_step(step, part, 2);
      meeting.arrive_and_wait();
    }
  };
  std::thread other(worker, 1);
  worker(0);
  other.join();
  std::printf("%s: %zu steps, arena of %llu bytes\n", description.name.c_str(), session->steps(),
              static_cast<unsigned long long>(description.arena_bytes));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "compile_model NET.onnx [DIMENSION=NUMBER ...]\n");
    return 2;
  }
  const takt::Status status = run(argc, argv);
  if (status) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return takt::exit_code(status.error().code);
}
