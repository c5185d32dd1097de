#include "cdc/output_columns.h"

namespace mssql_cdc::cdc {

using columns::Field;
using columns::Kind;

std::vector<Field> MetadataColumns(bool command_id) {
  std::vector<Field> fields = {
      {"_capture_instance", {Kind::kUtf8}, true, ""},
      {"_start_lsn", {Kind::kUtf8}, true, ""},
      {"_seqval", {Kind::kUtf8}, true, ""},
      {"_operation", {Kind::kInt32}, true, ""},
  };
  if (command_id) fields.push_back({"_command_id", {Kind::kInt32}, true, ""});
  fields.push_back({"_commit_ts", {Kind::kTimestampNtz}, true, ""});
  return fields;
}

std::vector<Field> SinkColumns() {
  return {
      {"_batch_id", {Kind::kInt32}, true, ""},
      {"_snapshot", {Kind::kUtf8}, true, ""},
      {"_chunk", {Kind::kInt32}, true, ""},
  };
}

columns::Schema OutputSchema(const std::vector<Field>& captured, bool command_id) {
  columns::Schema schema{MetadataColumns(command_id)};
  schema.fields.insert(schema.fields.end(), captured.begin(), captured.end());
  for (Field& field : SinkColumns()) schema.fields.push_back(std::move(field));
  return schema;
}

}  // namespace mssql_cdc::cdc
