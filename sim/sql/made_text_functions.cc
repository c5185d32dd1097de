// Built-in functions that make texts: of parts, of numbers, of codes.

#include <algorithm>
#include <cstdio>

#include "sim/sql/function_parts.h"
#include "sim/sql/types.h"
#include "sim/wire/collation.h"

namespace mssql_cdc::sim::builtin {
namespace {

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

}  // namespace

std::span<const FunctionEntry> MadeTextFunctions() {
  static constexpr FunctionEntry kEntries[] = {
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
  };
  return kEntries;
}

}  // namespace mssql_cdc::sim::builtin
