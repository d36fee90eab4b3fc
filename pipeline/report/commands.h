// What to type after a run. Every command can be pasted into a shell.
#pragma once

#include <string>
#include <vector>

#include "pipeline/report/run_data.h"

namespace takt::pipeline {

// As it is where a POSIX shell takes it for one word, else in single quotes.
std::string shell_quoted(const std::string& word);

// The program as it was called, so that a command that it prints can be pasted where it is not on the PATH; quoted.
// "takt" until set_program() has said it. Set once, at the start of main().
void set_program(const char* argv0);
const std::string& program();

struct Command {
  std::string what;  // it does, in words
  std::string line;
};

// Commands that repeat and deepen the run, most useful first.
std::vector<Command> commands_to_try(const RunData& run);

}  // namespace takt::pipeline
