// The built-in functions that need nothing of the engine but its clock and dice.

#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "sim/sql/binder.h"
#include "sim/sql/dates.h"
#include "sim/sql/decimals.h"
#include "sim/sql/types.h"
#include "sim/wire/collation.h"

namespace mssql_cdc::sim {
namespace {

using Values = std::vector<Value>;
using Arguments = std::vector<Bound>;

Value Of(std::int64_t number) {
  Value value;
  value.held = number;
  return value;
}
Value Of(Text text) {
  Value value;
  value.held = std::move(text);
  return value;
}
Value Of(const DateTimeValue& date) {
  Value value;
  value.held = date;
  return value;
}
Value OfDouble(double number) {
  Value value;
  value.held = number;
  return value;
}
const Text& TextOf(const Value& value) { return std::get<Text>(value.held); }
std::int64_t IntOf(const Value& value) { return std::get<std::int64_t>(value.held); }

std::string Shown(const ast::Call& call) { return LowerAscii(call.name[0]); }

void Require(const ast::Call& call, std::size_t least, std::size_t most) {
  const std::size_t count = call.arguments.size() + (call.date_part.empty() ? 0 : 1);
  if (count >= least && count <= most) return;
  if (least == most) {
    RaiseSql(174, 15, 1,
             "The " + Shown(call) + " function requires " + std::to_string(least) +
                 " argument(s).");
  }
  RaiseSql(189, 15, 1,
           "The " + Shown(call) + " function requires " + std::to_string(least) +
               " to " + std::to_string(most) + " arguments.");
}

[[noreturn]] void RaiseArgument(const SqlType& type, int number,
                                const ast::Call& call) {
  RaiseSql(8116, 16, 1,
           "Argument data type " + TypeWord(type) + " is invalid for argument " +
               std::to_string(number) + " of " + Shown(call) + " function.");
}

// An argument as text, national or not as it is.
Bound AsText(Binder& binder, const Bound& argument) {
  if (IsText(argument->type.id) && !IsLargeObject(argument->type.id)) return argument;
  const bool national = IsNationalText(argument->type.id);
  SqlType type = national ? NVarCharType(IsLargeObject(argument->type.id) ? kMax : 4000)
                          : VarCharType(IsLargeObject(argument->type.id) ? kMax : 8000);
  return binder.Convert(argument, type, IsMoney(argument->type.id));
}
Bound AsInt(Binder& binder, const Bound& argument) {
  return binder.Convert(argument, TypeOf(TypeId::kBigInt), true);
}

// The varying form of a text's type.
SqlType Varying(SqlType type) {
  if (type.id == TypeId::kChar || type.id == TypeId::kText) type.id = TypeId::kVarChar;
  if (type.id == TypeId::kNChar || type.id == TypeId::kNText) {
    type.id = TypeId::kNVarChar;
  }
  return type;
}
SqlType Longest(SqlType type) {
  type = Varying(type);
  if (type.length != kMax) type.length = IsNationalText(type.id) ? 4000 : 8000;
  return type;
}

template <typename F>
Bound TextFunction(Binder& binder, const ast::Call& call, Arguments& arguments, F f) {
  Require(call, 1, 1);
  const Bound text = AsText(binder, arguments[0]);
  Bound bound = binder.Function(Varying(text->type), {text}, [f](Context&, Values& v) {
    return Of(f(Text(TextOf(v[0]))));
  });
  bound->coercibility = text->coercibility;
  return binder.Fold(bound);
}

Bound Upper(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return TextFunction(binder, call, arguments, [](Text text) {
    for (char16_t& unit : text) unit = UnfoldCase(unit);
    return text;
  });
}
Bound Lower(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return TextFunction(binder, call, arguments, [](Text text) {
    for (char16_t& unit : text) unit = FoldCase(unit);
    return text;
  });
}
Bound LeftTrim(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return TextFunction(binder, call, arguments, [](Text text) {
    text.erase(0, std::min(text.find_first_not_of(u' '), text.size()));
    return text;
  });
}
Bound RightTrim(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return TextFunction(binder, call, arguments, [](Text text) {
    while (!text.empty() && text.back() == u' ') text.pop_back();
    return text;
  });
}
Bound BothTrim(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return TextFunction(binder, call, arguments, [](Text text) {
    while (!text.empty() && text.back() == u' ') text.pop_back();
    text.erase(0, std::min(text.find_first_not_of(u' '), text.size()));
    return text;
  });
}
Bound Reverse(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return TextFunction(binder, call, arguments, [](Text text) {
    std::reverse(text.begin(), text.end());
    return text;
  });
}

Bound Length(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  if (IsLargeObject(arguments[0]->type.id)) RaiseArgument(arguments[0]->type, 1, call);
  if (IsBinary(arguments[0]->type.id)) {
    return binder.Fold(
        binder.Function(TypeOf(TypeId::kInt), {arguments[0]}, [](Context&, Values& v) {
          return Of(static_cast<std::int64_t>(std::get<Bytes>(v[0].held).size()));
        }));
  }
  const Bound text = AsText(binder, arguments[0]);
  const SqlType type =
      TypeOf(text->type.length == kMax ? TypeId::kBigInt : TypeId::kInt);
  return binder.Fold(binder.Function(type, {text}, [](Context&, Values& v) {
    const Text& held = TextOf(v[0]);
    const std::size_t last = held.find_last_not_of(u' ');
    return Of(last == Text::npos ? 0 : static_cast<std::int64_t>(last + 1));
  }));
}

std::int64_t DataLengthOf(const Value& value, const SqlType& type,
                          const ConvertOptions& options) {
  switch (type.id) {
    case TypeId::kBit:
    case TypeId::kTinyInt:
      return 1;
    case TypeId::kSmallInt:
      return 2;
    case TypeId::kInt:
    case TypeId::kReal:
    case TypeId::kSmallMoney:
    case TypeId::kSmallDateTime:
      return 4;
    case TypeId::kBigInt:
    case TypeId::kFloat:
    case TypeId::kMoney:
    case TypeId::kDateTime:
      return 8;
    case TypeId::kDate:
      return 3;
    case TypeId::kTime:
      return type.scale <= 2 ? 3 : type.scale <= 4 ? 4 : 5;
    case TypeId::kDateTime2:
      return type.scale <= 2 ? 6 : type.scale <= 4 ? 7 : 8;
    case TypeId::kDateTimeOffset:
      return type.scale <= 2 ? 8 : type.scale <= 4 ? 9 : 10;
    case TypeId::kDecimal:
      return type.precision <= 9    ? 5
             : type.precision <= 19 ? 9
             : type.precision <= 28 ? 13
                                    : 17;
    case TypeId::kUniqueIdentifier:
      return 16;
    case TypeId::kSqlVariant: {
      Value inner = value;
      inner.variant_type.reset();
      return value.variant_type ? DataLengthOf(inner, *value.variant_type, options) : 0;
    }
    default:
      break;
  }
  if (const auto* bytes = std::get_if<Bytes>(&value.held)) {
    return static_cast<std::int64_t>(bytes->size());
  }
  if (IsNationalText(type.id) || type.id == TypeId::kXml) {
    return static_cast<std::int64_t>(TextOf(value).size() * 2);
  }
  const Value bytes = ConvertValue(value, type, VarBinaryType(kMax), options);
  return static_cast<std::int64_t>(std::get<Bytes>(bytes.held).size());
}

Bound DataLength(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  const SqlType type = arguments[0]->type;
  return binder.Fold(binder.Function(
      TypeOf(type.length == kMax ? TypeId::kBigInt : TypeId::kInt), {arguments[0]},
      [type, options = binder.Options()](Context&, Values& v) {
        return Of(DataLengthOf(v[0], type, options));
      }));
}

Bound Substring(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 3, 3);
  const bool binary = IsBinary(arguments[0]->type.id);
  const Bound whole = binary ? arguments[0] : AsText(binder, arguments[0]);
  SqlType type = binary ? VarBinaryType(whole->type.length) : Varying(whole->type);
  if (whole->type.id == TypeId::kImage) type.length = kMax;
  return binder.Fold(binder.Function(
      type, {whole, AsInt(binder, arguments[1]), AsInt(binder, arguments[2])},
      [binary](Context&, Values& v) {
        if (IntOf(v[2]) < 0) {
          RaiseSql(
              537, 16, 2,
              "Invalid length parameter passed to the LEFT or SUBSTRING function.");
        }
        const std::int64_t first = IntOf(v[1]) - 1;
        const std::int64_t last = first + IntOf(v[2]);
        const auto size = static_cast<std::int64_t>(
            binary ? std::get<Bytes>(v[0].held).size() : TextOf(v[0]).size());
        const auto begin = std::clamp<std::int64_t>(first, 0, size);
        const auto end = std::clamp<std::int64_t>(last, begin, size);
        Value value;
        if (binary) {
          const Bytes& bytes = std::get<Bytes>(v[0].held);
          value.held = Bytes(bytes.begin() + begin, bytes.begin() + end);
        } else {
          value.held = TextOf(v[0]).substr(static_cast<std::size_t>(begin),
                                           static_cast<std::size_t>(end - begin));
        }
        return value;
      }));
}

Bound LeftOrRight(Binder& binder, const ast::Call& call, Arguments& arguments,
                  bool left) {
  Require(call, 2, 2);
  const Bound text = AsText(binder, arguments[0]);
  return binder.Fold(binder.Function(
      Varying(text->type), {text, AsInt(binder, arguments[1])},
      [left](Context&, Values& v) {
        const std::int64_t wanted = IntOf(v[1]);
        if (wanted < 0) {
          RaiseSql(left ? 537 : 536, 16, left ? 3 : 2,
                   left ? "Invalid length parameter passed to the LEFT or SUBSTRING "
                          "function."
                        : "Invalid length parameter passed to the right function.");
        }
        const Text& held = TextOf(v[0]);
        const std::size_t count =
            std::min(held.size(), static_cast<std::size_t>(wanted));
        return Of(left ? held.substr(0, count) : held.substr(held.size() - count));
      }));
}
Bound Left(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return LeftOrRight(binder, call, arguments, true);
}
Bound Right(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return LeftOrRight(binder, call, arguments, false);
}

// Where `part` first occurs at or after `from`, as the collation sees it.
std::size_t Find(std::u16string_view text, std::u16string_view part, std::size_t from,
                 const CollationRule& rule) {
  if (part.empty()) return Text::npos;
  const auto same = [&](char16_t a, char16_t b) {
    if (a == b) return true;
    if (rule.binary) return false;
    if (rule.ignores_case) {
      a = FoldCase(a);
      b = FoldCase(b);
    }
    return rule.ignores_accents ? FoldAccent(a) == FoldAccent(b) : a == b;
  };
  for (std::size_t at = from; at + part.size() <= text.size(); ++at) {
    std::size_t i = 0;
    while (i < part.size() && same(text[at + i], part[i])) ++i;
    if (i == part.size()) return at;
  }
  return Text::npos;
}

Bound Replace(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 3, 3);
  const Bound text = AsText(binder, arguments[0]);
  SqlType type = Longest(text->type);
  for (const std::size_t i : {1u, 2u}) {
    if (IsNationalText(arguments[i]->type.id) && type.id == TypeId::kVarChar) {
      type = NVarCharType(type.length == kMax ? kMax : 4000);
    }
  }
  return binder.Fold(binder.Function(
      type, {text, AsText(binder, arguments[1]), AsText(binder, arguments[2])},
      [rule = binder.RuleFor(text->type)](Context&, Values& v) {
        const Text& whole = TextOf(v[0]);
        const Text& part = TextOf(v[1]);
        Text result;
        std::size_t at = 0;
        for (;;) {
          const std::size_t found = Find(whole, part, at, rule);
          if (found == Text::npos) break;
          result.append(whole, at, found - at);
          result += TextOf(v[2]);
          at = found + part.size();
        }
        result.append(whole, at);
        return Of(std::move(result));
      }));
}

