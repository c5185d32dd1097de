#include "sim/engine/shop.h"

#include <fmt/format.h>

#include "sim/quoting.h"

namespace mssql_cdc::sim {
namespace {

constexpr int kCustomerCount = 30;
constexpr int kProductCount = 20;
constexpr int kOrderCount = 40;

constexpr const char* kTables = R"(
CREATE DATABASE shop
GO
USE shop
GO
EXEC sys.sp_cdc_enable_db
GO
CREATE TABLE dbo.customers (
  customer_id int NOT NULL CONSTRAINT pk_customers PRIMARY KEY,
  name nvarchar(100) NOT NULL,
  email varchar(200) NULL,
  city nvarchar(60) NULL,
  is_active bit NOT NULL CONSTRAINT df_customers_active DEFAULT (1),
  note nvarchar(max) NULL,
  row_version rowversion NOT NULL)
GO
CREATE TABLE dbo.products (
  product_id smallint NOT NULL CONSTRAINT pk_products PRIMARY KEY,
  sku char(8) NOT NULL CONSTRAINT uq_products_sku UNIQUE,
  title nvarchar(120) NOT NULL,
  price money NOT NULL,
  weight_kg decimal(9, 3) NULL,
  rating real NULL)
GO
CREATE TABLE dbo.orders (
  order_id int IDENTITY(1, 1) NOT NULL CONSTRAINT pk_orders PRIMARY KEY,
  customer_id int NOT NULL,
  status varchar(20) NOT NULL,
  total decimal(18, 2) NOT NULL,
  placed_at datetime2(7) NOT NULL,
  ship_date date NULL)
GO
CREATE TABLE dbo.order_lines (
  order_id int NOT NULL,
  line_no smallint NOT NULL,
  product_id smallint NOT NULL,
  quantity int NOT NULL,
  unit_price money NOT NULL,
  CONSTRAINT pk_order_lines PRIMARY KEY (order_id, line_no))
GO
CREATE TABLE dbo.events (
  event_id uniqueidentifier NOT NULL CONSTRAINT pk_events PRIMARY KEY,
  happened_at datetimeoffset(7) NOT NULL,
  logged_at datetime2(3) NOT NULL,
  kind varchar(30) NOT NULL,
  payload varbinary(200) NULL)
GO
CREATE TABLE dbo.all_types (
  id int NOT NULL CONSTRAINT pk_all_types PRIMARY KEY,
  c_bit bit NULL,
  c_tinyint tinyint NULL,
  c_smallint smallint NULL,
  c_int int NULL,
  c_bigint bigint NULL,
  c_real real NULL,
  c_float float NULL,
  c_decimal_9_2 decimal(9, 2) NULL,
  c_decimal_38_10 decimal(38, 10) NULL,
  c_decimal_38_0 decimal(38, 0) NULL,
  c_money money NULL,
  c_smallmoney smallmoney NULL,
  c_date date NULL,
  c_time time(7) NULL,
  c_datetime datetime NULL,
  c_smalldatetime smalldatetime NULL,
  c_datetime2 datetime2(7) NULL,
  c_datetimeoffset datetimeoffset(7) NULL,
  c_char char(10) NULL,
  c_varchar varchar(50) NULL,
  c_varchar_max varchar(max) NULL,
  c_nchar nchar(10) NULL,
  c_nvarchar nvarchar(50) NULL,
  c_nvarchar_max nvarchar(max) NULL,
  c_binary binary(8) NULL,
  c_varbinary varbinary(50) NULL,
  c_varbinary_max varbinary(max) NULL,
  c_uniqueidentifier uniqueidentifier NULL,
  c_xml xml NULL)
GO
)";

constexpr const char* kValues = R"(
INSERT INTO dbo.all_types VALUES (1, 1, 7, -1234, 123456, -12345678901, 1.25, -0.1,
  12.50, -0.0000000001, 1, 19.99, -3.5, '2024-02-29', '12:34:56.1234567',
  '2024-02-29T12:34:56.123', '2024-02-29T12:35:00', '2024-02-29T12:34:56.1234567',
  '2024-02-29T12:34:56.1234567+05:30', 'abc', 'typical', 'longer text', N'abc',
  N'Grüße, 世界', N'Привет, мир', 0x0102030405060708, 0xCAFE, 0xDEADBEEF,
  '6F9619FF-8B86-D011-B42D-00C04FC964FF', N'<a b="1">x</a>')
INSERT INTO dbo.all_types VALUES (2, 0, 0, -32768, -2147483648, -9223372036854775808,
  -3.4028234E+38, -1.7976931348623157E+308, -9999999.99,
  -9999999999999999999999999999.9999999999, -99999999999999999999999999999999999999,
  -922337203685477.5808, -214748.3648, '0001-01-01', '00:00:00', '1753-01-01',
  '1900-01-01', '0001-01-01', '0001-01-01T00:00:00+00:00', '', '', '', N'', N'', N'',
  0x0000000000000000, 0x, 0x, '00000000-0000-0000-0000-000000000000', N'')
INSERT INTO dbo.all_types VALUES (3, 1, 255, 32767, 2147483647, 9223372036854775807,
  3.4028234E+38, 1.7976931348623157E+308, 9999999.99,
  9999999999999999999999999999.9999999999, 99999999999999999999999999999999999999,
  922337203685477.5807, 214748.3647, '9999-12-31', '23:59:59.9999999',
  '9999-12-31T23:59:59.997', '2079-06-06T23:59:00', '9999-12-31T23:59:59.9999999',
  '9999-12-31T23:59:59.9999999+00:00', 'ten chars.', 'naïve café', 'déjà vu',
  N'日本語テキスト', N'emoji 😀 and 漢字', N'עברית العربية ไทย', 0xFFFFFFFFFFFFFFFF,
  0x00FF00FF, 0x00, 'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF', N'<r>ÄÖÜ</r>')
INSERT INTO dbo.all_types (id) VALUES (4)
GO
)";

