"""The history that Debezium and this product read: tables, and what happens to them.

Statements are T-SQL for one session. CAPTURE carries out the capture job; SWITCH waits until
Debezium has seen what was captured so far, so that it knows the second capture instance before
the first one goes. RETIRE drops the first one; Debezium takes that only if it reads through the
table function (it knows the error 208 that names one), not with data.query.mode=direct.
"""

CAPTURE, SWITCH = "-- capture", "-- switch"
RETIRE = "EXEC sys.sp_cdc_disable_table N'dbo', N'customers', N'dbo_customers'"

# table -> its key columns; each is captured as dbo_TABLE from the start.
KEYS = {
    "orders": ("id",),
    "order_lines": ("order_id", "line_no"),
    "documents": ("id",),
    "customers": ("id",),
    "ticks": ("id",),
}
SWITCHED = "customers"  # The table that gets a second capture instance.
LARGE = 4000  # Rows of the large transaction.

TABLES = [
    """CREATE TABLE dbo.orders (
  id int NOT NULL PRIMARY KEY, flag bit NULL, tiny tinyint NULL, small smallint NULL,
  big bigint NULL, weight real NULL, ratio float NULL, total decimal(12,2) NULL,
  wide numeric(38,10) NULL, price money NULL, fee smallmoney NULL, day date NULL,
  at_time time(7) NULL, at_datetime datetime NULL, at_small smalldatetime NULL,
  at_2 datetime2(7) NULL, at_offset datetimeoffset(7) NULL, code char(6) NULL,
  plain varchar(50) NULL, wide_code nchar(4) NULL, wide_text nvarchar(50) NULL,
  token uniqueidentifier NULL, fixed binary(4) NULL, raw varbinary(20) NULL,
  CONSTRAINT orders_big UNIQUE (big))""",
    """CREATE TABLE dbo.order_lines (
  order_id int NOT NULL, line_no int NOT NULL, quantity int NOT NULL, note nvarchar(40) NULL,
  CONSTRAINT order_lines_key PRIMARY KEY (order_id, line_no))""",
    """CREATE TABLE dbo.documents (
  id int NOT NULL PRIMARY KEY, title nvarchar(50) NULL, body nvarchar(max) NULL,
  plain varchar(max) NULL, content varbinary(max) NULL, markup xml NULL, old_text text NULL,
  old_wide ntext NULL, old_image image NULL)""",
    "CREATE TABLE dbo.customers (id int NOT NULL PRIMARY KEY, name nvarchar(40) NOT NULL)",
    "CREATE TABLE dbo.ticks (id int NOT NULL PRIMARY KEY)",
]

TYPICAL = """1, 7, -1234, {big}, 1.25, -0.1, 19.90, -0.0000000001, 19.99, -3.5,
  '2024-02-29', '12:34:56.1234567', '2024-02-29 12:34:56.123', '2024-02-29 12:34:00',
  '2024-02-29 12:34:56.1234567', '2024-02-29 12:34:56.1234567 +05:30', N'Füße', N'Ærø – €',
  N'中文', N'naïve 日本語 😀', '6F9619FF-8B86-D011-B42D-00C04FC964FF', 0xDEAD, 0xCAFE"""
EXTREME = """0, 255, 32767, 9223372036854775807, 3.4e38, 1.7976931348623157e308,
  9999999999.99, 9999999999999999999999999999.9999999999, 922337203685477.5807, 214748.3647,
  '9999-12-31', '23:59:59.9999999', '9999-12-31 23:59:59.997', '2079-06-06 23:59:00',
  '9999-12-31 23:59:59.9999999', '9999-12-31 23:59:59.9999999 +00:00', N'abcdef', N'',
  N'abcd', N'', 'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF', 0xFFFFFFFF, 0x"""
# A datetimeoffset before 1582-10-15 is left out: Debezium takes it for a Julian date and gives
# 0000-12-30 for 0001-01-01, which mssql-jdbc reads right from the same bytes (./dev peers).
LEAST = """0, 0, -32768, -9223372036854775808, -1.18e-38, 2.2250738585072014e-308,
  -9999999999.99, -9999999999999999999999999999.9999999999, -922337203685477.5808, -214748.3648,
  '0001-01-01', '00:00:00', '1753-01-01', '1900-01-01', '0001-01-01', '1583-01-01 00:00 +00:00',
  '', '', N'', N'', '00000000-0000-0000-0000-000000000000', 0x00, 0x00"""

BEFORE = [
    f"INSERT dbo.orders VALUES (1, {TYPICAL.format(big=1)})",
    f"INSERT dbo.orders VALUES (2, {EXTREME})",
    f"INSERT dbo.orders VALUES (3, {LEAST})",
    "INSERT dbo.orders (id, big) VALUES (4, 4), (5, 5)",
    *(f"INSERT dbo.order_lines VALUES ({order}, {line}, {line}, N'line {line}')"
      for order in (1, 2, 3) for line in (1, 2, 3)),
    "INSERT dbo.documents VALUES (1, N'small', N'text', 'plain', 0x01, N'<a>é</a>', 'old', "
    "N'old 日', 0xCAFE), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "INSERT dbo.customers VALUES (1, N'Ada'), (2, N'Grace'), (3, N'Edsger')",
]