Bound CharIndex(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 3);
  const Bound text = AsText(binder, arguments[1]);
  const Bound from = arguments.size() > 2 ? AsInt(binder, arguments[2])
                                          : binder.Constant(TypeOf(TypeId::kBigInt),
                                                            Of(std::int64_t{1}));
  return binder.Fold(binder.Function(
      TypeOf(text->type.length == kMax ? TypeId::kBigInt : TypeId::kInt),
      {AsText(binder, arguments[0]), text, from},
      [rule = binder.RuleFor(text->type)](Context&, Values& v) {
        const auto first =
            static_cast<std::size_t>(std::max<std::int64_t>(IntOf(v[2]) - 1, 0));
        const std::size_t found = Find(TextOf(v[1]), TextOf(v[0]), first, rule);
        return Of(found == Text::npos ? 0 : static_cast<std::int64_t>(found + 1));
      }));
}

Bound PatIndex(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  const Bound text = AsText(binder, arguments[1]);
  return binder.Fold(
      binder.Function(TypeOf(TypeId::kInt), {AsText(binder, arguments[0]), text},
                      [rule = binder.RuleFor(text->type)](Context&, Values& v) {
                        const Text& whole = TextOf(v[1]);
                        std::u16string_view pattern = TextOf(v[0]);
                        const bool anywhere = pattern.starts_with(u'%');
                        if (anywhere) pattern.remove_prefix(1);
                        for (std::size_t at = 0; at <= whole.size(); ++at) {
                          if (MatchesLike(std::u16string_view(whole).substr(at),
                                          pattern, std::nullopt, rule)) {
                            return Of(static_cast<std::int64_t>(at + 1));
                          }
                          if (!anywhere) break;
                        }
                        return Of(std::int64_t{0});
                      }));
}

