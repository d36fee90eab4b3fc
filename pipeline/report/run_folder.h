// The run folder as data: what takt report, takt diff and --reproduce read again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "pipeline/report/run_data.h"
#include "runtime/base/status.h"

namespace takt::pipeline {

// Version of run.json; a change that older readers cannot read gets a new number.
inline constexpr int kManifestVersion = 8;

// run.json: all of RunData but records (records.mcap), objects, tracks and truth (results.mcap). Atomically.
Status write_manifest(const RunData& run, const std::string& path);
std::string manifest_json(const RunData& run);

// records.mcap, results.mcap, run.json, and what `more` writes into the folder that it is given. The files of a run
// belong together: they appear in `folder` (made if missing) when all are there, so that a full disk leaves an earlier
// run as it was. Then what is left of an earlier run goes: files by the names that takt gives them, here and in the
// folders of its passes; nothing else. kEnvironment.
Status write_run_folder(const RunData& run, const std::string& folder,
                        const std::function<Status(const std::string& unfinished)>& more = {});

// The run folder of a further pass inside that of the first one: FOLDER/pass-2, ...
std::string pass_folder(const std::string& folder, std::uint64_t pass);
// Whether the run folder `run`, which is there, is that of such a pass: a new run in `folder` would take it away.
bool is_pass_of(const std::string& run, const std::string& folder);

// Reads a run folder again. Paths in it are as they were at the run; run_folder is set to `folder`.
// kInput: a file is missing, damaged or does not fit the others, with its name and place.
Result<RunData> load_run(const std::string& folder);

}  // namespace takt::pipeline
