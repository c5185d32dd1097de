#include <utility>

#include "sim/sql/environment.h"
#include "sim/sql/parser.h"

namespace mssql_cdc::sim {

ast::Definition Parser::ParseCreate() {
  const std::size_t begin = Next().begin;
  const bool replace = AcceptWords({"OR", "ALTER"});
  if (AcceptWord("PROCEDURE") || AcceptWord("PROC")) {
    return ParseModule(ast::CreateModule::Kind::kProcedure, replace, begin);
  }
  if (AcceptWord("VIEW")) {
    return ParseModule(ast::CreateModule::Kind::kView, replace, begin);
  }
  if (replace) Fail();
  if (AcceptWord("TABLE")) return ParseCreateTable();
  if (IsWord("UNIQUE") || IsWord("CLUSTERED") || IsWord("NONCLUSTERED") ||
      IsWord("COLUMNSTORE") || IsWord("INDEX")) {
    return ParseCreateIndex();
  }
  if (AcceptWord("DATABASE")) {
    ast::CreateDatabase node;
    node.name = ParseName();
    if (AcceptWord("COLLATE")) node.collation = ParseName();
    return node;
  }
  if (AcceptWord("SCHEMA")) {
    ast::CreateSchema node;
    if (!IsWord("AUTHORIZATION")) node.name = ParseName();
    if (AcceptWord("AUTHORIZATION")) node.authorization = ParseName();
    if (node.name.empty()) node.name = node.authorization;
    return node;
  }
  return ParseCreatePrincipal();
}

std::string Parser::ParseWordOrString() {
  const TokenKind kind = Peek().kind;
  if (kind == TokenKind::kString || kind == TokenKind::kNationalString) {
    return Next().text;
  }
  return ParseName();
}

ast::Definition Parser::ParseCreatePrincipal() {
  if (AcceptWord("LOGIN")) {
    ast::CreateLogin node;
    node.name = ParseName();
    ExpectWord("WITH");
    ExpectWord("PASSWORD");
    ExpectSymbol("=");
    node.password = ParseWordOrString();
    while (AcceptSymbol(",")) {
      if (AcceptWord("DEFAULT_DATABASE")) {
        ExpectSymbol("=");
        node.default_database = ParseName();
      } else if (AcceptWord("CHECK_POLICY") || AcceptWord("CHECK_EXPIRATION")) {
        ExpectSymbol("=");
        if (!AcceptWord("ON")) ExpectWord("OFF");
      } else {
        Fail();
      }
    }
    return node;
  }
  if (AcceptWord("USER")) {
    ast::CreateUser node;
    node.name = ParseName();
    if (AcceptWords({"WITHOUT", "LOGIN"})) {
      node.without_login = true;
    } else if (AcceptWord("FOR") || AcceptWord("FROM")) {
      ExpectWord("LOGIN");
      node.login = ParseName();
    }
    if (AcceptWord("WITH")) {
      ExpectWord("DEFAULT_SCHEMA");
      ExpectSymbol("=");
      node.default_schema = ParseName();
    }
    return node;
  }
  ast::CreateRole node;
  node.server = AcceptWord("SERVER");
  ExpectWord("ROLE");
  node.name = ParseName();
  if (AcceptWord("AUTHORIZATION")) ParseName();
  return node;
}

ast::Definition Parser::ParseAlter() {
  const std::size_t begin = Next().begin;
  if (AcceptWord("TABLE")) return ParseAlterTable();
  if (AcceptWord("DATABASE")) return ParseAlterDatabase();
  if (AcceptWord("PROCEDURE") || AcceptWord("PROC")) {
    return ParseModule(ast::CreateModule::Kind::kProcedure, true, begin);
  }
  if (AcceptWord("VIEW")) {
    return ParseModule(ast::CreateModule::Kind::kView, true, begin);
  }
  return ParseAlterPrincipal();
}

ast::Definition Parser::ParseAlterPrincipal() {
  if (AcceptWord("LOGIN")) {
    ast::AlterLogin node;
    node.name = ParseName();
    if (AcceptWord("ENABLE")) {
      node.enabled = true;
    } else if (AcceptWord("DISABLE")) {
      node.enabled = false;
    } else {
      ExpectWord("WITH");
      do {
        if (AcceptWord("PASSWORD")) {
          ExpectSymbol("=");
          node.password = ParseWordOrString();
        } else {
          ExpectWord("DEFAULT_DATABASE");
          ExpectSymbol("=");
          node.default_database = ParseName();
        }
      } while (AcceptSymbol(","));
    }
    return node;
  }
  ast::AlterRole node;
  node.server = AcceptWord("SERVER");
  ExpectWord("ROLE");
  node.name = ParseName();
  node.add = AcceptWord("ADD");
  if (!node.add) ExpectWord("DROP");
  ExpectWord("MEMBER");
  node.member = ParseName();
  return node;
}

ast::Definition Parser::ParseDrop() {
  Next();
  const auto if_exists = [&] { return AcceptWords({"IF", "EXISTS"}); };
  const auto object_names = [&] {
    std::vector<ObjectName> names;
    do {
      names.push_back(ParseObjectName());
    } while (AcceptSymbol(","));
    return names;
  };
  if (AcceptWord("TABLE")) {
    ast::DropTable node;
    node.if_exists = if_exists();
    node.names = object_names();
    return node;
  }
  if (AcceptWord("INDEX")) {
    ast::DropIndex node;
    node.if_exists = if_exists();
    node.name = ParseName();
    ExpectWord("ON");
    node.table = ParseObjectName();
    return node;
  }
  if (AcceptWord("DATABASE")) {
    ast::DropDatabase node;
    node.if_exists = if_exists();
    do {
      node.names.push_back(ParseName());
    } while (AcceptSymbol(","));
    return node;
  }
  if (AcceptWord("SCHEMA")) {
    const bool exists = if_exists();
    return ast::DropSchema{ParseName(), exists};
  }
  if (AcceptWord("LOGIN")) return ast::DropLogin{ParseName()};
  if (AcceptWord("USER")) {
    const bool exists = if_exists();
    return ast::DropUser{ParseName(), exists};
  }
  if (IsWord("ROLE") || AreWords({"SERVER", "ROLE"})) {
    const bool server = AcceptWord("SERVER");
    ExpectWord("ROLE");
    const bool exists = if_exists();
    return ast::DropRole{ParseName(), exists, server};
  }
  ast::DropModule node;
  if (AcceptWord("VIEW")) {
    node.kind = ast::CreateModule::Kind::kView;
  } else if (AcceptWord("PROCEDURE") || AcceptWord("PROC")) {
    node.kind = ast::CreateModule::Kind::kProcedure;
  } else {
    Fail();
  }
  node.if_exists = if_exists();
  node.names = object_names();
  return node;
}

ast::CreateTable Parser::ParseCreateTable() {
  ast::CreateTable node;
  node.name = ParseObjectName();
  ExpectSymbol("(");
  ParseTableElements(node.columns, node.constraints, true);
  ExpectSymbol(")");
  // ON filegroup, TEXTIMAGE_ON filegroup, WITH (DATA_COMPRESSION = ...).
  while (IsWord("ON") || IsWord("TEXTIMAGE_ON") || IsWord("WITH")) {
    if (IsWord("WITH") && !IsSymbol("(", 1)) break;
    if (IsWord("WITH")) {
      SkipIndexOptions();
    } else {
      Next();
      ParseName();
    }
  }
  return node;
}

void Parser::ParseTableElements(std::vector<ast::ColumnDefinition>& columns,
                                ast::TableConstraints& constraints,
                                bool until_parenthesis) {
  do {
    if (until_parenthesis && IsSymbol(")") && !columns.empty()) return;
    ParseTableElement(columns, constraints);
  } while (AcceptSymbol(","));
}

bool Parser::IsConstraintStart() const {
  return IsWord("CONSTRAINT") || IsWord("PRIMARY") || IsWord("UNIQUE") ||
         IsWord("FOREIGN") || IsWord("CHECK") || IsWord("DEFAULT");
}

void Parser::ParseTableElement(std::vector<ast::ColumnDefinition>& columns,
                               ast::TableConstraints& constraints) {
  if (IsConstraintStart()) {
    ParseConstraint(constraints, "");
    return;
  }
  columns.push_back(ParseColumn(constraints));
}

ast::ColumnDefinition Parser::ParseColumn(ast::TableConstraints& constraints) {
  ast::ColumnDefinition column;
  column.line = Peek().line;
  column.name = ParseName();
  if (AcceptWord("AS")) {
    column.computed = ParseExpression();
    column.persisted = AcceptWord("PERSISTED");
  } else if (!IsName() && !IsWord("DOUBLE") && !IsWord("NATIONAL")) {
    // "timestamp" alone names a column of that type.
    if (column.name != "timestamp") {
      throw SqlError{
          {173, 1, 15,
           "The definition for column '" + column.name + "' must include a data type.",
           "", Peek().line}};
    }
    column.type.name = "timestamp";
  } else {
    column.type = ParseType();
  }
  while (ParseColumnOption(column, constraints)) {
  }
  return column;
}

bool Parser::ParseColumnOption(ast::ColumnDefinition& column,
                               ast::TableConstraints& constraints) {
  if (AcceptWord("COLLATE")) {
    column.collation = ParseName();
  } else if (AcceptWords({"NOT", "NULL"})) {
    column.nullable = false;
  } else if (AcceptWord("NULL")) {
    column.nullable = true;
  } else if (AcceptWord("SPARSE")) {
    column.sparse = true;
  } else if (AcceptWord("ROWGUIDCOL")) {
    column.row_guid = true;
  } else if (AcceptWord("IDENTITY")) {
    column.identity.emplace();
    if (AcceptSymbol("(")) {
      column.identity->seed = ParseSignedInteger();
      ExpectSymbol(",");
      column.identity->increment = ParseSignedInteger();
      ExpectSymbol(")");
    }
    if (AcceptWords({"NOT", "FOR"})) ExpectWord("REPLICATION");
  } else if (IsWord("DEFAULT") || (IsWord("CONSTRAINT") && IsWord("DEFAULT", 2))) {
    ast::DefaultConstraint constraint;
    if (AcceptWord("CONSTRAINT")) constraint.name = ParseName();
    ExpectWord("DEFAULT");
    constraint.column = column.name;
    constraint.value = ParseExpression();
    AcceptWords({"WITH", "VALUES"});
    column.default_value = std::move(constraint);
  } else if (IsConstraintStart() || IsWord("REFERENCES")) {
    ParseConstraint(constraints, column.name);
  } else {
    return false;
  }
  return true;
}

// `column`: the column the constraint is written at; empty for one of the table.
void Parser::ParseConstraint(ast::TableConstraints& constraints,
                             const std::string& column) {
  std::string name;
  if (AcceptWord("CONSTRAINT")) name = ParseName();
  if (IsWord("PRIMARY") || IsWord("UNIQUE")) {
    constraints.keys.push_back(ParseKey(name, column));
    return;
  }
  if (AcceptWord("CHECK")) {
    if (AcceptWord("NOT")) {
      ExpectWord("FOR");
      ExpectWord("REPLICATION");
    }
    ExpectSymbol("(");
    ast::CheckConstraint check{std::move(name), ParseCondition()};
    ExpectSymbol(")");
    constraints.checks.push_back(std::move(check));
    return;
  }
  if (AcceptWord("DEFAULT")) {
    ast::DefaultConstraint constraint;
    constraint.name = std::move(name);
    constraint.value = ParseExpression();
    ExpectWord("FOR");
    constraint.column = ParseName();
    AcceptWords({"WITH", "VALUES"});
    constraints.defaults.push_back(std::move(constraint));
    return;
  }
  ast::ForeignKey key;
  key.name = std::move(name);
  if (AcceptWord("FOREIGN")) {
    ExpectWord("KEY");
    if (IsSymbol("(")) key.columns = ParseNameList();
  }
  if (key.columns.empty() && !column.empty()) key.columns = {column};
  if (key.columns.empty()) Fail();
  ExpectWord("REFERENCES");
  key.referenced = ParseObjectName();
  if (IsSymbol("(")) key.referenced_columns = ParseNameList();
  // ON DELETE CASCADE and its kin would change rows we do not know how to change.
  constraints.foreign_keys.push_back(std::move(key));
}

ast::KeyConstraint Parser::ParseKey(const std::string& name,
                                    const std::string& column) {
  ast::KeyConstraint key;
  key.name = name;
  key.primary = AcceptWord("PRIMARY");
  ExpectWord(key.primary ? "KEY" : "UNIQUE");
  if (AcceptWord("CLUSTERED")) {
    key.clustered = true;
  } else if (AcceptWord("NONCLUSTERED")) {
    key.clustered = false;
  }
  if (column.empty()) {
    key.columns = ParseIndexColumns();
  } else {
    key.columns = {{column, false}};
  }
  if (IsWord("WITH") && IsSymbol("(", 1)) SkipIndexOptions();
  if (IsWord("ON") && IsName(1)) {
    Next();
    Next();
  }
  return key;
}

std::vector<ast::IndexColumn> Parser::ParseIndexColumns() {
  std::vector<ast::IndexColumn> columns;
  ExpectSymbol("(");
  do {
    ast::IndexColumn column;
    column.name = ParseName();
    if (AcceptWord("DESC")) {
      column.descending = true;
    } else {
      AcceptWord("ASC");
    }
    columns.push_back(std::move(column));
  } while (AcceptSymbol(","));
  ExpectSymbol(")");
  return columns;
}

// WITH (FILLFACTOR = 80, ...): options that change storage, not rows. IGNORE_DUP_KEY
// changes what an INSERT does.
void Parser::SkipIndexOptions() {
  ExpectWord("WITH");
  ExpectSymbol("(");
  do {
    static constexpr std::string_view kKnown[] = {"PAD_INDEX",
                                                  "FILLFACTOR",
                                                  "SORT_IN_TEMPDB",
                                                  "STATISTICS_NORECOMPUTE",
                                                  "STATISTICS_INCREMENTAL",
                                                  "DROP_EXISTING",
                                                  "ONLINE",
                                                  "RESUMABLE",
                                                  "ALLOW_ROW_LOCKS",
                                                  "ALLOW_PAGE_LOCKS",
                                                  "OPTIMIZE_FOR_SEQUENTIAL_KEY",
                                                  "MAXDOP",
                                                  "DATA_COMPRESSION",
                                                  "XML_COMPRESSION",
                                                  "IGNORE_DUP_KEY"};
    bool known = false;
    for (const std::string_view word : kKnown) known = known || IsWord(word);
    if (!known) Fail();
    const std::string option = Next().upper;
    ExpectSymbol("=");
    if (option == "IGNORE_DUP_KEY" && !IsWord("OFF")) Fail();
    if (Peek().kind != TokenKind::kWord && Peek().kind != TokenKind::kInteger) Fail();
    Next();
  } while (AcceptSymbol(","));
  ExpectSymbol(")");
}

ast::Definition Parser::ParseAlterTable() {
  ast::AlterTable node;
  node.name = ParseObjectName();
  const bool with_check =
      AcceptWords({"WITH", "CHECK"}) || AcceptWords({"WITH", "NOCHECK"});
  if (AcceptWord("ADD")) {
    ast::AddColumns add;
    ParseTableElements(add.columns, add.constraints, false);
    node.action = std::move(add);
    return node;
  }
  if (with_check && !IsWord("CHECK")) Fail();
  if (AcceptWord("ALTER")) {
    ExpectWord("COLUMN");
    ast::TableConstraints none;
    node.action = ast::AlterColumn{ParseColumn(none)};
  } else if (AcceptWord("DROP")) {
    ast::DropColumns drop;
    bool columns = false;
    do {
      if (AcceptWord("COLUMN")) {
        columns = true;
        drop.if_exists = AcceptWords({"IF", "EXISTS"});
      } else if (AcceptWord("CONSTRAINT")) {
        columns = false;
        drop.if_exists = AcceptWords({"IF", "EXISTS"});
      }
      (columns ? drop.columns : drop.constraints).push_back(ParseName());
    } while (AcceptSymbol(","));
    node.action = std::move(drop);
  } else if (AcceptWord("SWITCH")) {
    ast::SwitchPartition partition;
    if (AcceptWord("PARTITION")) ParseExpression();
    ExpectWord("TO");
    partition.target = ParseObjectName();
    if (AcceptWord("PARTITION")) ParseExpression();
    node.action = std::move(partition);
  } else {
    static constexpr std::string_view kKnown[] = {"REBUILD", "CHECK",   "NOCHECK",
                                                  "ENABLE",  "DISABLE", "SET"};
    bool known = false;
    for (const std::string_view word : kKnown) known = known || IsWord(word);
    if (!known) Fail();
    ast::AlterTableOption option;
    while (Peek().kind == TokenKind::kWord || Peek().kind == TokenKind::kQuotedName) {
      option.words.push_back(Next().text);
    }
    node.action = std::move(option);
  }
  return node;
}

ast::Definition Parser::ParseAlterDatabase() {
  ast::AlterDatabase node;
  if (!AcceptWord("CURRENT")) node.name = ParseName();
  if (AcceptWord("COLLATE")) {
    node.option = "COLLATE";
    node.value = ParseName();
    return node;
  }
  if (AcceptWords({"MODIFY", "NAME"})) {
    ExpectSymbol("=");
    node.option = "MODIFY NAME";
    node.value = ParseName();
    return node;
  }
  ExpectWord("SET");
  if (Peek().kind != TokenKind::kWord) Fail();
  node.option = Next().upper;
  AcceptSymbol("=");
  while (Peek().kind == TokenKind::kWord && !IsWord("WITH")) {
    node.value += (node.value.empty() ? "" : " ") + Next().upper;
  }
  if (Peek().kind == TokenKind::kInteger) node.value = Next().text;
  if (AcceptSymbol("(")) {
    // CHANGE_TRACKING = ON (CHANGE_RETENTION = 2 DAYS, ...)
    while (!AcceptSymbol(")")) {
      if (Peek().kind == TokenKind::kEnd) Fail();
      Next();
    }
  }
  if (AcceptWord("WITH")) {
    if (AcceptWord("ROLLBACK")) {
      node.termination = ast::AlterDatabase::Termination::kRollback;
      if (!AcceptWord("IMMEDIATE")) {
        ExpectWord("AFTER");
        ParseSignedInteger();
        AcceptWord("SECONDS");
      }
    } else {
      node.termination = ast::AlterDatabase::Termination::kNoWait;
      ExpectWord("NO_WAIT");
    }
  }
  return node;
}

ast::Definition Parser::ParseCreateIndex() {
  ast::CreateIndex node;
  node.unique = AcceptWord("UNIQUE");
  if (AcceptWord("CLUSTERED")) {
    node.clustered = true;
  } else {
    AcceptWord("NONCLUSTERED");
  }
  node.columnstore = AcceptWord("COLUMNSTORE");
  ExpectWord("INDEX");
  node.name = ParseName();
  ExpectWord("ON");
  node.table = ParseObjectName();
  if (IsSymbol("(") || !node.columnstore) node.columns = ParseIndexColumns();
  if (AcceptWord("INCLUDE")) node.included = ParseNameList();
  if (AcceptWord("WHERE")) node.filter = ParseCondition();
  if (IsWord("WITH") && IsSymbol("(", 1)) SkipIndexOptions();
  if (IsWord("ON") && IsName(1)) {
    Next();
    Next();
  }
  return node;
}

ast::Permission Parser::ParsePermission(ast::Permission::Action action) {
  ast::Permission node;
  node.action = action;
  if (action == ast::Permission::Action::kRevoke) {
    AcceptWords({"GRANT", "OPTION", "FOR"});
  }
  do {
    ast::Permission::Right right;
    while (Peek().kind == TokenKind::kWord && !IsWord("ON") && !IsWord("TO") &&
           !IsWord("FROM")) {
      right.name += (right.name.empty() ? "" : " ") + Next().upper;
    }
    if (right.name.empty()) Fail();
    if (IsSymbol("(")) right.columns = ParseNameList();
    node.rights.push_back(std::move(right));
  } while (AcceptSymbol(","));
  if (AcceptWord("ON")) {
    if (IsSymbol("::", 1) && Peek().kind == TokenKind::kWord) {
      node.securable_class = Next().upper;
      Next();
    }
    node.securable = ParseObjectName();
    if (IsSymbol("(")) {
      std::vector<std::string> columns = ParseNameList();
      for (ast::Permission::Right& right : node.rights) right.columns = columns;
    }
  }
  if (!AcceptWord("TO")) {
    if (action != ast::Permission::Action::kRevoke) Fail();
    ExpectWord("FROM");
  }
  do {
    node.principals.push_back(AcceptWord("PUBLIC") ? "public" : ParseName());
  } while (AcceptSymbol(","));
  if (AcceptWord("WITH")) {
    ExpectWord("GRANT");
    ExpectWord("OPTION");
    node.with_grant_option = true;
  }
  AcceptWord("CASCADE");
  return node;
}

std::vector<ast::ProcedureParameter> Parser::ParseParameters() {
  std::vector<ast::ProcedureParameter> parameters;
  while (Peek().kind == TokenKind::kVariable) {
    ast::ProcedureParameter parameter;
    parameter.name = Next().text;
    AcceptWord("AS");
    parameter.type = ParseType();
    if (AcceptSymbol("=")) parameter.default_value = ParseUnary();
    parameter.output = AcceptWord("OUTPUT") || AcceptWord("OUT");
    parameters.push_back(std::move(parameter));
    if (!AcceptSymbol(",")) break;
  }
  return parameters;
}

std::vector<ast::ProcedureParameter> Parser::ParseWholeParameters() {
  std::vector<ast::ProcedureParameter> parameters = ParseParameters();
  if (Peek().kind != TokenKind::kEnd) Fail();
  return parameters;
}

ast::Definition Parser::ParseModule(ast::CreateModule::Kind kind, bool replace,
                                    std::size_t begin) {
  ast::CreateModule node;
  node.kind = kind;
  node.replace = replace;
  node.name = ParseObjectName();
  if (kind == ast::CreateModule::Kind::kView) {
    if (IsSymbol("(")) node.columns = ParseNameList();
    ExpectWord("AS");
    const std::size_t body = Peek().begin;
    node.view = ParseSelect();
    node.body = TextFrom(body);
    node.text = TextFrom(begin);
    return node;
  }
  const bool parenthesis = AcceptSymbol("(");
  node.parameters = ParseParameters();
  if (parenthesis) ExpectSymbol(")");
  ExpectWord("AS");
  const std::size_t body = Peek().begin;
  // The rest of the batch is the body; it is parsed here for its errors.
  while (Peek().kind != TokenKind::kEnd) {
    if (AcceptSymbol(";")) continue;
    ParseStatement();
  }
  node.body = TextFrom(body);
  node.text = TextFrom(begin);
  return node;
}

}  // namespace mssql_cdc::sim
