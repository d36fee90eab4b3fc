// Where results go, looked at before the work that makes them: minutes of work that end at a mistyped path are lost.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/base/status.h"

namespace takt {

// Whether a file can be written there: its folder exists and takes files, and it is no folder itself. kEnvironment.
Status can_write_file(const std::string& path);

// A folder that is made with all its parents and, unless keep() is called, gone again with them: what failed before it
// wrote anything leaves nothing behind. Folders that hold something stay.
class OutputFolder {
 public:
  // kEnvironment when it cannot be made, or takes no files.
  static Result<OutputFolder> make(const std::string& path);
  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();
  void keep() { made_.clear(); }

 private:
  OutputFolder() = default;
  std::filesystem::path path_, made_;  // made_: the uppermost that was not there; empty: nothing was made
};

}  // namespace takt