constexpr const char* kCities[] = {"Berlin", "München", "Kraków", "São Paulo",
                                   "Αθήνα",  "東京",    "Łódź",   "Reykjavík"};
constexpr const char* kNames[] = {"Anna Müller",   "Jan Kowalski", "José Álvarez",
                                  "Ирина Петрова", "山田 太郎",    "Zoë O'Brien",
                                  "Nguyễn Văn An", "Leila Haddad"};

std::string Customers() {
  std::string script;
  for (int i = 1; i <= kCustomerCount; ++i) {
    script += fmt::format(
        "INSERT INTO dbo.customers (customer_id, name, email, city, note) VALUES "
        "({}, {}, {}, {}, {})\n",
        i, Quoted(fmt::format("{} {}", kNames[i % 8], i)),
        i % 7 == 0 ? "NULL" : fmt::format("'customer{}@example.com'", i),
        Quoted(kCities[i % 8]), i % 5 == 0 ? "N'wants a call'" : "NULL");
  }
  return script + "GO\n";
}

std::string Products() {
  std::string script;
  for (int i = 1; i <= kProductCount; ++i) {
    script += fmt::format(
        "INSERT INTO dbo.products VALUES ({}, 'SKU{:05}', N'Product № {}', {}.{:02}, "
        "{}, {})\n",
        i, i * 37, i, 5 + i * 3, i * 7 % 100,
        i % 6 == 0 ? "NULL" : fmt::format("{}.{:03}", i % 9, i * 111 % 1000),
        i % 4 == 0 ? "NULL" : fmt::format("{}.5", i % 5));
  }
  return script + "GO\n";
}

std::string Orders() {
  std::string script;
  for (int i = 1; i <= kOrderCount; ++i) {
    script += fmt::format(
        "INSERT INTO dbo.orders (customer_id, status, total, placed_at) VALUES "
        "({}, 'placed', {}.{:02}, '2026-01-{:02}T08:{:02}:00.{:07}')\n"
        "INSERT INTO dbo.order_lines VALUES ({}, 1, {}, {}, {}.50)\n",
        1 + i * 7 % kCustomerCount, 20 + i, i % 100, 1 + i % 28, i % 60,
        1234567 + i * 1001, i, 1 + i % kProductCount, 1 + i % 4, 10 + i % 9);
  }
  return script + "GO\n";
}

std::string Capture() {
  std::string script;
  for (const std::string& table : ShopTableNames()) {
    script += fmt::format(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'{}', "
        "@role_name = NULL\nGO\n",
        table);
  }
  return script;
}

std::string Reader(std::string_view password) {
  std::string script = fmt::format(
      "CREATE LOGIN cdc_reader WITH PASSWORD = {}, DEFAULT_DATABASE = shop\nGO\n"
      "CREATE USER cdc_reader FOR LOGIN cdc_reader\nGO\n"
      "GRANT SELECT ON SCHEMA::cdc TO cdc_reader\nGO\n",
      Quoted(password));
  for (const std::string& table : ShopTableNames()) {
    script += fmt::format("GRANT SELECT ON dbo.{} TO cdc_reader\nGO\n", table);
  }
  return script;
}

}  // namespace

