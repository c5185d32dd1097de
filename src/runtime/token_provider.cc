#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/text.h"
#include "runtime/files.h"
#include "runtime/token_source.h"

extern char** environ;

namespace mssql_cdc::runtime {
namespace {

constexpr std::size_t kTokenSizeBytesMax = 64u << 10;

Error Refused(const char* provider, std::string reason) {
  return Error(ErrorId::kTokenRefused)
      .With("provider", provider)
      .With("reason", std::move(reason));
}
Error Unavailable(const char* provider, std::string reason) {
  return Error(ErrorId::kTokenUnavailable)
      .With("provider", provider)
      .With("reason", std::move(reason));
}

Result<Secret> TokenIn(const char* provider, std::string text) {
  Secret whole(std::move(text));
  const std::string_view token = Trim(whole.Reveal());
  if (token.empty()) return Refused(provider, "it gave no token");
  if (token.find_first_of(" \t\r\n{\"") != std::string_view::npos) {
    return Refused(provider, "it gave something else than one token");
  }
  return Secret(std::string(token));
}

class FileTokens final : public TokenSource {
 public:
  explicit FileTokens(std::string path) : path_(std::move(path)) {}
  Result<Secret> Get(std::int64_t) override {
    TRY_ASSIGN(std::optional<std::string> text, ReadFileIfThere(path_));
    if (!text)
      return Refused("tokenProvider", "there is no such file").With("path", path_);
    return TokenIn("tokenProvider", std::move(*text));
  }

 private:
  std::string path_;
};

// A time limit that began when it was made; 0: none.
class Limit {
 public:
  Limit(std::int64_t limit_ms, Clock& clock)
      : clock_(clock),
        is_there_(limit_ms != 0),
        deadline_ns_(clock.MonotonicNs() + limit_ms * 1'000'000) {}

  // Until it is reached, 0 from then on; -1 without one.
  std::int64_t LeftMs() const {
    if (!is_there_) return -1;
    return std::max<std::int64_t>(0, (deadline_ns_ - clock_.MonotonicNs()) / 1'000'000);
  }

 private:
  Clock& clock_;
  bool is_there_;
  std::int64_t deadline_ns_;
};

// A shell that runs a command, its standard output in a pipe.
class Shell {
 public:
  static Result<Shell> Start(const std::string& command) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      return Unavailable("tokenProvider", "no pipe can be made");
    }
    Shell shell;
    shell.output_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    // What it says there could hold a secret.
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // A group of its own, so that all of it can be ended; no signal blocked.
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    // This program ignores SIGPIPE; a pipeline of commands needs it.
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETPGROUP |
                                              POSIX_SPAWN_SETSIGDEF);
    std::array<char*, 4> words = {const_cast<char*>("sh"), const_cast<char*>("-c"),
                                  const_cast<char*>(command.c_str()), nullptr};
    const int failed = ::posix_spawn(&shell.pid_, "/bin/sh", &actions, &attributes,
                                     words.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    ::close(ends[1]);
    if (failed != 0) {
      shell.pid_ = 0;
      return Unavailable("tokenProvider", "the shell cannot be started");
    }
    return shell;
  }
  Shell(Shell&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), output_(std::exchange(other.output_, -1)) {}
  Shell& operator=(Shell&&) = delete;
  ~Shell() {
    if (output_ >= 0) ::close(output_);
    if (pid_ == 0) return;
    ::kill(-pid_, SIGKILL);
    Wait();
  }

  // What it prints until it closes its output. Errors: those of TokenSource.
  Result<std::string> ReadAll(const Limit& limit) {
    std::string text;
    std::array<char, 4096> block{};
    while (true) {
      pollfd waits{output_, POLLIN, 0};
      const int ready = ::poll(&waits, 1, static_cast<int>(limit.LeftMs()));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return TooLong();
      const ssize_t count = ::read(output_, block.data(), block.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return text;
      text.append(block.data(), static_cast<std::size_t>(count));
      if (text.size() > kTokenSizeBytesMax) {
        return Refused("tokenProvider", "the command prints more than a token");
      }
    }
  }
  // Its exit code, or 128 and the signal that ended it. It may have closed its output
  // and go on.
  Result<int> ExitCode(const Limit& limit, Clock& clock) {
    constexpr std::int64_t kSliceMs = 5;
    int status = 0;
    while (true) {
      const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
      if (ended < 0 && errno == EINTR) continue;
      if (ended != 0) break;
      if (limit.LeftMs() == 0) return TooLong();
      clock.SleepMs(kSliceMs);
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  static Error TooLong() {
    return Unavailable("tokenProvider", "the command takes too long");
  }
  void Wait() {
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  Shell() = default;
  pid_t pid_ = 0;
  int output_ = -1;
};

class CommandTokens final : public TokenSource {
 public:
  CommandTokens(std::string command, Clock& clock)
      : command_(std::move(command)), clock_(clock) {}
  Result<Secret> Get(std::int64_t limit_ms) override {
    const Limit limit(limit_ms, clock_);
    TRY_ASSIGN(Shell shell, Shell::Start(command_));
    TRY_ASSIGN(std::string text, shell.ReadAll(limit));
    TRY_ASSIGN(const int code, shell.ExitCode(limit, clock_));
    if (code == 126 || code == 127) {
      return Refused("tokenProvider", "the command was not found");
    }
    if (code != 0) {
      return Unavailable("tokenProvider",
                         "the command ended with " + std::to_string(code));
    }
    return TokenIn("tokenProvider", std::move(text));
  }

 private:
  std::string command_;
  Clock& clock_;
};

}  // namespace

Result<std::shared_ptr<TokenSource>> MakeTokenProvider(std::string_view option,
                                                       Clock& clock) {
  constexpr std::string_view kCommand = "command:";
  constexpr std::string_view kFile = "file:";
  if (option.starts_with(kCommand) && !Trim(option.substr(kCommand.size())).empty()) {
    return std::shared_ptr<TokenSource>(std::make_shared<CommandTokens>(
        std::string(option.substr(kCommand.size())), clock));
  }
  if (option.starts_with(kFile) && !Trim(option.substr(kFile.size())).empty()) {
    return std::shared_ptr<TokenSource>(
        std::make_shared<FileTokens>(std::string(Trim(option.substr(kFile.size())))));
  }
  return Error(ErrorId::kOptionInvalid)
      .With("option", "tokenProvider")
      .With("allowed",
            "command:a shell command, or file:a path; a Python function's "
            "name only on Spark");
}

}  // namespace mssql_cdc::runtime
