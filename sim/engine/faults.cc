// Errors that a test asks for, with the severity and text SQL Server gives them.

#include <string>
#include <string_view>

#include "sim/engine/server.h"
#include "sim/engine/stored_table.h"

namespace mssql_cdc::sim {
namespace {

struct FaultRow {
  std::int32_t number;
  std::uint8_t severity;
  std::uint8_t state;
  std::string_view text;
};

// Facts 1.11; severities and texts as sys.messages has them.
constexpr FaultRow kFaults[] = {
    {1204, 19, 2,
     "The instance of the SQL Server Database Engine cannot obtain a LOCK resource at "
     "this time. Rerun your statement when there are fewer active users."},
    {1205, 13, 45,
     "Transaction (Process ID 51) was deadlocked on lock resources with another "
     "process "
     "and has been chosen as the deadlock victim. Rerun the transaction."},
    {1222, 16, 45, "Lock request time out period exceeded."},
    {983, 14, 1,
     "Unable to access availability database because the database replica is not in "
     "the "
     "PRIMARY or SECONDARY role."},
    {4060, 11, 1, "Cannot open database requested by the login. The login failed."},
    {4221, 16, 1,
     "Login to read-secondary failed due to long wait on "
     "'HADR_DATABASE_WAIT_FOR_TRANSITION_TO_VERSIONING'."},
    {22859, 16, 1,
     "Log Scan process failed in processing log records. Refer to previous errors in "
     "the current session to identify the cause and correct any associated problems."},
    {10928, 20, 1,
     "Resource ID: 1. The request limit for the database is 30 and has been reached."},
    {10929, 16, 1,
     "Resource ID: 1. The server is currently too busy to support requests for this "
     "database."},
    {18456, 14, 1, "Login failed."},
    {40143, 16, 1,
     "The service has encountered an error processing your request. Please try again."},
    {40197, 16, 1,
     "The service has encountered an error processing your request. Please try again."},
    {40501, 20, 1,
     "The service is currently busy. Retry the request after 10 seconds."},
    {40540, 16, 1,
     "The service has encountered an error processing your request. Please try again."},
    {40613, 17, 1,
     "Database is not currently available. Please retry the connection later. If the "
     "problem persists, contact customer support."},
    {42108, 16, 1,
     "Can not connect to the SQL pool since it is paused. Please resume the SQL pool "
     "and try again."},
    {42109, 16, 1, "The SQL pool is warming up. Please try again."},
    {49918, 16, 1, "Cannot process request. Not enough resources to process request."},
    {49919, 16, 1,
     "Cannot process create or update request. Too many create or update operations in "
     "progress."},
    {49920, 16, 1, "Cannot process request. Too many operations in progress."},
};

}  // namespace

Message FaultMessage(std::int32_t number) {
  Message message;
  message.number = number;
  message.severity = 16;
  message.state = 1;
  message.text = "An error was asked for.";
  for (const FaultRow& row : kFaults) {
    if (row.number != number) continue;
    message.severity = row.severity;
    message.state = row.state;
    message.text = row.text;
  }
  return message;
}

void RaiseFault(std::int32_t number) { throw SqlError{FaultMessage(number)}; }

}  // namespace mssql_cdc::sim
