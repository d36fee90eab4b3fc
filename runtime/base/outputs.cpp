#include "runtime/base/outputs.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace takt {
namespace {

namespace fs = std::filesystem;

// With the rights that count when a file is opened; a folder on a file system that is read-only takes none either.
Status takes_files(const fs::path& folder) {
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return {};
  return fail(Code::kEnvironment, folder.string() + ": no file can be written there: " + std::strerror(errno));
}

}  // namespace

Status can_write_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return fail(Code::kEnvironment, path + ": this is a folder; give the name of a file");
  }
  const fs::path folder = fs::path(path).parent_path();
  const fs::path in = folder.empty() ? fs::path(".") : folder;
  if (!fs::is_directory(in, error)) {
    return fail(Code::kEnvironment, path + ": there is no folder " + in.string() + "; make it first");
  }
  return takes_files(in);
}

Result<OutputFolder> OutputFolder::make(const std::string& path) {
  OutputFolder out;
  out.path_ = fs::path(path).lexically_normal();
  if (!out.path_.has_filename()) out.path_ = out.path_.parent_path();  // "out/"
  std::error_code error;
  for (fs::path at = out.path_; !at.empty() && !fs::exists(at, error); at = at.parent_path()) out.made_ = at;
  fs::create_directories(out.path_, error);
  if (error) return fail(Code::kEnvironment, path + ": the folder cannot be made: " + error.message());
  TAKT_RETURN_IF_ERROR(takes_files(out.path_));
  return out;
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : path_(std::move(other.path_)), made_(std::exchange(other.made_, {})) {}

OutputFolder::~OutputFolder() {
  if (made_.empty()) return;
  std::error_code error;
  for (fs::path at = path_; fs::remove(at, error) && at != made_; at = at.parent_path()) {
  }
}

}  // namespace takt
