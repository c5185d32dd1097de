// Many tables of one simulated server, each with a continuous stream in this process
// that shares sessions, permits and the poll.

#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "lake/memory_lake.h"
#include "runtime/change_watch.h"
#include "runtime/serialized_lake.h"
#include "runtime/stream.h"
#include "tests/model/source.h"

namespace mssql_cdc {

class ManyStreams {
 public:
  ManyStreams(const std::string& directory, int table_count, std::int64_t permit_count)
      : directory_(directory),
        source_(directory),
        dialer_(source_.MakeDialer()),
        sessions_(model::Source::Login(), *dialer_, clock_),
        pool_(sessions_),
        watch_(pool_, clock_),
        permits_(permit_count),
        lake_(memory_) {
    for (int i = 0; i < table_count; ++i) {
      const std::string table = "t" + std::to_string(i);
      source_.Sql("CREATE TABLE dbo." + table + " (id int NOT NULL PRIMARY KEY)");
      source_.Sql("EXEC sys.sp_cdc_enable_table N'dbo', N'" + table +
                  "', @role_name = NULL");
    }
    source_.CaptureAll();
    endings_.resize(static_cast<std::size_t>(table_count));
  }
  ~ManyStreams() {
    StopAll();
    std::filesystem::remove_all(directory_);
  }

  void Start() {
    for (std::size_t i = 0; i < endings_.size(); ++i) {
      const std::string table = "t" + std::to_string(i);
      runtime::StreamConfig config;
      config.capture_instance = "dbo_" + table;
      config.target = config.target_location = table;
      config.app_id = table;
      config.checkpoint = directory_ + "/checkpoint_" + table;
      config.facts_table = config.facts_location = "facts";
      config.num_partitions = 1;
      config.retry_count_max = 0;
      runtime::StreamParts parts;
      parts.lake = &lake_;
      parts.clock = &clock_;
      parts.pool = &pool_;
      parts.watch = &watch_;
      parts.permits = &permits_;
      auto stream = runtime::Stream::Open(config, parts);
      if (!stream.ok()) throw model::Wrong{stream.error().Text()};
      streams_.push_back(std::move(stream).value());
      threads_.emplace_back([this, i] { endings_[i] = streams_[i]->Run(); });
    }
  }
  void StopAll() {
    for (const auto& stream : streams_) stream->Stop();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  // Until so many streams have nothing to do.
  void AwaitIdle(std::int64_t count) const {
    while (watch_.waiting_count() != count) std::this_thread::yield();
  }
  void Insert(int table, int id) {
    source_.Sql("INSERT dbo.t" + std::to_string(table) + " VALUES (" +
                std::to_string(id) + ")");
    source_.engine().AdvanceClock(1000);
    source_.CaptureAll();
  }
  std::int64_t RowCount(int table) {
    return lake_.RowCount("t" + std::to_string(table)).value();
  }

  model::Source& source() { return source_; }
  runtime::ChangeWatch& watch() { return watch_; }
  // Of a stream that has ended.
  const std::optional<Status>& ending(std::size_t table) const {
    return endings_[table];
  }

 private:
  std::string directory_;
  SystemClock clock_;
  model::Source source_;
  std::unique_ptr<net::Dialer> dialer_;
  runtime::ServerSessions sessions_;
  runtime::SessionPool pool_;
  runtime::ChangeWatch watch_;
  runtime::WorkPermits permits_;
  lake::MemoryLake memory_;
  runtime::SerializedLake lake_;
  std::vector<std::unique_ptr<runtime::Stream>> streams_;
  std::vector<std::thread> threads_;
  std::vector<std::optional<Status>> endings_;
};

}  // namespace mssql_cdc