def long_text(unit: str, count: int) -> str:
    return f"REPLICATE(CAST(N'{unit}' AS nvarchar(max)), {count})"


CHANGES = [
    # Inserts, updates, deletes.
    f"INSERT dbo.orders VALUES (10, {TYPICAL.format(big=10)})",
    "INSERT dbo.orders (id, big) VALUES (11, 11), (12, 12), (13, 13)",
    "UPDATE dbo.orders SET total = 1.50, at_2 = '1999-12-31 23:59:59.9999999' WHERE id IN (1, 10)",
    "UPDATE dbo.orders SET plain = NULL, flag = 1 WHERE id = 2",
    "DELETE dbo.orders WHERE id = 13",
    "DELETE dbo.order_lines WHERE line_no = 3",
    CAPTURE,
    # One transaction over several tables, with a row changed twice and one that comes and goes.
    "BEGIN TRAN",
    "INSERT dbo.orders (id, big, plain) VALUES (20, 20, 'first')",
    "INSERT dbo.order_lines VALUES (20, 1, 5, N'one'), (20, 2, 6, N'two')",
    "UPDATE dbo.orders SET plain = 'second' WHERE id = 20",
    "UPDATE dbo.orders SET plain = 'third' WHERE id = 20",
    "INSERT dbo.orders (id, big) VALUES (21, 21)",
    "DELETE dbo.orders WHERE id = 21",
    "DELETE dbo.order_lines WHERE order_id = 20 AND line_no = 1",
    "INSERT dbo.order_lines VALUES (20, 1, 7, N'again')",
    "COMMIT",
    "BEGIN TRAN",
    "DELETE dbo.orders",
    "ROLLBACK",
    # Key changes: of one row, of a unique index's column, of many rows at once.
    "UPDATE dbo.orders SET id = 40 WHERE id = 4",
    "UPDATE dbo.orders SET big = 500 WHERE id = 5",
    "UPDATE dbo.order_lines SET line_no = 9 WHERE order_id = 1 AND line_no = 2",
    "UPDATE dbo.order_lines SET line_no = line_no + 1",
    "UPDATE dbo.orders SET id = id + 1000",
    CAPTURE,
    # Large values (CDC takes 65536 bytes at most unless configured): written, changed, and left alone while another column changes.
    f"INSERT dbo.documents (id, title, body, plain, content) VALUES (3, N'large', "
    f"{long_text('日本', 15000)}, {long_text('x', 60000)}, CAST({long_text('y', 9000)} "
    "AS varbinary(max)))",
    "UPDATE dbo.documents SET title = N'only the title' WHERE id IN (1, 3)",
    f"UPDATE dbo.documents SET body = {long_text('new ', 8000)} WHERE id = 3",
    "UPDATE dbo.documents SET old_text = 'newer', markup = N'<b/>' WHERE id = 1",
    "UPDATE dbo.documents SET body = NULL, content = 0x WHERE id = 3",
    "DELETE dbo.documents WHERE id = 1",
    "UPDATE dbo.documents SET id = 30 WHERE id = 3",
    CAPTURE,
    # A large transaction.
    "BEGIN TRAN",
    *("INSERT dbo.order_lines VALUES "
      + ", ".join(f"({order}, {line}, 1, N'bulk')" for line in range(500))
      for order in range(100, 100 + LARGE // 500)),
    "UPDATE dbo.order_lines SET quantity = quantity + line_no WHERE order_id >= 100",
    "DELETE dbo.order_lines WHERE order_id >= 100 AND line_no % 2 = 0",
    "COMMIT",
    CAPTURE,
    # A second capture instance takes over, with a column that the first does not have.
    "INSERT dbo.customers VALUES (4, N'Barbara')",
    "ALTER TABLE dbo.customers ADD email nvarchar(40) NULL",
    "UPDATE dbo.customers SET name = N'Ada L.' WHERE id = 1",
    CAPTURE,
    "EXEC sys.sp_cdc_enable_table N'dbo', N'customers', @role_name = NULL, "
    "@capture_instance = N'dbo_customers_2'",
    "UPDATE dbo.customers SET email = N'grace@example.org', name = N'Grace H.' WHERE id = 2",
    "INSERT dbo.customers VALUES (5, N'Donald', N'donald@example.org')",
    CAPTURE,
    SWITCH,
    RETIRE,
    "UPDATE dbo.customers SET email = N'ada@example.org' WHERE id = 1",
    "UPDATE dbo.customers SET id = 50 WHERE id = 5",
    "DELETE dbo.customers WHERE id = 3",
    CAPTURE,
]
