// Keeps a run alive: the work is done by a child process, and a child that a signal ends (a crash, a kill, an abort in
// a library) is started again and its end written down. So is one that asks for it, because its device is lost: what
// poisoned the device goes with the process.
#pragma once

#include <optional>
#include <string>

namespace takt::app {

// Runs this very command line without --supervise, in a child, until a child ends by itself, at most kMostRestarts + 1
// times. What happened stands in FOLDER/supervision.json. Returns the exit code of the last child, or that of a failed
// gate which an earlier one came to; that of
// Code::kEnvironment when even that one was ended by a signal.
inline constexpr int kMostRestarts = 5;
// Exit codes of a child that asks for another one; nobody else sees them. The second one's run came to a failed gate,
// which no later process makes good.
inline constexpr int kRestartMe = 75, kRestartMeFailed = 76;
// Of a child: how often its like was started before it. nullopt: this process is not supervised.
std::optional<int> restarts_before();
int supervise(const std::string& folder);

}  // namespace takt::app
