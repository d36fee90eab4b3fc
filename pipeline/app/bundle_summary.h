// What is in a bundle, for people and for programs: `takt schedule --check BUNDLE`.
#pragma once

#include <string>

#include "pipeline/bundle/bundle.h"

namespace takt::app {

// Of a bundle that was read, so everything in it holds: modes with their tables and tightest limits, changes, plans,
// memory, what decided it.
std::string bundle_text(const pipeline::Bundle& bundle, const std::string& path);
std::string bundle_json(const pipeline::Bundle& bundle);

}  // namespace takt::app
