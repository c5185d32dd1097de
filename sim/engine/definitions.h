// What DDL statements need from each other.

#pragma once

#include <memory>
#include <string>

#include "sim/engine/session.h"

namespace mssql_cdc::sim {

// The table a statement is about; raises 4902/1088/3701 with `number` if there is none,
// or if the login may not alter it.
TablePtr TableToAlter(Session& session, const std::shared_ptr<Database>& database,
                      const ObjectName& name);
void RequireOwner(Session& session, const std::shared_ptr<Database>& database);

// Each does one statement.
void CreateTable(Session& session, const ast::CreateTable& statement);
void DropTable(Session& session, const ast::DropTable& statement);
void AlterTable(Session& session, const ast::AlterTable& statement,
                const std::string& text);
void CreateIndex(Session& session, const ast::CreateIndex& statement);
void DropIndex(Session& session, const ast::DropIndex& statement);
void TruncateTable(Session& session, const ast::TruncateTable& statement);
void DefinePrincipal(Session& session, const ast::Definition& definition);
void ChangePermission(Session& session, const ast::Permission& statement);

// `statement` is named in 1702, where the table has all columns it can have.
void AddColumnDefinition(Session& session, TableMeta& table,
                         const ast::ColumnDefinition& definition,
                         const std::string& statement);
void AddConstraints(Session& session, const std::shared_ptr<Database>& database,
                    TableMeta& table, const ast::TableConstraints& constraints);
// Adds an index to `table`; a name is made up where there is none.
IndexMeta& AddKey(TableMeta& table, const ast::KeyConstraint& key);
// Stores `next` in place of the table of its id, with all rows.
void ReplaceTable(
    Session& session, WriteTransaction& transaction, const TableMeta& old,
    TableMeta next,
    const std::function<bool(std::size_t, const std::vector<Value>&, Value&)>& fill);
// ALTER TABLE ... SWITCH of a whole table: its rows go to `target` and are captured
// neither there nor here (facts 1.2).
void SwitchTable(Session& session, const std::shared_ptr<Database>& database,
                 const TablePtr& table, const ObjectName& target);
// Writes the log record from which capture makes ddl_history and alters change tables.
void LogDefinition(Session& session, WriteTransaction& transaction,
                   const TableMeta& table, const std::string& text,
                   const ColumnMeta* altered);
// Removes a table with its capture instances.
void RemoveTable(WriteTransaction& transaction, const TableMeta& table);

}  // namespace mssql_cdc::sim
