// Keeps a run alive: the work is done by a child process, and a child that a signal ends (a crash, a kill, an abort in
// a library) is started again and its end written down. So is one that asks for it, because its device is lost: what
// poisoned the device goes with the process.
#pragma once

#include <optional>
#include <string>

namespace takt::app {

// Runs this very command line without --supervise, in a child, until a child ends by itself, at most kMostRestarts + 1
// times. What happened stands in FOLDER/supervision.json. Returns the exit code of the last child; that of
// Code::kEnvironment when even that one was ended by a signal.
inline constexpr int kMostRestarts = 5;
inline constexpr int kRestartMe = 75;  // exit code of a child that asks for another one; nobody else sees it
// Of a child: how often its like was started before it. nullopt: this process is not supervised.
std::optional<int> restarts_before();
int supervise(const std::string& folder);

}  // namespace takt::app
