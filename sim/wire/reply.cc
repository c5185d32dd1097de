#include "sim/wire/reply.h"

#include <algorithm>

#include "base/text.h"

namespace mssql_cdc::sim::wire {
namespace {

constexpr std::uint16_t kFlagIdentity = 0x0010;
constexpr std::uint16_t kFlagComputed = 0x0020;
constexpr std::int32_t kDatabaseContextNumber = 5701;

}  // namespace

Reply::Reply(PacketWriter& packets, const Dialect& dialect, std::string server_name,
             const std::atomic<bool>& stop)
    : packets_(packets),
      dialect_(dialect),
      server_name_(std::move(server_name)),
      stop_(stop),
      out_([this](std::string_view bytes) { packets_.Append(bytes); }) {}

void Reply::StartBatch() {
  in_call_ = false;
  last_error_ = 0;
  error_since_done_ = false;
  pending_.reset();
  columns_.clear();
}

void Reply::StartCall(Status status) {
  StartBatch();
  in_call_ = true;
  status_kind_ = status;
  return_status_.reset();
  return_values_.clear();
  parameters_.clear();
}

std::uint16_t Reply::StatusBits(bool with_error) const {
  return static_cast<std::uint16_t>((with_error ? tds::kDoneError : 0) |
                                    (in_transaction_ ? tds::kDoneInTransaction : 0));
}

void Reply::Write(const Done& done) {
  WriteDone(out_, done.token, done.status, done.command, done.row_count,
            dialect_.version);
}

// Another token follows, so the DONE that waits is not the last one.
void Reply::FlushDone() {
  context_message_sent_ = false;
  if (!pending_) return;
  pending_->status |= tds::kDoneMore;
  Write(*pending_);
  pending_.reset();
}

// The engine knows a new database before or after it says so; a client must know its
// collation before the next column of it.
void Reply::TellCollation() {
  if (session_ == nullptr || session_->collation() == collation_name_) return;
  collation_name_ = session_->collation();
  dialect_.collation = FindCollation(collation_name_).value_or(kDefaultCollation);
  if (dialect_.version == TdsVersion::k70) return;
  FlushDone();
  WriteCollationChange(out_, dialect_.collation.bytes);
}

void Reply::FinishBatch() {
  TellCollation();
  if (!pending_ || error_since_done_) {
    FlushDone();
    Write({tds::TokenId::kDone, StatusBits(error_since_done_), 0, 0});
  } else {
    Write(*pending_);
    pending_.reset();
  }
  Flush();
}

void Reply::FinishCall(bool more) {
  TellCollation();
  const bool failed = last_error_ != 0;
  if (status_kind_ == Status::kOfErrors) return_status_ = last_error_;
  if (!return_status_ && !failed) return_status_ = 0;
  if (return_status_) WriteReturnStatus(out_, *return_status_);
  for (const std::string& token : return_values_) out_.Raw(token);
  auto status = StatusBits(failed);
  if (more) status |= tds::kDoneMore;
  Write({tds::TokenId::kDoneProc, status, 0, 0});
  Flush();
  in_call_ = false;
}

void Reply::EndMessage() {
  Flush();
  packets_.EndMessage();
}

// Clients read on to the end of the interrupted reply and expect the acknowledgement in
// a message behind it (facts of foreign drivers: JDBC and tedious wait for ever else).
void Reply::AcknowledgeAttention() {
  Write({tds::TokenId::kDone,
         static_cast<std::uint16_t>(tds::kDoneAttention | StatusBits(false)), 0, 0});
  EndMessage();
}

void Reply::AcknowledgeReset() { WriteResetAck(out_); }

bool Reply::Break(const std::string& why) {
  Message message;
  message.number = 50000;
  message.severity = 20;  // The client sees that the connection ends.
  message.text = "simulator: " + why;
  WriteMessage(out_, message, server_name_, dialect_.version);
  last_error_ = message.number;
  error_since_done_ = true;
  broken_ = true;
  return false;
}

bool Reply::Columns(const std::vector<ResultColumn>& columns) {
  if (!goes_on()) return false;
  TellCollation();
  FlushDone();
  columns_.clear();
  columns_.reserve(columns.size());
  out_.U8(static_cast<std::uint8_t>(tds::TokenId::kColMetadata));
  out_.U16(static_cast<std::uint16_t>(columns.size()));
  for (const ResultColumn& column : columns) {
    columns_.emplace_back(column.type, column.nullable, dialect_);
    const int flags =
        (column.identity ? kFlagIdentity : 0) | (column.computed ? kFlagComputed : 0);
    columns_.back().WriteTypeInfo(out_, static_cast<std::uint16_t>(flags));
    if (columns_.back().has_table_name()) {
      if (dialect_.takes_max()) out_.U8(1);  // One part.
      out_.UsVarChar(u"t");
    }
    out_.BVarChar(Utf16(column.name));
  }
  return true;
}

// NULLs cost their own bytes in a ROW and one bit of every column in an NBCROW: the
// shorter of the two is sent, as SQL Server does.
bool Reply::WriteRow(const std::vector<Value>& values, ByteBuffer& out) {
  if (values.size() != columns_.size()) return Break("a row has not its columns");
  std::size_t null_size = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].IsNull()) {
      if (columns_[i].null_size_bytes() == 0) return Break("NULL in a NOT NULL column");
      null_size += columns_[i].null_size_bytes();
    } else if (!columns_[i].Fits(values[i])) {
      return Break("a value is not of its column's type: column " +
                   std::to_string(i + 1));
    }
  }
  const std::size_t bitmap_size = (values.size() + 7) / 8;
  const bool bitmap = dialect_.takes_null_bitmaps() && null_size > bitmap_size;
  out.U8(
      static_cast<std::uint8_t>(bitmap ? tds::TokenId::kNbcRow : tds::TokenId::kRow));
  if (bitmap) {
    for (std::size_t byte = 0; byte < bitmap_size; ++byte) {
      unsigned bits = 0;
      for (std::size_t i = byte * 8; i < std::min(values.size(), byte * 8 + 8); ++i) {
        if (values[i].IsNull()) bits |= 1u << (i % 8);
      }
      out.U8(static_cast<std::uint8_t>(bits));
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].IsNull()) {
      if (!bitmap) columns_[i].WriteNull(out);
    } else if (!columns_[i].WriteValue(values[i], out)) {
      // Half a row is out: nothing that follows could be understood.
      broken_ = true;
      return false;
    }
  }
  return true;
}

