// SQL Server's typing rules: precedence, result types of operators, the type a CASE or
// a UNION yields, names in messages.

#pragma once

#include <cstdint>
#include <string>

#include "sim/sql/ast.h"
#include "sim/value.h"

namespace mssql_cdc::sim {

SqlType TypeOf(TypeId id);  // With the default precision and length of the type.
SqlType DecimalType(int precision, int scale);
SqlType VarCharType(std::int32_t length);
SqlType NVarCharType(std::int32_t length);
SqlType VarBinaryType(std::int32_t length);

bool IsInteger(TypeId id);      // bit included.
bool IsExactNumber(TypeId id);  // Integers, decimal, money.
bool IsNumber(TypeId id);       // These and real, float.
bool IsMoney(TypeId id);
bool IsText(TypeId id);  // Character types, text and ntext; not xml.
bool IsNationalText(TypeId id);
bool IsBinary(TypeId id);  // rowversion and image too.
bool IsDateTime(TypeId id);
bool IsLargeObject(TypeId id);  // text, ntext, image.

// Higher converts lower. Documented in "Data type precedence".
int Precedence(TypeId id);

// "int", "nvarchar", "numeric".
std::string TypeWord(const SqlType& type);
// "nvarchar(50)", "decimal(18,4)".
std::string TypeText(const SqlType& type);

// Precision and scale of an exact number seen as decimal.
SqlType AsDecimal(const SqlType& type);

// Of a value that may be either: CASE, COALESCE, UNION, comparison. Raises 206.
SqlType CommonType(const SqlType& a, const SqlType& b);

// + - * / % & | ^ on operands of these types. Raises 402, 8117, 206.
SqlType ArithmeticType(ast::BinaryOperator op, const SqlType& a, const SqlType& b);
std::string OperatorName(ast::BinaryOperator op);  // "add", for 8117.

enum class ConversionRule : std::uint8_t { kImplicit, kExplicit, kNone };
ConversionRule RuleOfConversion(const SqlType& from, const SqlType& to);
// Raises 257, 206 or 529 unless allowed.
void CheckConversion(const SqlType& from, const SqlType& to, bool is_explicit);

}  // namespace mssql_cdc::sim
