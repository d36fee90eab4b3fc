// The style sheet of report.html.
#pragma once

#include <string_view>

namespace takt::pipeline {

std::string_view report_style();

}  // namespace takt::pipeline