Bound Replicate(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  const Bound text = AsText(binder, arguments[0]);
  const SqlType type = Longest(text->type);
  return binder.Fold(binder.Function(
      type, {text, AsInt(binder, arguments[1])}, [type](Context&, Values& v) {
        if (IntOf(v[1]) < 0) return Value();
        const Text& part = TextOf(v[0]);
        const std::size_t limit =
            type.length == kMax ? (1u << 30) : static_cast<std::size_t>(type.length);
        Text result;
        for (std::int64_t i = 0; i < IntOf(v[1]) && !part.empty(); ++i) {
          if (result.size() >= limit) break;
          result += part;
        }
        if (result.size() > limit) result.resize(limit);
        return Of(std::move(result));
      }));
}

Bound Space(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  return binder.Fold(binder.Function(
      VarCharType(8000), {AsInt(binder, arguments[0])}, [](Context&, Values& v) {
        if (IntOf(v[0]) < 0) return Value();
        return Of(Text(
            static_cast<std::size_t>(std::min<std::int64_t>(IntOf(v[0]), 8000)), u' '));
      }));
}

Bound Stuff(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 4, 4);
  const Bound text = AsText(binder, arguments[0]);
  return binder.Fold(binder.Function(
      Longest(text->type),
      {text, AsInt(binder, arguments[1]), AsInt(binder, arguments[2]),
       AsText(binder, arguments[3])},
      [](Context&, Values& v) {
        const Text& whole = TextOf(v[0]);
        const std::int64_t first = IntOf(v[1]);
        if (first < 1 || first > static_cast<std::int64_t>(whole.size()) ||
            IntOf(v[2]) < 0) {
          return Value();
        }
        Text result = whole;
        result.replace(static_cast<std::size_t>(first - 1),
                       static_cast<std::size_t>(IntOf(v[2])), TextOf(v[3]));
        return Of(std::move(result));
      }));
}

Bound Concat(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 254);
  bool national = false, unlimited = false;
  for (const Bound& argument : arguments) {
    national = national || IsNationalText(argument->type.id);
    unlimited = unlimited || argument->type.length == kMax;
  }
  const SqlType type = national ? NVarCharType(unlimited ? kMax : 4000)
                                : VarCharType(unlimited ? kMax : 8000);
  Arguments texts;
  for (const Bound& argument : arguments) texts.push_back(AsText(binder, argument));
  return binder.Fold(binder.Function(
      type, std::move(texts),
      [](Context&, Values& v) {
        Text text;
        for (const Value& part : v) {
          if (!part.IsNull()) text += TextOf(part);
        }
        return Of(std::move(text));
      },
      true));
}

Bound ConcatWithSeparator(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 3, 254);
  Arguments texts;
  bool national = false;
  for (const Bound& argument : arguments) {
    national = national || IsNationalText(argument->type.id);
    texts.push_back(AsText(binder, argument));
  }
  return binder.Fold(binder.Function(
      national ? NVarCharType(4000) : VarCharType(8000), std::move(texts),
      [](Context&, Values& v) {
        Text text;
        bool first = true;
        for (std::size_t i = 1; i < v.size(); ++i) {
          if (v[i].IsNull()) continue;
          if (!first && !v[0].IsNull()) text += TextOf(v[0]);
          first = false;
          text += TextOf(v[i]);
        }
        return Of(std::move(text));
      },
      true));
}

Bound Str(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 3);
  Arguments parts{binder.Convert(arguments[0], TypeOf(TypeId::kFloat))};
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    parts.push_back(AsInt(binder, arguments[i]));
  }
  return binder.Fold(binder.Function(VarCharType(8000), parts, [](Context&, Values& v) {
    const std::int64_t width = v.size() > 1 ? IntOf(v[1]) : 10;
    const std::int64_t digits =
        v.size() > 2 ? std::min<std::int64_t>(IntOf(v[2]), 16) : 0;
    if (width < 0 || digits < 0 || width > 8000) return Value();
    char buffer[512];
    std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits),
                  std::get<double>(v[0].held));
    std::string text = buffer;
    const auto size = static_cast<std::size_t>(width);
    if (text.size() > size && text.find('.') <= size) text.resize(size);
    if (text.size() > size) text = std::string(size, '*');
    return Of(Utf16(std::string(size - text.size(), ' ') + text));
  }));
}

Bound Char(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  SqlType type = TypeOf(TypeId::kChar);
  return binder.Fold(
      binder.Function(type, {AsInt(binder, arguments[0])}, [](Context&, Values& v) {
        if (IntOf(v[0]) < 0 || IntOf(v[0]) > 255) return Value();
        const std::uint8_t byte[] = {static_cast<std::uint8_t>(IntOf(v[0]))};
        return Of(Text(wire::DecodeText(byte, 1252)));
      }));
}
Bound NChar(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  return binder.Fold(binder.Function(
      NVarCharType(2), {AsInt(binder, arguments[0])}, [](Context&, Values& v) {
        const std::int64_t code = IntOf(v[0]);
        if (code < 0 || code > 0x10FFFF) return Value();
        if (code < 0x10000) return Of(Text(1, static_cast<char16_t>(code)));
        const auto rest = static_cast<std::uint32_t>(code - 0x10000);
        return Of(Text{static_cast<char16_t>(0xD800 + (rest >> 10)),
                       static_cast<char16_t>(0xDC00 + (rest & 0x3FF))});
      }));
}
Bound Ascii(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  return binder.Fold(binder.Function(
      TypeOf(TypeId::kInt), {AsText(binder, arguments[0])}, [](Context&, Values& v) {
        const Text& text = TextOf(v[0]);
        if (text.empty()) return Value();
        const std::string bytes = wire::EncodeText(text.substr(0, 1), 1252);
        return Of(std::int64_t{static_cast<std::uint8_t>(bytes[0])});
      }));
}
Bound Unicode(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  return binder.Fold(binder.Function(
      TypeOf(TypeId::kInt), {AsText(binder, arguments[0])}, [](Context&, Values& v) {
        const Text& text = TextOf(v[0]);
        return text.empty() ? Value() : Of(std::int64_t{text[0]});
      }));
}

