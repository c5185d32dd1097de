#include "cli/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

extern char** environ;

namespace mssql_cdc::cli {
namespace {

Error Failed(const std::string& program, int code) {
  return Error(ErrorId::kFileFailed)
      .With("file", program)
      .With("problem", strerrordesc_np(code));
}

std::vector<std::string> Environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) all.push_back(std::move(text));
  }
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The child's signals as a shell would give them: nothing blocked, defaults restored.
void ResetSignals(posix_spawnattr_t* attributes) {
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&usual, signal);
  posix_spawnattr_setsigmask(attributes, &none);
  posix_spawnattr_setsigdefault(attributes, &usual);
  posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

}  // namespace

Result<std::unique_ptr<Child>> Child::Start(
    const std::vector<std::string>& arguments,
    const std::map<std::string, std::string>& environment,
    std::function<void(const std::string&)> on_line) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failed(arguments[0], errno);
  std::vector<std::string> argument_texts = arguments;
  std::vector<std::string> environment_texts = Environment(environment);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  ResetSignals(&attributes);
  auto child = std::unique_ptr<Child>(new Child);
  const int failed =
      posix_spawn(&child->pid_, arguments[0].c_str(), &actions, &attributes,
                  Pointers(argument_texts).data(), Pointers(environment_texts).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    child->ended_ = failed;
    return Failed(arguments[0], failed);
  }
  child->output_fd_ = ends[0];
  child->on_line_ = std::move(on_line);
  child->reader_ = std::thread([raw = child.get()] { raw->ReadLines(); });
  return child;
}

Child::~Child() {
  if (!ended_) {
    Signal(SIGKILL);
    Wait();
  }
  if (output_fd_ >= 0) close(output_fd_);
}

void Child::ReadLines() {
  std::string pending;
  char block[4096];
  for (;;) {
    const ssize_t size = read(output_fd_, block, sizeof block);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    pending.append(block, static_cast<std::size_t>(size));
    for (std::size_t end; (end = pending.find('\n')) != std::string::npos;) {
      on_line_(pending.substr(0, end));
      pending.erase(0, end + 1);
    }
  }
  if (!pending.empty()) on_line_(pending);
}

void Child::Signal(int signal) {
  if (!ended_) kill(pid_, signal);
}

int Child::Wait() {
  if (ended_) return *ended_;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  ended_ = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  if (reader_.joinable()) reader_.join();
  return *ended_;
}

}  // namespace mssql_cdc::cli
