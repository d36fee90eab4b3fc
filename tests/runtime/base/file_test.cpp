#include "runtime/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>

#include "tests/runtime/base/temporary_folder.h"

namespace takt {
namespace {

using testing::HasSubstr;

std::string temporary_name(const std::string& path) { return path + ".part-" + std::to_string(::getpid()); }

TEST(ReadFile, GivesTheBytes) {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  std::string content("zero\0byte\n", 10);
  content += std::string(200'000, 'z');
  ASSERT_TRUE(write_file_atomically(path, content));
  EXPECT_EQ(*read_file(path), content);
}

TEST(ReadFile, FailuresSayWhy) {
  const TemporaryFolder folder;
  const auto missing = read_file(folder / "missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kInput);
  EXPECT_EQ(missing.error().message, (folder / "missing") + ": cannot be opened: No such file or directory");
  const auto not_a_file = read_file(folder / ".");
  ASSERT_FALSE(not_a_file);
  EXPECT_THAT(not_a_file.error().message, HasSubstr("is a folder, expected a file"));
}

TEST(AtomicFile, AppearsOnlyWithCommit) {
  const TemporaryFolder folder;
  const std::string path = folder / "report.json";
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("first "));
    ASSERT_TRUE(file->write("second"));
    EXPECT_EQ(file->position(), 12u);
    EXPECT_FALSE(std::filesystem::exists(path));
    ASSERT_TRUE(file->commit());
  }
  EXPECT_EQ(*read_file(path), "first second");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, WithoutCommitNothingIsLeft) {
  const TemporaryFolder folder;
  {
    auto file = AtomicFile::create(folder / "a");
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("half"));
    EXPECT_EQ(folder.entries(), 1u);
  }
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(AtomicFile, MovingKeepsOneOwner) {
  const TemporaryFolder folder;
  auto created = AtomicFile::create(folder / "a");
  ASSERT_TRUE(created);
  AtomicFile file = *std::move(created);
  ASSERT_TRUE(file.write("x"));
  auto other = AtomicFile::create(folder / "b");
  ASSERT_TRUE(other);
  file = *std::move(other);  // "a" is given up
  EXPECT_EQ(folder.entries(), 1u);
  ASSERT_TRUE(file.write("y"));
  ASSERT_TRUE(file.commit());
  EXPECT_EQ(*read_file(folder / "b"), "y");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(AtomicFile, AFullDiskLeavesTheOldFileAlone) {
  const TemporaryFolder folder;
  const std::string path = folder / "report.json";
  ASSERT_TRUE(write_file_atomically(path, "old"));
  // The temporary name leads to a device that is always full.
  std::filesystem::create_symlink("/dev/full", temporary_name(path));
  const Status written = write_file_atomically(path, "new content");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kEnvironment);
  EXPECT_EQ(written.error().message, path + ": writing failed: No space left on device");
  EXPECT_EQ(*read_file(path), "old");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, AMissingFolderIsAnEnvironmentError) {
  const auto file = AtomicFile::create("/nonexistent/folder/report.json");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Code::kEnvironment);
  EXPECT_THAT(file.error().message, HasSubstr("cannot be created: No such file or directory"));
}

TEST(AtomicFile, ATargetThatIsAFolderIsAnError) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "taken");
  std::filesystem::create_directory(folder / "taken/inside");
  const Status written = write_file_atomically(folder / "taken", "x");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("is a folder; name a file to write"));
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, ALinkIsFollowedAndADeviceIsLeftAlone) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "target", "old"));
  std::filesystem::create_symlink(folder / "target", folder / "link");
  ASSERT_TRUE(write_file_atomically(folder / "link", "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(*read_file(folder / "target"), "new");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const Status written = write_file_atomically(folder / "pipe", "x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kEnvironment);
  EXPECT_THAT(written.error().message, HasSubstr("is a device or pipe; name a file to write"));
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
}

}  // namespace
}  // namespace takt
