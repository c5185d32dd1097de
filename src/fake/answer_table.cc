#include "fake/answer_table.h"

#include <memory>
#include <string>
#include <utility>

#include "columns/cast.h"
#include "columns/value_text.h"

namespace mssql_cdc::fake {
namespace {

using columns::Kind;

// Arrow takes no text without a zone for an instant; the fake's writer may leave it
// out, and means UTC.
std::string TextOf(const nlohmann::json& value, Kind kind) {
  std::string text =
      value.is_string()
          ? value.get<std::string>()
          : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (kind == Kind::kTimestampUtc &&
      columns::ParseTimestampText(text, columns::ZoneOffset::kForbidden)) {
    text += 'Z';
  }
  return text;
}

}  // namespace

AnswerTable::AnswerTable(std::vector<columns::Field> own,
                         std::vector<columns::Field> values, std::int64_t row_count_max)
    : own_count_(own.size()), row_count_max_(row_count_max) {
  auto schema = std::make_shared<columns::Schema>();
  for (columns::Field& field : own) {
    builders_.emplace_back(field.type, 16);
    schema->fields.push_back(std::move(field));
  }
  for (columns::Field& field : values) {
    builders_.emplace_back(columns::Type{Kind::kUtf8}, 16);
    schema->fields.push_back(std::move(field));
  }
  schema_ = std::move(schema);
}

columns::ColumnBuilder& AnswerTable::Next() { return builders_[next_]; }

void AnswerTable::EndCell() {
  next_ = (next_ + 1) % builders_.size();
  if (next_ == 0 && builders_[0].row_count() >= row_count_max_) EndBatch();
}

AnswerTable& AnswerTable::Null() {
  Next().AppendNull();
  EndCell();
  return *this;
}
AnswerTable& AnswerTable::Text(std::string_view text) {
  Next().AppendBytes(text);
  EndCell();
  return *this;
}
AnswerTable& AnswerTable::LsnOf(const cdc::Lsn& lsn) {
  return Text({reinterpret_cast<const char*>(lsn.bytes.data()), lsn.bytes.size()});
}
AnswerTable& AnswerTable::Int(std::int32_t number) {
  Next().AppendInt32(number);
  EndCell();
  return *this;
}
AnswerTable& AnswerTable::Long(std::int64_t number) {
  Next().AppendInt64(number);
  EndCell();
  return *this;
}
AnswerTable& AnswerTable::Bool(bool value) {
  Next().AppendBool(value);
  EndCell();
  return *this;
}
AnswerTable& AnswerTable::Value(const nlohmann::json& value) {
  if (value.is_null()) return Null();
  return Text(TextOf(value, schema_->fields[next_].type.kind));
}

void AnswerTable::EndBatch() {
  columns::RecordBatch batch{schema_, builders_[0].row_count(), {}};
  for (std::size_t i = 0; i < builders_.size(); ++i) {
    columns::Column column = builders_[i].Finish();
    const columns::Field& field = schema_->fields[i];
    if (i >= own_count_ && field.type.kind != Kind::kUtf8) {
      columns::CastOutcome cast = columns::Cast(column, field.type);
      if (cast.failed_row && !failure_) {
        failure_ = Error(ErrorId::kFileRefused)
                       .With("reason", "a value of the fake does not fit its column")
                       .With("column", field.name)
                       .With("type", columns::DeltaTypeName(field.type));
      }
      column = std::move(cast.column);
    }
    batch.columns.push_back(std::make_shared<const columns::Column>(std::move(column)));
  }
  batches_.push_back(std::move(batch));
}

Result<ResultSet> AnswerTable::Build() {
  if (builders_[0].row_count() != 0) EndBatch();
  if (failure_) return *failure_;
  return ResultSet{schema_, std::move(batches_)};
}

}  // namespace mssql_cdc::fake
