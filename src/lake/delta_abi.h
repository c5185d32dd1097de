// The C functions of rust/delta: a Delta table through delta_kernel.
//
// Every function returns 0 or one of the codes below; with a code it sets `failure` to
// a JSON text {"detail": text, "column": text or null}. Texts handed out, failures too,
// are freed with mssql_cdc_delta_free. Nothing is thrown. A column is
// {"name", "type", "nullable", "comment"}, its type by Delta's name ("decimal(18,4)").

#pragma once

#include <cstdint>

#include "columns/arrow_abi.h"

extern "C" {

enum MssqlCdcDeltaCode : int32_t {
  MSSQL_CDC_DELTA_CONFLICT = 1,         // Other writers kept committing first.
  MSSQL_CDC_DELTA_UNREACHABLE = 2,      // The storage, or there is no table.
  MSSQL_CDC_DELTA_UNSUPPORTED = 3,      // A feature of the table, or one it lacks.
  MSSQL_CDC_DELTA_SCHEMA_MISMATCH = 4,  // Of rows and table.
  MSSQL_CDC_DELTA_FAILED = 5,           // Anything else, such as a damaged log.
  MSSQL_CDC_DELTA_SOURCE = 6,           // The caller's stream reported a failure.
  MSSQL_CDC_DELTA_CANCELLED = 7,        // Another source of the append failed.
  MSSQL_CDC_DELTA_INTERNAL = 8,         // A panic, or a call against the contract.
  MSSQL_CDC_DELTA_REFUSED = 9,          // The storage: no right, no folder, read-only.
};

// One location, with what was learned about it cached. One thread at a time, but for
// mssql_cdc_delta_append_drain.
struct MssqlCdcDeltaTable;
struct MssqlCdcDeltaAppend;

int32_t mssql_cdc_delta_open(const char* location, MssqlCdcDeltaTable** out,
                             char** failure);
void mssql_cdc_delta_close(MssqlCdcDeltaTable* table);
void mssql_cdc_delta_free(char* text);

// {"version", "fields": [column], "properties": {key: text}}, or nullptr without a
// table.
int32_t mssql_cdc_delta_state(MssqlCdcDeltaTable* table, char** out, char** failure);
int32_t mssql_cdc_delta_last_txn(MssqlCdcDeltaTable* table, const char* app_id,
                                 bool* has_txn, int64_t* version, char** failure);

// `spec`: {"fields": [column], "description", "properties": {key: text}}. One commit
// without rows, version 0. A table that is there stays as it is.
int32_t mssql_cdc_delta_create(MssqlCdcDeltaTable* table, const char* spec,
                               char** failure);
// `spec`: {"fields": [column], "properties": {key: text}}. What is there already is
// left out; nothing left makes no commit.
int32_t mssql_cdc_delta_alter(MssqlCdcDeltaTable* table, const char* spec,
                              char** failure);

// An append: begin, drain each source, commit, end. End comes last in any case; without
// a commit it removes the data files.
//
// `spec`: {"app_id": text or null, "txn_version", "merge_schema", "fields": [column]},
// fields being those of all sources. Sets `out` to nullptr and `version` to the newest
// version when the txn is there already.
int32_t mssql_cdc_delta_append_begin(MssqlCdcDeltaTable* table, const char* spec,
                                     MssqlCdcDeltaAppend** out, int64_t* version,
                                     char** failure);
// Writes all rows of `stream`, which it releases. Several threads may drain at once.
int32_t mssql_cdc_delta_append_drain(const MssqlCdcDeltaAppend* append,
                                     struct ArrowArrayStream* stream,
                                     uint32_t source_index, char** failure);

enum MssqlCdcDeltaOutcome : int32_t {
  MSSQL_CDC_DELTA_COMMITTED = 0,
  MSSQL_CDC_DELTA_ALREADY_THERE = 1,
  MSSQL_CDC_DELTA_NO_ROWS = 2,
};

struct MssqlCdcDeltaDone {
  int32_t outcome;
  int64_t version;
  int64_t row_count;
  int64_t size_bytes;
};

// `user_metadata` may be nullptr.
int32_t mssql_cdc_delta_append_commit(MssqlCdcDeltaAppend* append,
                                      MssqlCdcDeltaTable* table,
                                      const char* user_metadata, MssqlCdcDeltaDone* out,
                                      char** failure);
void mssql_cdc_delta_append_end(MssqlCdcDeltaAppend* append);

// [{"version", "timestamp_ms", "operation", "user_metadata": text or null}], in order.
int32_t mssql_cdc_delta_history(MssqlCdcDeltaTable* table, int64_t since_version,
                                char** out, char** failure);
// `spec`: {"columns": [name], "conditions": [{"column", "op": "equal" | "above" |
// "at_least" | "number" | "null" | "not_null", "text", "number"}], "version": number or
// null}; no columns: all. The stream may be pulled by any one thread
// and outlive the table.
int32_t mssql_cdc_delta_read(MssqlCdcDeltaTable* table, const char* spec,
                             struct ArrowArrayStream* out, char** failure);
// A change of rows is an append's handle too: sources are drained into it, and end
// comes last.
//
// `spec`: {"kind": "merge" | "optimize", "fields": [column]}. `files`: [{"row_count":
// number or null, "removed_count", "size_bytes"}] of the version.
int32_t mssql_cdc_delta_change_begin(MssqlCdcDeltaTable* table, const char* spec,
                                     MssqlCdcDeltaAppend** out, int64_t* version,
                                     char** files, char** failure);
// `spec`: {"columns": [name], "files": [number] or null, "near": {"column", "ranges":
// [[low, high]]} or null}. The stream has _file and _row last, and may outlive the
// change.
int32_t mssql_cdc_delta_change_probe(MssqlCdcDeltaAppend* change, const char* spec,
                                     struct ArrowArrayStream* out, char** failure);
// May be called while a source is being drained, by that source.
int32_t mssql_cdc_delta_change_remove(const MssqlCdcDeltaAppend* change, int32_t file,
                                      const int64_t* rows, uint64_t count,
                                      char** failure);

struct MssqlCdcDeltaChanged {
  bool is_committed;
  int64_t version;
  int64_t added_count;
  int64_t removed_count;
  int64_t rewritten_row_count;
  int64_t size_bytes;
};

int32_t mssql_cdc_delta_change_commit(MssqlCdcDeltaAppend* change,
                                      MssqlCdcDeltaTable* table,
                                      const char* user_metadata,
                                      MssqlCdcDeltaChanged* out, char** failure);
int32_t mssql_cdc_delta_enable_vectors(MssqlCdcDeltaTable* table, char** failure);

int32_t mssql_cdc_delta_row_count(MssqlCdcDeltaTable* table, int64_t* out,
                                  char** failure);

}  // extern "C"
