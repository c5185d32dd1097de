// What the binary shows: lines for people, or one JSON object a line.

#pragma once

#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace mssql_cdc::cli {

enum class LogForm : std::uint8_t { kText, kJson };

// The exit code for the remedy of `error`: 75 retry, 78 reconfigure, 65 reseed, 70
// report (the names sysexits.h gives them: EX_TEMPFAIL, EX_CONFIG, EX_DATAERR,
// EX_SOFTWARE).
int ExitCodeOf(const Error& error);
inline constexpr int kExitUsage = 64;

// Writes to stdout (events) and stderr (warnings and errors), one whole line a call,
// from any thread.
class Output {
 public:
  Output(LogForm form, Clock& clock) : form_(form), clock_(clock) {}

  struct Field {
    std::string name;
    std::string value;
    bool quoted = true;  // In JSON: text, or a number, true, false, null as it is.
  };

  // `text` for people; `event` and `fields` for machines. `stream` may be empty.
  void Event(std::string_view stream, std::string_view event, const std::string& text,
             const std::vector<Field>& fields);
  void Warning(std::string_view stream, const std::string& text);
  // Code, what happened, facts, remedy and where the cure is written.
  void Failure(std::string_view stream, const Error& error);

  LogForm form() const { return form_; }

  // Calls `tell` once when a line cannot be written since the reader is gone. Requires
  // that SIGPIPE is ignored. Before the first line from another thread.
  void AtClosedPipe(std::function<void()> tell) { closed_pipe_ = std::move(tell); }

 private:
  void Line(std::FILE* to, const std::string& line);

  LogForm form_;
  Clock& clock_;
  std::mutex mutex_;
  std::function<void()> closed_pipe_;
};

// 1234567 as "1,234,567".
std::string Grouped(std::int64_t number);
// "850 ms", "12.3 s", "4 min 05 s".
std::string Duration(std::int64_t duration_ms);
// "312 B", "4.5 kB", "12.0 MB".
std::string SizeText(std::int64_t size_bytes);

}  // namespace mssql_cdc::cli
