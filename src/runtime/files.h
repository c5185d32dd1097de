// Files that survive a kill at any moment: written whole or not at all, and on the disk
// when the call returns.
//
// FileFailed (facts path, operation, cause) is what may go away by itself; FileRefused
// is a path or right that somebody must change. Both are meant where Errors says
// FileFailed.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace mssql_cdc::runtime {

// Creates `path` and its missing parents. Errors: FileFailed.
Status MakeDirectories(const std::string& path);

// Whether files can be made in `directory`, or the directory itself where it is not
// there. Writes nothing. Errors: FileFailed.
Status CheckWritable(const std::string& directory);

// The content, or nullopt if there is no such file. Errors: FileFailed.
Result<std::optional<std::string>> ReadFileIfThere(const std::string& path);

// Puts `content` in place of what `path` holds, if anything. Errors: FileFailed.
Status ReplaceFile(const std::string& path, std::string_view content);

// Creates `path` with `content`; false if it exists, whoever made it. Errors:
// FileFailed.
Result<bool> CreateFileExclusively(const std::string& path, std::string_view content);

// Removes a file; one that is not there is fine. Not made durable. Errors: FileFailed.
Status RemoveFile(const std::string& path);

// Files of `directory` whose names are decimal numbers, ascending; none if there is no
// such directory. Errors: FileFailed.
Result<std::vector<std::int64_t>> NumberedFiles(const std::string& directory);

// A random UUID in its text form.
std::string NewUuid();

// Holds a file's lock (flock) until it goes; the kernel frees it when the process dies.
class FileLock {
 public:
  FileLock() = default;
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

  // Errors: CheckpointInUse (facts path, pid of the holder), FileFailed.
  static Result<FileLock> Take(const std::string& path);

 private:
  int descriptor_ = -1;
};

}  // namespace mssql_cdc::runtime
