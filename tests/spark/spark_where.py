"""What the parts of the tests on Spark share."""

from __future__ import annotations

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.fspath(HERE.parent / name) for name in ("harness", "values", "existing", "crash")]

import deltalake  # noqa: E402
import existing_package as existing  # noqa: E402
from line_worker import Package  # noqa: E402

LINES = """CREATE TABLE dbo.lines (order_id int NOT NULL, line_no smallint NOT NULL,
sku varchar(20) NULL, PRIMARY KEY (order_id, line_no))"""


class Where(existing.Where):
    """What the parts share; `package` is a worker, made anew after one died."""

    def __init__(self, args, folder, simulator, jars) -> None:
        super().__init__(args.program, None, folder, simulator, None)
        self.args, self.jars = args, jars
        self.package = self.worker()

    def worker(self, python: pathlib.Path | None = None, **environment: str) -> Package:
        return Package(python or self.args.python, self.jars, self.args.log or self.folder / "worker.log",
                       HERE / "spark_worker.py", PYTHONPATH=os.fspath(self.args.site),
                       PYTHONDONTWRITEBYTECODE="1", **environment)

    def revive(self, python: pathlib.Path | None = None, **environment: str) -> None:
        self.package.process.kill()
        self.package.process.wait()
        self.package = self.worker(python, **environment)


def bulk(first: int, ten_thousands: int) -> str:
    """INSERT of so many times 10,000 orders: more than one range of a batch."""
    digits = "(VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9))"
    joins = " CROSS JOIN ".join(f"{digits} d{i}(n)" for i in range(4))
    number = " + ".join(f"d{i}.n * {10 ** i}" for i in range(4))
    times = ",".join(f"({i})" for i in range(ten_thousands))
    return (f"INSERT dbo.orders (id, customer, amount, note) SELECT {first} + k.n * 10000 + {number}, "
            f"N'bulk', 1.5, N'n' FROM (VALUES {times}) k(n) CROSS JOIN {joins}")


def facts_of(table: pathlib.Path) -> list[dict]:
    read = deltalake.DeltaTable(os.fspath(table)).to_pyarrow_table().to_pylist()
    return sorted(read, key=lambda row: (row["batch_id"] is None, row["batch_id"], str(row["event"])))