std::vector<std::string> ShopTableNames() {
  return {"customers", "products", "orders", "order_lines", "events", "all_types"};
}

std::string ShopScript(std::string_view reader_password) {
  return kTables + Customers() + Products() + Orders() + kValues + Capture() +
         Reader(reader_password) + "EXEC sys.sp_cdc_scan\nGO\n";
}

std::string ShopWriter::Next() {
  const std::uint64_t draw = dice_.Below(100);
  std::string statements;
  if (draw < 40) {
    statements = PlaceOrder();
  } else if (draw < 65) {
    statements = MoveOrder();
  } else if (draw < 73) {
    statements = CancelOrder();
  } else if (draw < 80) {
    statements = ChangePrices();
  } else if (draw < 88) {
    statements = ChangeCustomer();
  } else if (draw < 96) {
    statements = LogEvents();
  } else {
    statements = RenumberLines();
  }
  return "USE shop\nBEGIN TRANSACTION\n" + statements + "COMMIT TRANSACTION\n";
}

std::string ShopWriter::PlaceOrder() {
  const std::int64_t order = ++order_count_;
  const std::uint64_t lines = 1 + dice_.Below(4);
  std::string sql = fmt::format(
      "INSERT INTO dbo.orders (customer_id, status, total, placed_at) VALUES "
      "({}, 'placed', {}.{:02}, SYSDATETIME())\n",
      1 + dice_.Below(kCustomerCount), 10 + dice_.Below(500), dice_.Below(100));
  for (std::uint64_t line = 1; line <= lines; ++line) {
    sql +=
        fmt::format("INSERT INTO dbo.order_lines VALUES ({}, {}, {}, {}, {}.{:02})\n",
                    order, line, 1 + dice_.Below(kProductCount), 1 + dice_.Below(9),
                    5 + dice_.Below(60), dice_.Below(100));
  }
  return sql;
}

std::string ShopWriter::MoveOrder() {
  const std::uint64_t order = 1 + dice_.Below(static_cast<std::uint64_t>(order_count_));
  constexpr const char* kStates[] = {"paid", "packed", "shipped", "delivered"};
  return fmt::format(
      "UPDATE dbo.orders SET status = '{}', ship_date = '2026-{:02}-{:02}' WHERE "
      "order_id = {}\n",
      kStates[dice_.Below(4)], 1 + dice_.Below(12), 1 + dice_.Below(28), order);
}

std::string ShopWriter::CancelOrder() {
  const std::uint64_t order = 1 + dice_.Below(static_cast<std::uint64_t>(order_count_));
  return fmt::format(
      "DELETE FROM dbo.order_lines WHERE order_id = {0}\n"
      "DELETE FROM dbo.orders WHERE order_id = {0}\n",
      order);
}

std::string ShopWriter::ChangePrices() {
  return fmt::format(
      "UPDATE dbo.products SET price = price + {}.{:02} WHERE product_id % {} = {}\n",
      dice_.Below(3), 1 + dice_.Below(99), 2 + dice_.Below(4), dice_.Below(2));
}

std::string ShopWriter::ChangeCustomer() {
  const std::uint64_t customer = 1 + dice_.Below(kCustomerCount);
  if (dice_.Chance(1, 3)) {
    return fmt::format("UPDATE dbo.customers SET note = NULL WHERE customer_id = {}\n",
                       customer);
  }
  return fmt::format(
      "UPDATE dbo.customers SET city = {}, is_active = {} WHERE customer_id = {}\n",
      Quoted(kCities[dice_.Below(8)]), dice_.Below(2), customer);
}

std::string ShopWriter::LogEvents() {
  std::string sql;
  const std::uint64_t count = 1 + dice_.Below(5);
  for (std::uint64_t i = 0; i < count; ++i) {
    ++event_count_;
    sql += fmt::format(
        "INSERT INTO dbo.events VALUES ('{:08X}-0000-4000-8000-{:012X}', "
        "SYSDATETIMEOFFSET(), SYSDATETIME(), 'click', {})\n",
        static_cast<std::uint32_t>(dice_.Next()), event_count_,
        dice_.Chance(1, 4) ? "NULL" : fmt::format("0x{:016X}", dice_.Next()));
  }
  return sql;
}

// A change of key: lines move to other numbers of the same order.
std::string ShopWriter::RenumberLines() {
  const std::uint64_t order = 1 + dice_.Below(static_cast<std::uint64_t>(order_count_));
  return fmt::format(
      "UPDATE dbo.order_lines SET line_no = line_no + 10 WHERE order_id = {} AND "
      "line_no < 30000\n",
      order);
}

}  // namespace mssql_cdc::sim