Bound QuoteName(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 2);
  Arguments parts{binder.Convert(AsText(binder, arguments[0]), NVarCharType(kMax))};
  if (arguments.size() > 1) parts.push_back(AsText(binder, arguments[1]));
  return binder.Fold(binder.Function(NVarCharType(258), parts, [](Context&, Values& v) {
    const Text& name = TextOf(v[0]);
    if (name.size() > 128) return Value();
    char16_t open = u'[';
    if (v.size() > 1 && !TextOf(v[1]).empty()) open = TextOf(v[1])[0];
    char16_t close = open;
    switch (open) {
      case u'[':
      case u']':
        open = u'[';
        close = u']';
        break;
      case u'(':
      case u')':
        open = u'(';
        close = u')';
        break;
      case u'<':
      case u'>':
        open = u'<';
        close = u'>';
        break;
      case u'{':
      case u'}':
        open = u'{';
        close = u'}';
        break;
      case u'\'':
      case u'"':
      case u'`':
        break;
      default:
        return Value();
    }
    Text quoted(1, open);
    for (const char16_t unit : name) quoted.append(unit == close ? 2 : 1, unit);
    return Of(quoted + close);
  }));
}

// Clock and dice.

template <typename F>
Bound ClockFunction(Binder& binder, const SqlType& type, F f) {
  Bound bound = binder.Function(type, {}, [f, type](Context& context, Values&) {
    return Of(*RoundTo(f(context.Now()), type));
  });
  bound->is_volatile = true;
  bound->nullable = false;
  return bound;
}
DateTimeValue Local(DateTimeValue now) {
  now.offset_minutes = 0;
  return now;
}
DateTimeValue Utc(const DateTimeValue& now) {
  return Local(AddTicks(now, -now.offset_minutes * kTicksPerMinute).value_or(now));
}
Bound GetDate(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  return ClockFunction(binder, TypeOf(TypeId::kDateTime), Local);
}
Bound GetUtcDate(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  return ClockFunction(binder, TypeOf(TypeId::kDateTime), Utc);
}
Bound SysDateTime(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  return ClockFunction(binder, TypeOf(TypeId::kDateTime2), Local);
}
Bound SysUtcDateTime(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  return ClockFunction(binder, TypeOf(TypeId::kDateTime2), Utc);
}
Bound SysDateTimeOffset(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  return ClockFunction(binder, TypeOf(TypeId::kDateTimeOffset),
                       [](const DateTimeValue& now) { return now; });
}

Bound NewId(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  Bound bound = binder.Function(TypeOf(TypeId::kUniqueIdentifier), {},
                                [](Context& context, Values&) {
                                  Value value;
                                  value.held = context.environment.NewGuid();
                                  return value;
                                });
  bound->is_volatile = true;
  return bound;
}
Bound Rand(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  Bound bound = binder.Function(
      TypeOf(TypeId::kFloat), {},
      [](Context& context, Values&) { return OfDouble(context.environment.Random()); });
  bound->is_volatile = true;
  return binder.Fold(bound);
}

// Dates.

DatePart PartOf(const ast::Call& call) {
  const auto part = ParseDatePart(call.date_part);
  if (!part) {
    RaiseSql(
        155, 15, 1,
        "'" + call.date_part + "' is not a recognized " + Shown(call) + " option.");
  }
  return *part;
}

// A date argument: text is read as datetime2 or datetimeoffset.
Bound AsDate(Binder& binder, const Bound& argument, const ast::Call& call, int number) {
  if (IsDateTime(argument->type.id)) return argument;
  if (IsText(argument->type.id) || argument->type.id == TypeId::kNull) {
    return binder.Convert(argument, TypeOf(TypeId::kDateTimeOffset));
  }
  if (IsNumber(argument->type.id)) {
    return binder.Convert(argument, TypeOf(TypeId::kDateTime));
  }
  RaiseArgument(argument->type, number, call);
}

Bound DateAdd(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 3, 3);
  const DatePart part = PartOf(call);
  Bound date = arguments[1];
  if (IsText(date->type.id) || date->type.id == TypeId::kNull ||
      IsNumber(date->type.id)) {
    date = binder.Convert(date, TypeOf(TypeId::kDateTime));
  } else if (!IsDateTime(date->type.id)) {
    RaiseArgument(date->type, 3, call);
  }
  const SqlType type = date->type;
  const bool is_time = part >= DatePart::kHour;
  if ((type.id == TypeId::kDate && is_time) || (type.id == TypeId::kTime && !is_time) ||
      part == DatePart::kTzOffset) {
    RaiseSql(9810, 16, 1,
             "The datepart " + call.date_part +
                 " is not supported by date function dateadd for data type " +
                 TypeWord(type) + ".");
  }
  const Bound count = binder.Convert(arguments[0], TypeOf(TypeId::kBigInt), true);
  return binder.Fold(
      binder.Function(type, {count, date}, [part, type](Context&, Values& v) {
        const auto& from = std::get<DateTimeValue>(v[1].held);
        auto moved = AddDatePart(from, part, IntOf(v[0]));
        if (type.id == TypeId::kTime) {
          // A time goes round the clock.
          auto day = from;
          day.days = 700'000;
          moved = AddDatePart(day, part, IntOf(v[0]));
          if (moved) moved->days = 0;
        }
        if (moved) {
          const std::int16_t offset = moved->offset_minutes;
          moved = RoundTo(*moved, type);
          if (moved && type.id == TypeId::kDateTimeOffset) {
            moved->offset_minutes = offset;
          }
        }
        if (!moved) {
          RaiseSql(517, 16, 1,
                   "Adding a value to a '" + TypeWord(type) +
                       "' column caused an overflow.");
        }
        return Of(*moved);
      }));
}

DateTimeValue Moment(const Value& value, bool utc) {
  DateTimeValue date = std::get<DateTimeValue>(value.held);
  return utc ? Utc(date) : date;
}

Bound Difference(Binder& binder, const ast::Call& call, Arguments& arguments,
                 bool big) {
  Require(call, 3, 3);
  const DatePart part = PartOf(call);
  const Bound from = AsDate(binder, arguments[0], call, 2);
  const Bound to = AsDate(binder, arguments[1], call, 3);
  const SqlType type = TypeOf(big ? TypeId::kBigInt : TypeId::kInt);
  // Moments with offsets are compared in UTC.
  return binder.Fold(
      binder.Function(type, {from, to}, [part, big, call](Context&, Values& v) {
        const std::int64_t number =
            DateDifference(Moment(v[0], true), Moment(v[1], true), part);
        if (!big && (number > INT32_MAX || number < INT32_MIN)) {
          RaiseSql(535, 16, 0,
                   "The datediff function resulted in an overflow. The number of "
                   "dateparts separating two date/time instances is too large. Try to "
                   "use datediff with a less precise datepart.");
        }
        return Of(number);
      }));
}
Bound DateDiff(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return Difference(binder, call, arguments, false);
}
Bound DateDiffBig(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return Difference(binder, call, arguments, true);
}

