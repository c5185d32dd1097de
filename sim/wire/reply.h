// Turns what the engine says into tokens, written at once: a large result is never
// held.
//
// The wire has two shapes of reply. A batch ends each statement with DONE, whose MORE
// bit says whether another follows, so the last DONE waits until that is known. A
// procedure call ends its statements with DONEINPROC and itself with RETURNSTATUS, the
// OUTPUT values and DONEPROC.

#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/session.h"
#include "sim/wire/bytes.h"
#include "sim/wire/column.h"
#include "sim/wire/packet.h"
#include "sim/wire/tokens.h"

namespace mssql_cdc::sim::wire {

class Reply final : public ReplySink {
 public:
  // What a procedure's own RETURNSTATUS is taken from.
  enum class Status : std::uint8_t {
    kOfEngine,  // What the engine says.
    kOfErrors,  // sp_executesql and its kin: the last error's number, else 0.
  };

  // `stop` ends the reply early. All references outlive the reply.
  Reply(PacketWriter& packets, const Dialect& dialect, std::string server_name,
        const std::atomic<bool>& stop);

  void StartBatch();
  void StartCall(Status status);
  // Ends a batch, or the message, with its last DONE.
  void FinishBatch();
  // Ends one call. `more`: another call of the same message follows.
  void FinishCall(bool more);
  // Ends the message: early, if the client asked to stop.
  void EndMessage();
  // The reply to an attention, a message of its own.
  void AcknowledgeAttention();
  // The ENVCHANGE that a reset begins with.
  void AcknowledgeReset();

  bool Columns(const std::vector<ResultColumn>& columns) override;
  bool Row(const std::vector<Value>& values) override;
  std::optional<std::string> RowForm() const override;
  bool RowAsBytes(const std::vector<Value>& values, std::string& bytes) override;
  bool RowBytes(std::string_view bytes) override;
  bool StatementDone(std::optional<std::uint64_t> row_count,
                     std::uint16_t command) override;
  bool SendMessage(const Message& message) override;
  bool DatabaseChanged(const std::string& from, const std::string& to) override;
  bool TransactionBegan(std::uint64_t descriptor) override;
  bool TransactionEnded(std::uint64_t descriptor, bool committed) override;
  bool ReturnStatus(std::int32_t status) override;
  bool ReturnValue(const std::string& name, const SqlType& type,
                   const Value& value) override;

  // The engine said something that cannot be sent; the connection must end.
  bool broken() const { return broken_; }
  bool in_transaction() const { return in_transaction_; }
  // The parameters of the call that runs, so that an OUTPUT value goes out with its
  // place. `first_index`: the place of the first one.
  struct Parameter {
    std::string name;
    bool output = false;
  };
  void SetParameters(std::size_t first_index, std::vector<Parameter> parameters) {
    first_index_ = first_index;
    parameters_ = std::move(parameters);
  }
  // The handle of a prepared statement: the first parameter, so the first value.
  bool ReturnHandle(const std::string& name, std::int32_t handle);
  // From now on, a change of the session's collation is told to the client.
  void FollowCollation(const EngineSession& session) {
    session_ = &session;
    collation_name_ = session.collation();
  }

 private:
  struct Done {
    tds::TokenId token = tds::TokenId::kDone;
    std::uint16_t status = 0;
    std::uint16_t command = 0;
    std::uint64_t row_count = 0;
  };

  bool goes_on() const { return !broken_ && !stop_ && !packets_.broken(); }
  std::uint16_t StatusBits(bool with_error) const;
  void Write(const Done& done);
  void FlushDone();
  void TellCollation();
  std::size_t PlaceOf(const std::string& name) const;
  std::optional<std::string> ValueToken(std::size_t place, const std::string& name,
                                        const SqlType& type, const Value& value);
  void Flush() { out_.SpillAll(); }
  bool Break(const std::string& why);
  bool WriteRow(const std::vector<Value>& values, ByteBuffer& out);

  PacketWriter& packets_;
  Dialect dialect_;
  std::string server_name_;
  const std::atomic<bool>& stop_;

  ByteBuffer out_;
  ByteBuffer row_;  // Of RowAsBytes.
  std::vector<ColumnEncoder> columns_;
  bool in_call_ = false;
  Status status_kind_ = Status::kOfEngine;
  std::optional<Done> pending_;  // A batch's last DONE, until what follows is known.
  std::optional<std::int32_t> return_status_;
  std::size_t first_index_ = 0;
  std::vector<Parameter> parameters_;
  std::vector<std::string> return_values_;  // As tokens.
  const EngineSession* session_ = nullptr;
  std::string collation_name_;  // As the client knows it.
  bool error_since_done_ = false;
  std::int32_t last_error_ = 0;  // Of this batch or call; 0: none.
  bool context_message_sent_ = false;
  bool in_transaction_ = false;
  bool broken_ = false;
};

}  // namespace mssql_cdc::sim::wire
