// Parts of `takt plan` in files of their own.
#pragma once

#include <CLI/CLI.hpp>

#include "pipeline/app/app.h"

namespace takt::app {

void add_plan_run(CLI::App& plan, Command& chosen);   // run and diff
void add_plan_swap(CLI::App& plan, Command& chosen);  // swap

}  // namespace takt::app
