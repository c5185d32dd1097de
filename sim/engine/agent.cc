// SQL Server Agent as far as CDC needs it: the capture and the cleanup job of each
// database, at the server's clock (facts 1.7, 1.8).

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/cdc.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;
constexpr std::int64_t kHourUs = 3'600 * kSecondUs;
constexpr std::int64_t kDayUs = 24 * kHourUs;
constexpr std::int64_t kAzureCaptureUs = 20 * kSecondUs;
constexpr std::int64_t kCleanupHour = 2;  // Of the server's local day.

std::int64_t CaptureIntervalUs(const Server& server, const JobMeta& job) {
  if (server.options().azure && Does(Behaviour::kAzureScheduler)) {
    return kAzureCaptureUs;
  }
  if (!Does(Behaviour::kPollingInterval)) return 0;
  constexpr std::int64_t kDayS = kDayUs / kSecondUs;
  return std::clamp<std::int64_t>(job.pollinginterval, 0, kDayS) * kSecondUs;
}

// When cleanup was last due, in microseconds since 1970, UTC.
std::int64_t CleanupDueUs(Server& server) {
  const std::int64_t now = server.NowUtcUs();
  if (server.options().azure) return now - now % kHourUs;
  const std::int64_t local = now + server.Now().offset_minutes * 60 * kSecondUs;
  std::int64_t due = local - local % kDayUs + kCleanupHour * kHourUs;
  if (due > local) due -= kDayUs;
  return due - (local - now);
}

void RunCapture(Server& server, const std::shared_ptr<Database>& database,
                const JobMeta& job) {
  const std::int64_t now = server.NowUtcUs();
  if (now - database->last_capture_us < CaptureIntervalUs(server, job)) return;
  database->last_capture_us = now;
  Capture(server, database, job.maxtrans, job.maxscans);
}

void RunCleanup(Server& server, const std::shared_ptr<Database>& database,
                const JobMeta& job) {
  const std::int64_t due = CleanupDueUs(server);
  const std::int64_t last = database->last_cleanup_us;
  database->last_cleanup_us = server.NowUtcUs();
  // The first look only sets the time from which it counts.
  if (last == 0 || last >= due) return;
  const std::optional<Lsn> mark = RetentionMark(server, database, job.retention);
  if (mark) MoveLowWaterMark(server, database, *mark, std::nullopt);
  DeleteBelowLowWaterMark(server, database, std::nullopt);
}

}  // namespace

const JobMeta* FindJob(const Catalog& catalog, std::string_view type) {
  for (const JobMeta& job : catalog.jobs) {
    if (EqualsIgnoringAsciiCase(job.type, type)) return &job;
  }
  return nullptr;
}

JobMeta* FindJob(Catalog& catalog, std::string_view type) {
  return const_cast<JobMeta*>(FindJob(std::as_const(catalog), type));
}

const JobMeta* RunningCaptureJob(const Server& server, const Catalog& catalog) {
  const bool stops = Does(Behaviour::kStoppedJobCapturesNothing);
  if (!catalog.cdc_enabled || (!server.agent_runs && stops)) return nullptr;
  const JobMeta* job = FindJob(catalog, "capture");
  return job != nullptr && job->stopped && stops ? nullptr : job;
}

void RunDueJobs(Server& server, const std::shared_ptr<Database>& database) {
  const CatalogPtr catalog = database->catalog();
  if (const JobMeta* capture = RunningCaptureJob(server, *catalog)) {
    RunCapture(server, database, *capture);
  }
  if (!catalog->cdc_enabled) return;
  if (!server.agent_runs && Does(Behaviour::kStoppedJobCapturesNothing)) return;
  const JobMeta* cleanup = FindJob(*catalog, "cleanup");
  if (cleanup != nullptr) RunCleanup(server, database, *cleanup);
}

}  // namespace mssql_cdc::sim
