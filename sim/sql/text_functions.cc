// Built-in functions that take texts apart, search, replace and measure them.

#include <openssl/evp.h>

#include <algorithm>

#include "base/text.h"
#include "sim/sql/function_parts.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim::builtin {
namespace {

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

}  // namespace

std::span<const FunctionEntry> TextFunctions() {
  static constexpr FunctionEntry kEntries[] = {
      {"UPPER", Upper},         {"LOWER", Lower},           {"LTRIM", LeftTrim},
      {"RTRIM", RightTrim},     {"TRIM", BothTrim},         {"REVERSE", Reverse},
      {"LEN", Length},          {"DATALENGTH", DataLength}, {"SUBSTRING", Substring},
      {"LEFT", Left},           {"RIGHT", Right},           {"REPLACE", Replace},
      {"CHARINDEX", CharIndex}, {"PATINDEX", PatIndex},     {"HASHBYTES", HashBytes},
  };
  return kEntries;
}

}  // namespace mssql_cdc::sim::builtin