bool Reply::Row(const std::vector<Value>& values) {
  if (!goes_on() || !WriteRow(values, out_)) return false;
  out_.Raw(std::string_view());  // A chance to hand on what has gathered.
  return true;
}

std::optional<std::string> Reply::RowForm() const {
  std::string form = dialect_.takes_null_bitmaps() ? "b" : "r";
  for (const ColumnEncoder& column : columns_) form += column.Form();
  return form;
}

bool Reply::RowAsBytes(const std::vector<Value>& values, std::string& bytes) {
  if (!goes_on()) return false;
  row_.bytes().clear();
  if (!WriteRow(values, row_)) {
    // The message that says why is out; a row that broke halfway must not follow it.
    return false;
  }
  bytes += row_.bytes();
  out_.Raw(row_.bytes());
  return true;
}

bool Reply::RowBytes(std::string_view bytes) {
  if (!goes_on()) return false;
  Flush();
  packets_.AppendMany(bytes);
  return goes_on();
}

bool Reply::StatementDone(std::optional<std::uint64_t> row_count,
                          std::uint16_t command) {
  if (!goes_on()) return false;
  auto status = StatusBits(error_since_done_);
  if (row_count) status |= tds::kDoneCount;
  error_since_done_ = false;
  if (in_call_) {
    status |= tds::kDoneMore;
    Write({tds::TokenId::kDoneInProc, status, command, row_count.value_or(0)});
    return true;
  }
  // The statement that called a procedure ends with the procedure's DONEPROC.
  const bool closes_call = pending_ && pending_->token == tds::TokenId::kDoneProc;
  if (!closes_call) FlushDone();
  pending_ = {closes_call ? tds::TokenId::kDoneProc : tds::TokenId::kDone, status,
              command, row_count.value_or(0)};
  return true;
}