Bound PartFunction(Binder& binder, const ast::Call& call, const Bound& argument,
                   DatePart part) {
  const Bound date = AsDate(binder, argument, call, 2);
  if (part == DatePart::kTzOffset && date->type.id != TypeId::kDateTimeOffset &&
      date->type.id != TypeId::kDateTime2) {
    RaiseSql(9810, 16, 5,
             "The datepart " + call.date_part + " is not supported by date function " +
                 Shown(call) + " for data type " + TypeWord(date->type) + ".");
  }
  const bool datetime = date->type.id == TypeId::kDateTime;
  return binder.Fold(binder.Function(
      TypeOf(TypeId::kInt), {date}, [part, datetime](Context& context, Values& v) {
        DateTimeValue value = std::get<DateTimeValue>(v[0].held);
        // A datetime's thirds of a millisecond count as rounded.
        if (datetime && part == DatePart::kMillisecond) {
          value.ticks = (value.ticks + 5'000) / 10'000 * 10'000;
        }
        return Of(DatePartOf(value, part, context.environment.settings().datefirst));
      }));
}
Bound DatePartFunction(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  return PartFunction(binder, call, arguments[0], PartOf(call));
}
Bound Year(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  return PartFunction(binder, call, arguments[0], DatePart::kYear);
}
Bound Month(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  return PartFunction(binder, call, arguments[0], DatePart::kMonth);
}
Bound Day(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  return PartFunction(binder, call, arguments[0], DatePart::kDay);
}
Bound DateName(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  const DatePart part = PartOf(call);
  const Bound date = AsDate(binder, arguments[0], call, 2);
  return binder.Fold(
      binder.Function(NVarCharType(30), {date}, [part](Context& context, Values& v) {
        const auto& value = std::get<DateTimeValue>(v[0].held);
        if (part == DatePart::kMonth) {
          return Of(Utf16(MonthName(PartsOf(value).month)));
        }
        if (part == DatePart::kWeekday) {
          return Of(Utf16(WeekdayName(DayOfWeek(value.days))));
        }
        if (part == DatePart::kTzOffset)
          return Of(Utf16(OffsetText(value.offset_minutes)));
        return Of(Utf16(std::to_string(
            DatePartOf(value, part, context.environment.settings().datefirst))));
      }));
}
Bound EndOfMonth(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 2);
  Arguments parts{binder.Convert(arguments[0], TypeOf(TypeId::kDate))};
  if (arguments.size() > 1) parts.push_back(AsInt(binder, arguments[1]));
  return binder.Fold(
      binder.Function(TypeOf(TypeId::kDate), parts, [](Context&, Values& v) {
        const auto moved =
            AddDatePart(std::get<DateTimeValue>(v[0].held), DatePart::kMonth,
                        v.size() > 1 ? IntOf(v[1]) : 0);
        if (!moved) {
          RaiseSql(517, 16, 1, "Adding a value to a 'date' column caused an overflow.");
        }
        const CalendarParts at = PartsOf(*moved);
        return Of(DateTimeValue{
            DaysOfDate(at.year, at.month, DaysInMonth(at.year, at.month)), 0, 0});
      }));
}
Bound DateFromParts(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 3, 3);
  Arguments parts;
  for (const Bound& argument : arguments) parts.push_back(AsInt(binder, argument));
  return binder.Fold(
      binder.Function(TypeOf(TypeId::kDate), parts, [](Context&, Values& v) {
        const std::int64_t y = IntOf(v[0]), m = IntOf(v[1]), d = IntOf(v[2]);
        if (y < 1 || y > 9999 || m < 1 || m > 12 || d < 1 ||
            d > DaysInMonth(static_cast<int>(y), static_cast<int>(m))) {
          RaiseSql(289, 16, 1,
                   "Cannot construct data type date, some of the arguments have values "
                   "which are not valid.");
        }
        return Of(DateTimeValue{
            DaysOfDate(static_cast<int>(y), static_cast<int>(m), static_cast<int>(d)),
            0, 0});
      }));
}
Bound OffsetFunction(Binder& binder, const ast::Call& call, Arguments& arguments,
                     bool switches) {
  Require(call, 2, 2);
  const Bound date = switches
                         ? binder.Convert(arguments[0], TypeOf(TypeId::kDateTimeOffset))
                         : AsDate(binder, arguments[0], call, 1);
  SqlType type = TypeOf(TypeId::kDateTimeOffset);
  if (date->type.id != TypeId::kDateTime) type.scale = date->type.scale;
  const bool number = IsNumber(arguments[1]->type.id);
  const Bound zone =
      number ? AsInt(binder, arguments[1]) : AsText(binder, arguments[1]);
  return binder.Fold(
      binder.Function(type, {date, zone}, [switches, number](Context&, Values& v) {
        std::optional<int> offset;
        if (number) {
          const std::int64_t minutes = IntOf(v[1]);
          if (minutes >= -840 && minutes <= 840) offset = static_cast<int>(minutes);
        } else {
          offset = ParseOffset(Utf8(TextOf(v[1])));
        }
        if (!offset) {
          RaiseSql(9812, 16, 0,
                   "The timezone provided to builtin function is invalid.");
        }
        DateTimeValue value = std::get<DateTimeValue>(v[0].held);
        if (switches) {
          value = AddTicks(value, (*offset - value.offset_minutes) * kTicksPerMinute)
                      .value_or(value);
        }
        value.offset_minutes = static_cast<std::int16_t>(*offset);
        return Of(value);
      }));
}
Bound SwitchOffset(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return OffsetFunction(binder, call, arguments, true);
}
Bound ToDateTimeOffset(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return OffsetFunction(binder, call, arguments, false);
}

// Numbers.

Bound NumberFunction(Binder& binder, const ast::Call& call, Arguments& arguments,
                     double (*f)(double)) {
  Require(call, 1, 1);
  return binder.Fold(binder.Function(
      TypeOf(TypeId::kFloat), {binder.Convert(arguments[0], TypeOf(TypeId::kFloat))},
      [f](Context&, Values& v) {
        const double result = f(std::get<double>(v[0].held));
        if (!std::isfinite(result)) {
          RaiseSql(3623, 16, 1, "An invalid floating point operation occurred.");
        }
        return OfDouble(result);
      }));
}

// The type of ABS, CEILING, FLOOR, ROUND and SIGN.
Bound AsNumber(Binder& binder, const Bound& argument, const ast::Call& call) {
  const SqlType& type = argument->type;
  if (IsText(type.id) || type.id == TypeId::kNull) {
    return binder.Convert(argument, TypeOf(TypeId::kFloat));
  }
  if (!IsNumber(type.id)) RaiseArgument(type, 1, call);
  if (type.id == TypeId::kBit) return binder.Convert(argument, TypeOf(TypeId::kFloat));
  if (type.id == TypeId::kTinyInt || type.id == TypeId::kSmallInt) {
    return binder.Convert(argument, TypeOf(TypeId::kInt));
  }
  if (type.id == TypeId::kReal) return binder.Convert(argument, TypeOf(TypeId::kFloat));
  if (type.id == TypeId::kSmallMoney) {
    return binder.Convert(argument, TypeOf(TypeId::kMoney));
  }
  return argument;
}

