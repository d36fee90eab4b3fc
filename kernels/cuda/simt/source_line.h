// Where an instruction of this program stands in its source.
#pragma once

#include <string>

namespace takt::simt {

// "conv.cu:88" of a return address; "" where the program has no line numbers or the machine no addr2line. Slow.
std::string source_line(const void* pc);
// Whether the address lies in the program's own image: code and constants.
bool in_program(const void* address);

}  // namespace takt::simt
