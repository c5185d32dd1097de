// The simulator with many change rows, for `./dev bench serve`: a table of the shape W1
// (bench/shapes.h) is tracked and its change table filled as if so many rows had been
// inserted in so many commits. Arguments: state directory, rows, commits. Prints
// `listening on 127.0.0.1:PORT` and serves until standard input ends.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/dice.h"
#include "cli/simulator_host.h"

namespace mssql_cdc {
namespace {

constexpr char kDatabase[] = "bench";
constexpr std::int64_t kTicksPerDay = 864'000'000'000;
constexpr std::int32_t kDaysTo2020 = 737'424;  // From 0001-01-01.

sim::Text Letters(Dice& dice, std::uint64_t average) {
  sim::Text text;
  const std::uint64_t length = average / 2 + dice.Below(average + 1);
  for (std::uint64_t i = 0; i < length; ++i) {
    text.push_back(static_cast<char16_t>(u'a' + dice.Below(26)));
  }
  return text;
}

// Column `column` of the row with this id.
sim::Value ValueOf(Dice& dice, std::int64_t id, std::size_t column) {
  sim::Value value;
  switch (column) {
    case 0:
      value.held = id;
      break;
    case 1:
      value.held = static_cast<std::int64_t>(dice.Below(1'000'000));
      break;
    case 2:
      value.held = static_cast<std::int64_t>(dice.Below(12));
      break;
    case 3:
      value.held = sim::Decimal{static_cast<std::int64_t>(dice.Below(100'000'000)), 4};
      break;
    case 4:
      value.held = Letters(dice, 16);
      break;
    case 5:
      value.held =
          sim::DateTimeValue{kDaysTo2020 + static_cast<std::int32_t>(dice.Below(2000)),
                             static_cast<std::int64_t>(dice.Below(kTicksPerDay)), 0};
      break;
    case 6:
      value.held = static_cast<std::int64_t>(dice.Below(2));
      break;
    default:
      value.held = Letters(dice, 10);
  }
  return value;
}

Status Fill(cli::SimulatorHost& host, std::int64_t row_count,
            std::int64_t commit_count) {
  TRY(host.shell->RunScript(
      "CREATE DATABASE bench\nGO\nUSE bench\nGO\nEXEC sys.sp_cdc_enable_db\nGO\n"
      "CREATE TABLE dbo.W1 (id bigint NOT NULL PRIMARY KEY, customer_id int, "
      "status_id int, amount decimal(18,4), name nvarchar(50), updated_at "
      "datetime2(7), is_active bit, region nvarchar(32))\nGO\n"
      "EXEC sys.sp_cdc_enable_table N'dbo', N'W1', @role_name = NULL\nGO\n"
      "EXEC sys.sp_cdc_scan\nGO\n"));
  Dice dice(20'260'101);
  std::int64_t done = 0;
  for (std::int64_t commit = 1; commit <= commit_count; ++commit) {
    const std::int64_t count = row_count * commit / commit_count - done;
    TRY(host.engine->BulkInsert(kDatabase, "dbo.W1", count,
                                {.source = false, .changes = true},
                                [&](std::int64_t row, std::size_t column) {
                                  return ValueOf(dice, done + row + 1, column);
                                }));
    done += count;
  }
  return Unit{};
}

int Main(const char* state_dir, std::int64_t row_count, std::int64_t commit_count) {
  cli::HostOptions options;
  options.state_dir = state_dir;
  options.password = Secret("Serve-1");
  auto host = cli::SimulatorHost::Start(options);
  Status filled =
      host.ok() ? Fill(host.value(), row_count, commit_count) : Status(host.error());
  if (!filled.ok()) {
    std::fprintf(stderr, "%s\n", filled.error().Text().c_str());
    return 1;
  }
  std::printf("listening on 127.0.0.1:%u\n",
              static_cast<unsigned>(host.value().server->port()));
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  host.value().server->Stop();
  return 0;
}

}  // namespace
}  // namespace mssql_cdc

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "change_server STATE_DIR ROWS COMMITS\n");
    return 2;
  }
  return mssql_cdc::Main(argv[1], std::atoll(argv[2]), std::atoll(argv[3]));
}
