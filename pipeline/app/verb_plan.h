// Parts of `takt plan` in files of their own.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "pipeline/app/app.h"
#include "runtime/base/status.h"

namespace takt::app {

void add_plan_run(CLI::App& plan, Command& chosen);  // run and diff
// bench on a device beside the CPU; a guard cuts the plan into segments.
Status bench_on_device(const std::string& file, const std::string& name, int runs, std::optional<double> guard_ms,
                       bool json);
void add_plan_swap(CLI::App& plan, Command& chosen);  // swap

}  // namespace takt::app
