#include "runtime/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace mssql_cdc::runtime {
namespace {

// What stays wrong until somebody changes the path, its rights or the file system.
bool IsLasting(int number) {
  for (const int lasting : {EACCES, EPERM, EROFS, ENOENT, ENOTDIR, EISDIR, ELOOP,
                            ENAMETOOLONG, EINVAL, EFBIG}) {
    if (number == lasting) return true;
  }
  return false;
}

Error Failed(const std::string& path, const char* operation, int number) {
  return Error(IsLasting(number) ? ErrorId::kFileRefused : ErrorId::kFileFailed)
      .With("path", path)
      .With("operation", operation)
      .With("cause", std::strerror(number));
}

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }
  bool open() const { return number_ >= 0; }

 private:
  int number_;
};

std::string ParentOf(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Makes names created or removed in `directory` durable.
Status SyncDirectory(const std::string& directory) {
  const Descriptor descriptor(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.open()) return Failed(directory, "open", errno);
  // Some file systems know no fsync of a directory, and need none.
  if (::fsync(descriptor.get()) != 0 && errno != EINVAL) {
    return Failed(directory, "fsync", errno);
  }
  return Unit{};
}

Status WriteAll(int descriptor, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(descriptor, content.data(), content.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return Failed(path, "write", errno);
    }
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return Unit{};
}

// Where `path` is written before it gets its name. Hidden and no number, so that nobody
// takes a leftover for a batch.
std::string TemporaryFor(const std::string& path) {
  const std::string parent = ParentOf(path);
  const std::size_t slash = path.find_last_of('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return parent + "/." + name + ".mssql-cdc.tmp";
}

Status WriteTemporary(const std::string& temporary, std::string_view content) {
  const Descriptor descriptor(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!descriptor.open()) return Failed(temporary, "open", errno);
  TRY(WriteAll(descriptor.get(), temporary, content));
  if (::fsync(descriptor.get()) != 0) return Failed(temporary, "fsync", errno);
  return Unit{};
}

// Renames without replacing; false if `to` exists. link() serves where the file system
// has no such rename.
Result<bool> RenameExclusively(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) ==
      0) {
    return true;
  }
  if (errno == EEXIST) return false;
  if (errno != EINVAL && errno != ENOSYS && errno != EPERM) {
    return Failed(to, "rename", errno);
  }
  if (::link(from.c_str(), to.c_str()) != 0) {
    if (errno == EEXIST) return false;
    return Failed(to, "link", errno);
  }
  return true;
}

}  // namespace

Status MakeDirectories(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return Unit{};
    return Failed(path, "mkdir", ENOTDIR);
  }
  const std::string parent = ParentOf(path);
  if (parent != path) TRY(MakeDirectories(parent));
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
    return Failed(path, "mkdir", errno);
  }
  return SyncDirectory(parent);
}

Status CheckWritable(const std::string& directory) {
  std::string there = directory.empty() ? "." : directory;
  struct stat status{};
  while (::stat(there.c_str(), &status) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return Failed(there, "stat", errno);
    const std::string parent = ParentOf(there);
    if (parent == there) return Failed(there, "stat", ENOENT);
    there = parent;
  }
  if (!S_ISDIR(status.st_mode)) return Failed(there, "mkdir", ENOTDIR);
  if (::faccessat(AT_FDCWD, there.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return Failed(there, "write", errno);
  }
  return Unit{};
}

Result<std::optional<std::string>> ReadFileIfThere(const std::string& path) {
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.open()) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<std::string>();
    return Failed(path, "open", errno);
  }
  constexpr std::size_t kSizeBytesMax = 16u << 20;
  std::string content;
  char block[16384];
  while (true) {
    const ssize_t count = ::read(descriptor.get(), block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed(path, "read", errno);
    if (count == 0) return std::optional<std::string>(std::move(content));
    content.append(block, static_cast<std::size_t>(count));
    if (content.size() > kSizeBytesMax) return Failed(path, "read", EFBIG);
  }
}

Status ReplaceFile(const std::string& path, std::string_view content) {
  const std::string temporary = TemporaryFor(path);
  TRY(WriteTemporary(temporary, content));
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return Failed(path, "rename", errno);
  return SyncDirectory(ParentOf(path));
}

Result<bool> CreateFileExclusively(const std::string& path, std::string_view content) {
  const std::string temporary = TemporaryFor(path);
  TRY(WriteTemporary(temporary, content));
  TRY_ASSIGN(const bool created, RenameExclusively(temporary, path));
  ::unlink(temporary.c_str());  // There still after a refusal, or after link().
  TRY(SyncDirectory(ParentOf(path)));
  return created;
}

Status RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return Failed(path, "unlink", errno);
  return Unit{};
}

Result<std::vector<std::int64_t>> NumberedFiles(const std::string& directory) {
  std::vector<std::int64_t> numbers;
  DIR* entries = ::opendir(directory.c_str());
  if (entries == nullptr) {
    if (errno == ENOENT) return numbers;
    return Failed(directory, "opendir", errno);
  }
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    const bool digits = std::all_of(name.begin(), name.end(),
                                    [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) continue;
    if (const std::optional<std::int64_t> number = ParseInt64(name)) {
      numbers.push_back(*number);
    }
  }
  ::closedir(entries);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string NewUuid() {
  std::uint8_t bytes[16] = {};
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) std::abort();
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0F) | 0x40);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3F) | 0x80);
  std::string text = LowerAscii(HexUpper(bytes));
  for (const std::size_t position : {20, 16, 12, 8}) text.insert(position, 1, '-');
  return text;
}

FileLock::FileLock(FileLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<FileLock> FileLock::Take(const std::string& path) {
  FileLock lock;
  lock.descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock.descriptor_ < 0) return Failed(path, "open", errno);
  if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Failed(path, "flock", errno);
    char pid[32] = {};
    const ssize_t size = ::read(lock.descriptor_, pid, sizeof pid - 1);
    return Error(ErrorId::kCheckpointInUse)
        .With("path", path)
        .With("pid", std::string(Trim(std::string_view(
                         pid, size > 0 ? static_cast<size_t>(size) : std::size_t{0}))));
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock.descriptor_, 0) != 0) return Failed(path, "ftruncate", errno);
  TRY(WriteAll(lock.descriptor_, path, pid));
  return lock;
}

}  // namespace mssql_cdc::runtime
