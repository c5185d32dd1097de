"""A history in the files of the existing package's fake, written by that package itself.

Run by the interpreter that has the package: write_history.py DIRECTORY. Every type, both images of
updates, moves of a key, a second capture instance after DDL, idle entries, two tables, a table without
a key, and a cleanup.
"""

import datetime
import sys

from mssql_cdc.fake import FakeCdcDatabase

BEGIN = datetime.datetime(2026, 11, 20, 8, 0, 0, 123000)
ORDERS = ("order_id INT, customer STRING, amount DECIMAL(18,2), made DATE, changed TIMESTAMP_NTZ, seen TIMESTAMP, "
          "paid BOOLEAN, ratio DOUBLE, share FLOAT, big BIGINT, small SMALLINT")


def at(minutes: int) -> datetime.datetime:
    return BEGIN + datetime.timedelta(minutes=minutes)


def order(number: int, **other) -> dict:
    row = {"order_id": number, "customer": f"cust {number} é日\U0001f41f", "amount": f"{number - 3}.{number % 100:02d}",
           "made": "2024-02-29", "changed": "1999-12-31T23:59:59.999999", "seen": "2026-06-01T12:00:00.5+00:00",
           "paid": number % 2 == 0, "ratio": number / 7, "share": number / 4, "big": 2**62 + number, "small": -number}
    return row | other


def empty(number: int) -> dict:
    return {name: None for name in order(0)} | {"order_id": number}


def main() -> None:
    fake = FakeCdcDatabase(sys.argv[1], ["dbo_orders", "dbo_lines", "dbo_log"],
                           keys={"dbo_orders": "order_id", "dbo_lines": ["order_id", "line"]},
                           columns={"dbo_orders": ORDERS, "dbo_lines": "order_id INT, line INT, item STRING",
                                    "dbo_log": "text STRING"})
    fake.commit("dbo_orders", [(2, order(-1))], at(0))
    low = fake.commit("dbo_orders", [(2, order(i)) for i in range(40)], at(1))
    fake.commit("dbo_lines", [(2, {"order_id": i, "line": line, "item": f"i{line}"}) for i in range(9) for line in (1, 2)],
                at(2))
    fake.commit("dbo_orders", [(2, empty(100)), (3, order(3)), (4, order(3, amount="-0.01")), (1, order(4))], at(3))
    fake.idle(at(8))
    fake.commit("dbo_orders", [(1, order(5)), (2, order(205, customer=""))], at(9))
    fake.commit("dbo_log", [(2, {"text": "same"}), (2, {"text": "same"})], at(10))
    fake.ddl("dbo_orders", "discount", "ALTER TABLE dbo.dbo_orders ADD discount decimal(9,4) NULL")
    fake.add_capture_instance("dbo_orders", ORDERS + ", discount DECIMAL(9,4)", at(11))
    fake.commit("dbo_orders", [(3, order(6) | {"discount": None}), (4, order(6) | {"discount": "0.1250"})], at(12))
    fake.commit("dbo_orders", [(2, order(i) | {"discount": "1"}) for i in range(300, 330)], at(13))
    fake.commit("dbo_lines", [(1, {"order_id": 1, "line": 1, "item": "i1"})], at(14))
    fake.idle(at(19))
    fake.cleanup("dbo_orders", low)


if __name__ == "__main__":
    main()
