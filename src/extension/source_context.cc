#include "extension/source_context.h"

#include <utility>

#include "cdc/source_options.h"
#include "lake/memory_lake.h"

namespace mssql_cdc::extension {
namespace {

Status CheckBackend(cdc::Backend backend, const Access& access) {
  const bool is_own =
      backend == cdc::Backend::kNative || backend == cdc::Backend::kFake;
  if (is_own || access.connect) return Unit{};
  return Error(ErrorId::kOptionInvalid)
      .With("option", "backend")
      .With("allowed", "native, mssql-python, arrow-odbc, fake");
}

}  // namespace

SourceContext::SourceContext(runtime::StreamConfig config, Link& link, lake::Lake* lake)
    : config_(std::move(config)),
      link_(link),
      no_lake_(lake == nullptr ? std::make_unique<lake::MemoryLake>() : nullptr),
      run_{config_,    lake == nullptr ? *no_lake_ : *lake,
           link.clock, warnings_,
           *link.pool, stop_,
           {},         {}} {}

Result<std::unique_ptr<SourceContext>> SourceContext::Open(const Options& options,
                                                           const Access& access,
                                                           lake::Lake* lake) {
  TRY_ASSIGN(cdc::ParsedSourceOptions parsed, cdc::ParseSourceOptions(options));
  TRY(CheckBackend(parsed.options.backend, access));
  TRY_ASSIGN(Link* const link, LinkOf(options, access));
  runtime::StreamConfig config;
  static_cast<cdc::SourceOptions&>(config) = std::move(parsed.options);
  std::unique_ptr<SourceContext> context(
      new SourceContext(std::move(config), *link, lake));
  for (const auto& [name, nearest] : parsed.others) {
    context->warnings_.OnWarning("option " + name + " is not known and ignored" +
                                 (nearest.empty() ? "" : ": is it " + nearest + "?"));
  }
  return context;
}

Status SourceContext::KnowSource(sqlserver::Session& session,
                                 const std::optional<cdc::SourceMemory>& memory) {
  if (knows_source_) return Unit{};
  TRY_ASSIGN(run_.source, runtime::AskSource(session, config_, memory));
  knows_source_ = true;
  return Unit{};
}

}  // namespace mssql_cdc::extension
