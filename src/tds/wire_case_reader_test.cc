#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "base/text.h"
#include "tds/wire_case.h"

namespace mssql_cdc::tds {
namespace {

using columns::Column;
using columns::Kind;

std::string TypeName(const columns::Type& type) {
  switch (type.kind) {
    case Kind::kBool:
      return "bool";
    case Kind::kInt16:
      return "int16";
    case Kind::kInt32:
      return "int32";
    case Kind::kInt64:
      return "int64";
    case Kind::kFloat32:
      return "float32";
    case Kind::kFloat64:
      return "float64";
    case Kind::kDecimal128:
      return fmt::format("decimal({},{})", type.precision, type.scale);
    case Kind::kDate32:
      return "date";
    case Kind::kTimestampNtz:
      return "timestamp_ntz";
    case Kind::kTimestampUtc:
      return "timestamp_utc";
    case Kind::kUtf8:
      return "string";
    case Kind::kBinary:
      return "binary";
  }
  return "";
}

template <typename T>
T ValueAt(const Column& column, std::int64_t row) {
  T value;
  std::memcpy(&value, column.values.data() + static_cast<std::size_t>(row) * sizeof(T),
              sizeof(T));
  return value;
}

std::string DecimalText(__int128 value, unsigned scale) {
  const bool is_negative = value < 0;
  auto magnitude = static_cast<unsigned __int128>(is_negative ? -value : value);
  std::string digits;
  for (unsigned i = 0; magnitude != 0 || i <= scale; ++i) {
    if (i == scale && scale != 0) digits += '.';
    digits += static_cast<char>('0' + static_cast<int>(magnitude % 10));
    magnitude /= 10;
  }
  if (is_negative) digits += '-';
  std::ranges::reverse(digits);
  return digits;
}

std::string TimestampText(std::int64_t us, std::string_view zone) {
  std::int64_t seconds = us / 1'000'000;
  std::int64_t fraction = us % 1'000'000;
  if (fraction < 0) {
    fraction += 1'000'000;
    --seconds;
  }
  return fmt::format("{}{:06}{}", IsoMillis(seconds * 1'000'000).substr(0, 20),
                     fraction, zone);
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\x{:02X}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string_view BytesAt(const Column& column, std::int64_t row) {
  std::int32_t ends[2];
  std::memcpy(ends, column.offsets.data() + static_cast<std::size_t>(row) * 4, 8);
  return std::string_view(reinterpret_cast<const char*>(column.values.data()) + ends[0],
                          static_cast<std::size_t>(ends[1] - ends[0]));
}

std::string CellText(const Column& column, std::int64_t row) {
  const auto index = static_cast<std::size_t>(row);
  if (column.null_count != 0 &&
      (column.validity.data()[index / 8] >> (index % 8) & 1) == 0) {
    return "NULL";
  }
  switch (column.type.kind) {
    case Kind::kBool:
      return (column.values.data()[index / 8] >> (index % 8) & 1) != 0 ? "true"
                                                                       : "false";
    case Kind::kInt16:
      return std::to_string(ValueAt<std::int16_t>(column, row));
    case Kind::kInt32:
      return std::to_string(ValueAt<std::int32_t>(column, row));
    case Kind::kInt64:
      return std::to_string(ValueAt<std::int64_t>(column, row));
    case Kind::kFloat32:
      return fmt::format("{}", ValueAt<float>(column, row));
    case Kind::kFloat64:
      return fmt::format("{}", ValueAt<double>(column, row));
    case Kind::kDecimal128:
      return DecimalText(ValueAt<__int128>(column, row), column.type.scale);
    case Kind::kDate32:
      return IsoMillis(std::int64_t{ValueAt<std::int32_t>(column, row)} *
                       86'400'000'000)
          .substr(0, 10);
    case Kind::kTimestampNtz:
      return TimestampText(ValueAt<std::int64_t>(column, row), "");
    case Kind::kTimestampUtc:
      return TimestampText(ValueAt<std::int64_t>(column, row), "Z");
    case Kind::kUtf8:
      return Quoted(BytesAt(column, row));
    case Kind::kBinary: {
      const std::string_view bytes = BytesAt(column, row);
      return "0x" + HexUpper({reinterpret_cast<const std::uint8_t*>(bytes.data()),
                              bytes.size()});
    }
  }
  return "";
}

// Expands `X*N` of one cell: "ab"*3 and 0xAB*3.
std::string ExpandCell(std::string_view cell) {
  const std::size_t star = cell.rfind('*');
  if (star == std::string_view::npos || star + 1 == cell.size())
    return std::string(cell);
  const std::optional<std::int64_t> count = ParseInt64(cell.substr(star + 1));
  const bool is_text = cell.starts_with('"') && cell[star - 1] == '"';
  if (!count || (!is_text && !cell.starts_with("0x"))) return std::string(cell);
  const std::string_view unit =
      is_text ? cell.substr(1, star - 2) : cell.substr(2, star - 2);
  std::string expanded(is_text ? "\"" : "0x");
  for (std::int64_t i = 0; i < *count; ++i) expanded += unit;
  return is_text ? expanded + '"' : expanded;
}

std::string ExpandRow(std::string_view line) {
  std::string row;
  while (true) {
    const std::size_t bar = line.find(" | ");
    row += ExpandCell(line.substr(0, bar));
    if (bar == std::string_view::npos) return row;
    row += " | ";
    line.remove_prefix(bar + 3);
  }
}

std::string SingleSpaced(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string word;
  std::string joined;
  while (words >> word) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

class WireParser {
 public:
  void Line(std::string_view line) {
    if (line.empty() || line[0] == '#') return;
    if (line[0] != ' ') {
      section_ = Trim(line);
      saw_result_ = false;
      return;
    }
    std::string_view text = Trim(line);
    if (section_ == "wire") {
      Hex(text.substr(0, text.find('#')));
    } else if (text.empty() || text[0] == '#') {
      return;
    } else if (section_ == "error") {
      case_.error = text;
    } else if (section_ == "schema") {
      Into(case_.schema, SingleSpaced(text));
    } else {
      ASSERT_EQ(section_, "rows") << "unknown section";
      Into(case_.rows, ExpandRow(text));
    }
  }
  WireCase Finish() {
    EXPECT_FALSE(in_group_);
    return std::move(case_);
  }

 private:
  // Files of one result set leave the "result" lines out.
  void Into(std::vector<std::string>& lines, std::string line) {
    if (!saw_result_ && line != "result") lines.push_back("result");
    saw_result_ = true;
    lines.push_back(std::move(line));
  }

  void Hex(std::string_view text) {
    std::size_t i = 0;
    while (i < text.size()) {
      if (text[i] == ' ') {
        ++i;
      } else if (text[i] == '(') {
        in_group_ = true;
        group_begin_ = case_.wire.size();
        ++i;
      } else if (text[i] == ')') {
        ASSERT_TRUE(in_group_ && i + 2 < text.size() && text[i + 1] == '*');
        std::size_t digits = i + 2;
        while (digits < text.size() && std::isdigit(text[digits]) != 0) ++digits;
        const auto count = ParseInt64(text.substr(i + 2, digits - i - 2));
        ASSERT_TRUE(count.has_value());
        const std::vector<std::uint8_t> unit(
            case_.wire.begin() + static_cast<long>(group_begin_), case_.wire.end());
        for (std::int64_t n = 1; n < *count; ++n) {
          case_.wire.insert(case_.wire.end(), unit.begin(), unit.end());
        }
        in_group_ = false;
        i = digits;
      } else {
        ASSERT_LT(i + 1, text.size());
        unsigned byte = 0;
        ASSERT_EQ(std::sscanf(std::string(text.substr(i, 2)).c_str(), "%2x", &byte), 1);
        case_.wire.push_back(static_cast<std::uint8_t>(byte));
        i += 2;
      }
    }
  }

  WireCase case_;
  std::string section_;
  bool saw_result_ = false;
  bool in_group_ = false;
  std::size_t group_begin_ = 0;
};

}  // namespace

std::string SchemaLine(const columns::Field& field) {
  return (field.name.empty() ? "\"\"" : field.name) + ' ' + TypeName(field.type) +
         (field.nullable ? "" : " not null");
}

std::string RowLine(const columns::RecordBatch& batch, std::int64_t row) {
  std::string line;
  for (const auto& column : batch.columns) {
    line += (line.empty() ? "" : " | ") + CellText(*column, row);
  }
  return line;
}

WireCase ParseWireCase(std::string_view text) {
  WireParser parser;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    parser.Line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parser.Finish();
}

WireCase ReadWireCase(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  WireCase wire_case = ParseWireCase(text);
  EXPECT_FALSE(wire_case.wire.empty()) << path;
  return wire_case;
}

std::vector<std::string> WireCasePaths() {
  std::vector<std::string> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(MSSQL_CDC_SOURCE_DIR "/tests/wire")) {
    if (entry.path().extension() == ".tdscase") paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

namespace {

TEST(WireCaseReader, ReadsSectionsRepeatsAndComments) {
  const WireCase wire_case = ParseWireCase(
      "# origin\nwire\n  81 (0A 0b)*2 # text\n\nschema\n  id   int32  not null\n"
      "rows\n  1 | \"ab\"*2 | 0x01*3\n");
  EXPECT_EQ(wire_case.wire, (std::vector<std::uint8_t>{0x81, 0x0A, 0x0B, 0x0A, 0x0B}));
  EXPECT_EQ(wire_case.schema,
            (std::vector<std::string>{"result", "id int32 not null"}));
  EXPECT_EQ(wire_case.rows,
            (std::vector<std::string>{"result", "1 | \"abab\" | 0x010101"}));
}

}  // namespace
}  // namespace mssql_cdc::tds
