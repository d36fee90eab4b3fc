// Replays a proof that no table exists: own arithmetic, no search, time linear in the size of the certificate times the
// windows of the problem.
#pragma once

#include <string>
#include <string_view>

#include "scheduler/model/certificate.h"

namespace takt::sched {

// Every branch covers its choices, every leaf's excess is what the problem gives, to the nanosecond. kGate names the
// first part that does not hold.
Status check_certificate(const Problem& problem, const Certificate& certificate);

// One JSON object with names instead of indices, bound to this problem by its digest (docs/scheduling.md).
std::string certificate_json(const Problem& problem, const Certificate& certificate);
// kInput: no such JSON, with the place. kGate: made for another problem.
Result<Certificate> read_certificate(const Problem& problem, std::string_view text);

}  // namespace takt::sched
