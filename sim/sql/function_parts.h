// What the built-in functions are made with, and the tables they stand in: one for each
// file of functions.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/sql/binder.h"

namespace mssql_cdc::sim::builtin {

struct FunctionEntry {
  std::string_view name;  // Upper case.
  BuiltIn build;
};
std::span<const FunctionEntry> TextFunctions();
std::span<const FunctionEntry> MadeTextFunctions();
std::span<const FunctionEntry> DateFunctions();
std::span<const FunctionEntry> NumberFunctions();
std::span<const FunctionEntry> ChoiceFunctions();
std::span<const FunctionEntry> SurroundingFunctions();

using Values = std::vector<Value>;
using Arguments = std::vector<Bound>;

Value Of(std::int64_t number);
Value Of(Text text);
Value Of(const DateTimeValue& date);
Value OfDouble(double number);
const Text& TextOf(const Value& value);
std::int64_t IntOf(const Value& value);

// The function's name in messages.
std::string Shown(const ast::Call& call);
// Raises 174 or 189 where the number of arguments is another.
void Require(const ast::Call& call, std::size_t least, std::size_t most);
[[noreturn]] void RaiseArgument(const SqlType& type, int number, const ast::Call& call);

// An argument as text, national or not as it is.
Bound AsText(Binder& binder, const Bound& argument);
Bound AsInt(Binder& binder, const Bound& argument);

// The varying form of a text's type.
SqlType Varying(SqlType type);
SqlType Longest(SqlType type);

// A moment without its offset, and in UTC.
DateTimeValue Local(DateTimeValue now);
DateTimeValue Utc(const DateTimeValue& now);

}  // namespace mssql_cdc::sim::builtin