enum class Rounding : std::uint8_t { kAbsolute, kCeiling, kFloor, kSign };

Value Rounded(Value value, Rounding how) {
  if (auto* integer = std::get_if<std::int64_t>(&value.held)) {
    if (how == Rounding::kAbsolute && *integer < 0) *integer = -*integer;
    if (how == Rounding::kSign) *integer = (*integer > 0) - (*integer < 0);
    return value;
  }
  if (auto* number = std::get_if<double>(&value.held)) {
    switch (how) {
      case Rounding::kAbsolute:
        *number = std::fabs(*number);
        break;
      case Rounding::kCeiling:
        *number = std::ceil(*number);
        break;
      case Rounding::kFloor:
        *number = std::floor(*number);
        break;
      case Rounding::kSign:
        *number = (*number > 0) - (*number < 0);
        break;
    }
    return value;
  }
  auto& decimal = std::get<Decimal>(value.held);
  const __int128 unit = PowerOfTen(decimal.scale);
  switch (how) {
    case Rounding::kAbsolute:
      if (decimal.unscaled < 0) decimal.unscaled = -decimal.unscaled;
      break;
    case Rounding::kSign:
      decimal.unscaled = unit * ((decimal.unscaled > 0) - (decimal.unscaled < 0));
      break;
    default: {
      __int128 whole = decimal.unscaled / unit;
      const __int128 rest = decimal.unscaled % unit;
      if (how == Rounding::kCeiling && rest > 0) ++whole;
      if (how == Rounding::kFloor && rest < 0) --whole;
      decimal.unscaled = whole * unit;
      break;
    }
  }
  return value;
}

Bound RoundingFunction(Binder& binder, const ast::Call& call, Arguments& arguments,
                       Rounding how) {
  Require(call, 1, 1);
  const Bound number = AsNumber(binder, arguments[0], call);
  SqlType type = number->type;
  if (type.id == TypeId::kInt) type.precision = 0;
  const bool whole = how == Rounding::kCeiling || how == Rounding::kFloor;
  if (type.id == TypeId::kDecimal && whole) type = DecimalType(type.precision, 0);
  const bool drop = type.id == TypeId::kDecimal && whole;
  return binder.Fold(binder.Function(type, {number}, [how, drop](Context&, Values& v) {
    Value value = Rounded(std::move(v[0]), how);
    if (drop) value.held = *Rescale(std::get<Decimal>(value.held), 0);
    return value;
  }));
}
Bound Absolute(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return RoundingFunction(binder, call, arguments, Rounding::kAbsolute);
}
Bound Ceiling(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return RoundingFunction(binder, call, arguments, Rounding::kCeiling);
}
Bound Floor(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return RoundingFunction(binder, call, arguments, Rounding::kFloor);
}
Bound SignOf(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return RoundingFunction(binder, call, arguments, Rounding::kSign);
}

Bound Round(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 3);
  const Bound number = AsNumber(binder, arguments[0], call);
  Arguments parts{number, AsInt(binder, arguments[1])};
  if (arguments.size() > 2) parts.push_back(AsInt(binder, arguments[2]));
  SqlType type = number->type;
  if (type.id == TypeId::kInt) type.precision = 0;
  return binder.Fold(binder.Function(type, parts, [type](Context&, Values& v) {
    const std::int64_t digits = std::clamp<std::int64_t>(IntOf(v[1]), -38, 38);
    const bool truncate = v.size() > 2 && IntOf(v[2]) != 0;
    if (auto* real = std::get_if<double>(&v[0].held)) {
      const double unit = std::pow(10.0, static_cast<double>(digits));
      *real = (truncate ? std::trunc(*real * unit) : std::round(*real * unit)) / unit;
      return std::move(v[0]);
    }
    const bool integer = IsInteger(type.id);
    Decimal decimal = integer ? Decimal{IntOf(v[0]), 0} : std::get<Decimal>(v[0].held);
    const std::uint8_t scale = decimal.scale;
    if (digits < 0) {
      // To tens and hundreds: move the point, round, move it back.
      const __int128 unit =
          PowerOfTen(static_cast<unsigned>(std::min<std::int64_t>(scale - digits, 38)));
      const __int128 rest = decimal.unscaled % unit;
      decimal.unscaled -= rest;
      const __int128 twice = 2 * (rest < 0 ? -rest : rest);
      if (!truncate && twice >= unit) decimal.unscaled += rest < 0 ? -unit : unit;
    } else if (digits < scale) {
      decimal = *Rescale(*Rescale(decimal, static_cast<std::uint8_t>(digits), truncate),
                         scale);
    }
    if (integer) {
      if (type.id == TypeId::kInt &&
          (decimal.unscaled > INT32_MAX || decimal.unscaled < INT32_MIN)) {
        RaiseSql(8115, 16, 2,
                 "Arithmetic overflow error converting expression to data type int.");
      }
      return Of(static_cast<std::int64_t>(decimal.unscaled));
    }
    v[0].held = decimal;
    return std::move(v[0]);
  }));
}

Bound Power(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  const Bound base = AsNumber(binder, arguments[0], call);
  SqlType type = base->type;
  if (type.id == TypeId::kInt) type.precision = 0;
  if (type.id == TypeId::kDecimal) type = DecimalType(38, type.scale);
  const SqlType real = TypeOf(TypeId::kFloat);
  const Bound result = binder.Function(
      real, {binder.Convert(base, real), binder.Convert(arguments[1], real)},
      [](Context&, Values& v) {
        const double power =
            std::pow(std::get<double>(v[0].held), std::get<double>(v[1].held));
        if (!std::isfinite(power)) {
          RaiseSql(3623, 16, 1, "An invalid floating point operation occurred.");
        }
        return OfDouble(power);
      });
  return binder.Convert(binder.Fold(result), type);
}
double SquareOf(double x) { return x * x; }
Bound Sqrt(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, std::sqrt);
}
Bound Square(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, SquareOf);
}
Bound Exp(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, std::exp);
}
Bound Log(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, std::log);
}
Bound Log10(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, std::log10);
}
Bound Sin(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, std::sin);
}
Bound Cos(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, std::cos);
}
Bound Pi(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  return binder.Constant(TypeOf(TypeId::kFloat), OfDouble(3.14159265358979323846));
}

// Choices.