bool Reply::SendMessage(const Message& message) {
  if (!goes_on()) return false;
  if (message.number == kDatabaseContextNumber && context_message_sent_) return true;
  FlushDone();
  WriteMessage(out_, message, server_name_, dialect_.version);
  if (message.severity > 10) {
    error_since_done_ = true;
    last_error_ = message.number;
  }
  return true;
}

bool Reply::DatabaseChanged(const std::string& from, const std::string& to) {
  if (!goes_on()) return false;
  FlushDone();
  WriteEnvChange(out_, tds::EnvChange::kDatabase, to, from);
  WriteMessage(out_, DatabaseContextMessage(to), server_name_, dialect_.version);
  context_message_sent_ = true;
  return true;
}

bool Reply::TransactionBegan(std::uint64_t descriptor) {
  in_transaction_ = true;
  if (packets_.broken() || broken_) return false;
  FlushDone();
  if (dialect_.version >= TdsVersion::k72) {
    WriteTransactionChange(out_, tds::EnvChange::kBeginTransaction, descriptor);
  }
  return goes_on();
}

bool Reply::TransactionEnded(std::uint64_t descriptor, bool committed) {
  in_transaction_ = false;
  if (packets_.broken() || broken_) return false;
  FlushDone();
  if (dialect_.version >= TdsVersion::k72) {
    WriteTransactionChange(out_,
                           committed ? tds::EnvChange::kCommitTransaction
                                     : tds::EnvChange::kRollbackTransaction,
                           descriptor);
  }
  return goes_on();
}

bool Reply::ReturnStatus(std::int32_t status) {
  if (!goes_on()) return false;
  if (in_call_) {
    return_status_ = status;
    return true;
  }
  FlushDone();
  WriteReturnStatus(out_, status);
  pending_ = {tds::TokenId::kDoneProc, StatusBits(error_since_done_), 0, 0};
  error_since_done_ = false;
  return true;
}

// The place of a parameter in its call: the one of that name, or the next OUTPUT one
// without a name.
std::size_t Reply::PlaceOf(const std::string& name) const {
  std::size_t unnamed_before = return_values_.size();
  std::optional<std::size_t> unnamed;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].name.empty() &&
        EqualsIgnoringAsciiCase(parameters_[i].name, name)) {
      return first_index_ + i;
    }
    if (!parameters_[i].output) continue;
    if (unnamed_before == 0 && !unnamed) unnamed = first_index_ + i;
    if (unnamed_before > 0) --unnamed_before;
  }
  return unnamed.value_or(first_index_ + return_values_.size());
}

std::optional<std::string> Reply::ValueToken(std::size_t place, const std::string& name,
                                             const SqlType& type, const Value& value) {
  constexpr std::uint8_t kStatusOutput = 1;
  const ColumnEncoder encoder(type, true, dialect_);
  if (!value.IsNull() && !encoder.Fits(value)) return std::nullopt;
  ByteBuffer token;
  token.U8(static_cast<std::uint8_t>(tds::TokenId::kReturnValue));
  token.U16(static_cast<std::uint16_t>(place));
  token.BVarChar(Utf16(name));
  token.U8(kStatusOutput);
  encoder.WriteTypeInfo(token, 0);
  if (value.IsNull()) {
    encoder.WriteNull(token);
  } else if (!encoder.WriteValue(value, token)) {
    return std::nullopt;
  }
  return token.bytes();
}

bool Reply::ReturnHandle(const std::string& name, std::int32_t handle) {
  if (!goes_on()) return false;
  const SqlType type{TypeId::kInt, 0, 0, 0, ""};
  const std::optional<std::string> token =
      ValueToken(0, name, type, {std::int64_t{handle}, {}});
  if (token) return_values_.insert(return_values_.begin(), *token);
  return true;
}

bool Reply::ReturnValue(const std::string& name, const SqlType& type,
                        const Value& value) {
  if (!goes_on()) return false;
  const std::optional<std::string> token = ValueToken(PlaceOf(name), name, type, value);
  if (!token) return Break("an OUTPUT value is not of its type");
  if (in_call_) {
    return_values_.push_back(*token);
  } else {
    FlushDone();
    out_.Raw(*token);
  }
  return true;
}

}  // namespace mssql_cdc::sim::wire
