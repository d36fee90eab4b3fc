#include "kernels/cuda/simt/source_line.h"

#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <memory>

// Set by the linker.
extern "C" const char __executable_start;
extern "C" const char _end;

namespace takt::simt {

bool in_program(const void* address) { return address >= &__executable_start && address < &_end; }

std::string source_line(const void* pc) {
  char program[PATH_MAX] = {};
  if (readlink("/proc/self/exe", program, sizeof(program) - 1) <= 0) return {};
  const std::string quoted(program);
  if (quoted.find('\'') != std::string::npos) return {};
  // The call before the return address, in a program that may be loaded anywhere.
  const auto offset = reinterpret_cast<std::uintptr_t>(pc) - reinterpret_cast<std::uintptr_t>(&__executable_start) - 1;
  char command[PATH_MAX + 64];
  std::snprintf(command, sizeof(command), "addr2line -s -e '%s' 0x%jx 2>/dev/null", program,
                static_cast<std::uintmax_t>(offset));
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "r"), pclose);
  if (!pipe) return {};
  char line[256] = {};
  if (std::fgets(line, sizeof(line), pipe.get()) == nullptr) return {};
  std::string text(line);
  text = text.substr(0, text.find_first_of(" \n"));
  return text.find('?') == std::string::npos ? text : std::string();
}

}  // namespace takt::simt