Bound NotNullCondition(const Bound& operand) {
  auto bound = std::make_shared<BoundExpression>();
  bound->slots = operand->slots;
  bound->is_volatile = operand->is_volatile;
  bound->test = [operand](Context& context) {
    return operand->Get(context).IsNull() ? Truth::kFalse : Truth::kTrue;
  };
  return bound;
}

Bound Coalesce(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 254);
  std::vector<std::pair<Bound, Bound>> branches;
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    branches.emplace_back(NotNullCondition(arguments[i]), arguments[i]);
  }
  return binder.Branches(std::move(branches), arguments.back());
}

Bound IsNullFunction(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  SqlType type = arguments[0]->type;
  if (type.id == TypeId::kNull) type = arguments[1]->type;
  if (type.id == TypeId::kInt) type.precision = 0;
  Bound bound = binder.Function(
      type, {binder.Convert(arguments[0], type), binder.Convert(arguments[1], type)},
      [](Context&, Values& v) { return v[v[0].IsNull() ? 1 : 0]; }, true);
  bound->nullable = arguments[1]->nullable;
  bound->coercibility = arguments[0]->coercibility;
  return binder.Fold(bound);
}

Bound NullIf(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  const Bound equal =
      binder.Compare(ast::BinaryOperator::kEqual, arguments[0], arguments[1]);
  Bound null = binder.Constant(arguments[0]->type, Value());
  return binder.Branches({{equal, null}}, arguments[0]);
}

Bound IfElse(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 3, 3);
  return binder.Branches({{arguments[0], arguments[1]}}, arguments[2]);
}

Bound Choose(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 254);
  const Bound index = AsInt(binder, arguments[0]);
  std::vector<std::pair<Bound, Bound>> branches;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    branches.emplace_back(
        binder.Compare(
            ast::BinaryOperator::kEqual, index,
            binder.Constant(TypeOf(TypeId::kBigInt), Of(static_cast<std::int64_t>(i)))),
        arguments[i]);
  }
  return binder.Branches(std::move(branches), nullptr);
}

Bound Extreme(Binder& binder, const ast::Call& call, Arguments& arguments, int sign) {
  Require(call, 1, 254);
  const SqlType type = binder.BranchType(arguments);
  Arguments parts;
  for (const Bound& argument : arguments)
    parts.push_back(binder.Convert(argument, type));
  return binder.Fold(binder.Function(
      type, parts,
      [type, sign, rule = binder.RuleFor(type)](Context&, Values& v) {
        Value best;
        for (Value& value : v) {
          if (value.IsNull()) continue;
          if (best.IsNull() || CompareValues(value, best, type, rule) * sign > 0) {
            best = value;
          }
        }
        return best;
      },
      true));
}
Bound Greatest(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return Extreme(binder, call, arguments, 1);
}
Bound Least(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return Extreme(binder, call, arguments, -1);
}

Bound Attempt(Binder& binder, const ast::Call& call, Arguments& arguments,
              const SqlType& to) {
  Require(call, 1, 1);
  const SqlType from = arguments[0]->type;
  return binder.Fold(binder.Function(
      TypeOf(TypeId::kInt), {arguments[0]},
      [from, to, options = binder.Options()](Context&, Values& v) {
        if (v[0].IsNull()) return Of(std::int64_t{0});
        if (IsText(from.id) && Trim(Utf8(TextOf(v[0]))).empty()) {
          return Of(std::int64_t{0});
        }
        try {
          ConvertValue(v[0], from, to, options);
          return Of(std::int64_t{1});
        } catch (const SqlError&) {
          return Of(std::int64_t{0});
        }
      },
      true));
}
Bound IsDate(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return Attempt(binder, call, arguments, TypeOf(TypeId::kDateTime));
}
Bound IsNumeric(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return Attempt(binder, call, arguments, TypeOf(TypeId::kFloat));
}

Bound HashBytes(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  const SqlType from = arguments[1]->type;
  if (!IsText(from.id) && !IsBinary(from.id)) RaiseArgument(from, 2, call);
  const Bound bytes = binder.Convert(arguments[1], VarBinaryType(kMax), true);
  return binder.Fold(binder.Function(
      VarBinaryType(8000), {AsText(binder, arguments[0]), bytes},
      [](Context&, Values& v) {
        const std::string name = LowerAscii(Utf8(TextOf(v[0])));
        const EVP_MD* digest = name == "md5"                     ? EVP_md5()
                               : name == "sha" || name == "sha1" ? EVP_sha1()
                               : name == "sha2_256"              ? EVP_sha256()
                               : name == "sha2_512"              ? EVP_sha512()
                                                                 : nullptr;
        if (digest == nullptr) return Value();
        const Bytes& data = std::get<Bytes>(v[1].held);
        Bytes hash(EVP_MAX_MD_SIZE);
        unsigned size = 0;
        EVP_Digest(data.data(), data.size(), hash.data(), &size, digest, nullptr);
        hash.resize(size);
        Value value;
        value.held = std::move(hash);
        return value;
      }));
}

// What happened.

template <typename F>
Bound ErrorFunction(Binder& binder, const ast::Call& call, const SqlType& type, F f) {
  Require(call, 0, 0);
  Bound bound = binder.Function(type, {}, [f](Context& context, Values&) {
    if (context.session.caught.empty()) return Value();
    return f(context.session.caught.back());
  });
  bound->is_volatile = true;
  return bound;
}
Bound ErrorNumber(Binder& binder, const ast::Call& call, Arguments&) {
  return ErrorFunction(binder, call, TypeOf(TypeId::kInt),
                       [](const Message& m) { return Of(std::int64_t{m.number}); });
}
Bound ErrorSeverity(Binder& binder, const ast::Call& call, Arguments&) {
  return ErrorFunction(binder, call, TypeOf(TypeId::kInt),
                       [](const Message& m) { return Of(std::int64_t{m.severity}); });
}
Bound ErrorState(Binder& binder, const ast::Call& call, Arguments&) {
  return ErrorFunction(binder, call, TypeOf(TypeId::kInt),
                       [](const Message& m) { return Of(std::int64_t{m.state}); });
}
Bound ErrorLine(Binder& binder, const ast::Call& call, Arguments&) {
  return ErrorFunction(binder, call, TypeOf(TypeId::kInt),
                       [](const Message& m) { return Of(std::int64_t{m.line}); });
}
Bound ErrorMessage(Binder& binder, const ast::Call& call, Arguments&) {
  return ErrorFunction(binder, call, NVarCharType(4000),
                       [](const Message& m) { return Of(Utf16(m.text)); });
}
Bound ErrorProcedure(Binder& binder, const ast::Call& call, Arguments&) {
  return ErrorFunction(binder, call, NVarCharType(128), [](const Message& m) {
    return m.procedure.empty() ? Value() : Of(Utf16(m.procedure));
  });
}
Bound TransactionState(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  Bound bound =
      binder.Function(TypeOf(TypeId::kSmallInt), {}, [](Context& context, Values&) {
        return Of(std::int64_t{context.environment.transaction_state()});
      });
  bound->is_volatile = true;
  return bound;
}
Bound RowCountBig(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  Bound bound = binder.Function(
      TypeOf(TypeId::kBigInt), {},
      [](Context& context, Values&) { return Of(context.session.row_count); });
  bound->is_volatile = true;
  return bound;
}

const std::map<std::string, BuiltIn>& Table() {
  static const std::map<std::string, BuiltIn> kTable = {
      {"UPPER", Upper},
      {"LOWER", Lower},
      {"LTRIM", LeftTrim},
      {"RTRIM", RightTrim},
      {"TRIM", BothTrim},
      {"REVERSE", Reverse},
      {"LEN", Length},
      {"DATALENGTH", DataLength},
      {"SUBSTRING", Substring},
      {"LEFT", Left},
      {"RIGHT", Right},
      {"REPLACE", Replace},
      {"CHARINDEX", CharIndex},
      {"PATINDEX", PatIndex},
      {"REPLICATE", Replicate},
      {"SPACE", Space},
      {"STUFF", Stuff},
      {"CONCAT", Concat},
      {"CONCAT_WS", ConcatWithSeparator},
      {"STR", Str},
      {"CHAR", Char},
      {"NCHAR", NChar},
      {"ASCII", Ascii},
      {"UNICODE", Unicode},
      {"QUOTENAME", QuoteName},
      {"GETDATE", GetDate},
      {"CURRENT_TIMESTAMP", GetDate},
      {"GETUTCDATE", GetUtcDate},
      {"SYSDATETIME", SysDateTime},
      {"SYSUTCDATETIME", SysUtcDateTime},
      {"SYSDATETIMEOFFSET", SysDateTimeOffset},
      {"NEWID", NewId},
      {"RAND", Rand},
      {"DATEADD", DateAdd},
      {"DATEDIFF", DateDiff},
      {"DATEDIFF_BIG", DateDiffBig},
      {"DATEPART", DatePartFunction},
      {"DATENAME", DateName},
      {"YEAR", Year},
      {"MONTH", Month},
      {"DAY", Day},
      {"EOMONTH", EndOfMonth},
      {"DATEFROMPARTS", DateFromParts},
      {"SWITCHOFFSET", SwitchOffset},
      {"TODATETIMEOFFSET", ToDateTimeOffset},
      {"ABS", Absolute},
      {"CEILING", Ceiling},
      {"FLOOR", Floor},
      {"SIGN", SignOf},
      {"ROUND", Round},
      {"POWER", Power},
      {"SQRT", Sqrt},
      {"SQUARE", Square},
      {"EXP", Exp},
      {"LOG", Log},
      {"LOG10", Log10},
      {"SIN", Sin},
      {"COS", Cos},
      {"PI", Pi},
      {"COALESCE", Coalesce},
      {"ISNULL", IsNullFunction},
      {"NULLIF", NullIf},
      {"IIF", IfElse},
      {"CHOOSE", Choose},
      {"GREATEST", Greatest},
      {"LEAST", Least},
      {"ISDATE", IsDate},
      {"ISNUMERIC", IsNumeric},
      {"HASHBYTES", HashBytes},
      {"ERROR_NUMBER", ErrorNumber},
      {"ERROR_SEVERITY", ErrorSeverity},
      {"ERROR_STATE", ErrorState},
      {"ERROR_LINE", ErrorLine},
      {"ERROR_MESSAGE", ErrorMessage},
      {"ERROR_PROCEDURE", ErrorProcedure},
      {"XACT_STATE", TransactionState},
      {"ROWCOUNT_BIG", RowCountBig}};
  return kTable;
}

// [a-f], [^0-9]: whether `unit` is in the set that begins at `at`; moves past it.
bool InSet(char16_t unit, std::u16string_view pattern, std::size_t& at,
           const CollationRule& rule) {
  const auto compare = [&](char16_t a, char16_t b) {
    return CompareText({&a, 1}, {&b, 1}, rule);
  };
  bool negated = false;
  bool found = false;
  ++at;
  if (at < pattern.size() && pattern[at] == u'^') {
    negated = true;
    ++at;
  }
  for (bool first = true; at < pattern.size() && (first || pattern[at] != u']');
       first = false) {
    if (at + 2 < pattern.size() && pattern[at + 1] == u'-' && pattern[at + 2] != u']') {
      found = found ||
              (compare(unit, pattern[at]) >= 0 && compare(unit, pattern[at + 2]) <= 0);
      at += 3;
    } else {
      found = found || compare(unit, pattern[at]) == 0;
      ++at;
    }
  }
  if (at < pattern.size()) ++at;
  return found != negated;
}

}  // namespace

BuiltIn FindBuiltIn(const std::string& upper) {
  const auto at = Table().find(upper);
  return at == Table().end() ? nullptr : at->second;
}

bool MatchesLike(std::u16string_view text, std::u16string_view pattern,
                 std::optional<char16_t> escape, const CollationRule& rule) {
  // The last %, and how much of the text it has swallowed so far.
  std::optional<std::size_t> star;
  std::size_t star_text = 0;
  std::size_t at = 0;
  std::size_t i = 0;
  for (;;) {
    bool matched = false;
    if (at < pattern.size() && pattern[at] == u'%' && pattern[at] != escape) {
      star = ++at;
      star_text = i;
      continue;
    }
    if (at == pattern.size() && i == text.size()) return true;
    // Blanks at the end of the text need no match.
    if (at == pattern.size() && text.find_first_not_of(u' ', i) == text.npos)
      return true;
    if (at < pattern.size() && i < text.size()) {
      std::size_t next = at;
      const char16_t unit = pattern[at];
      if (escape && unit == *escape && at + 1 < pattern.size()) {
        matched = CompareText(text.substr(i, 1), pattern.substr(at + 1, 1), rule) == 0;
        next = at + 2;
      } else if (unit == u'_') {
        matched = true;
        next = at + 1;
      } else if (unit == u'[') {
        matched = InSet(text[i], pattern, next, rule);
      } else {
        const char16_t a = text[i];
        matched = a == unit || CompareText({&a, 1}, {&unit, 1}, rule) == 0;
        // CompareText ignores blanks, which count here.
        if ((a == u' ') != (unit == u' ')) matched = false;
        next = at + 1;
      }
      if (matched) {
        at = next;
        ++i;
        continue;
      }
    }
    if (!star || star_text >= text.size()) return false;
    at = *star;
    i = ++star_text;
  }
}

}  // namespace mssql_cdc::sim
