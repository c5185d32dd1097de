"""`./dev spark-demo`: the reference's first examples on the simulator's shop, end to end.

A shop is simulated; the Python package bootstraps its orders into a Delta table of Spark's catalog,
streams what is written meanwhile, and then the local binary goes on from the same checkpoint.
"""

from __future__ import annotations

import argparse
import glob
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [os.fspath(ROOT / "tests" / name) for name in ("harness", "values", "existing")]

from chain import ORDERS, fill_orders  # noqa: E402
from line_worker import Package  # noqa: E402
from pipeline import Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402

BOOTSTRAP = """
from mssql_cdc import stream

query = stream(spark, options).to_delta(
    target, app_id="orders-v1", checkpoint=checkpoint, facts_table=facts,
    trigger={"availableNow": True}, bootstrap=True)
query.awaitTermination()
read = spark.read.format("delta").load(target)
result = {row["_operation"]: row["count"] for row in read.groupBy("_operation").count().collect()}
"""
FACTS = """
columns = ["batch_id", "event", "rows", "inserts", "updates", "deletes", "end_lsn", "duration_ms"]
read = spark.read.format("delta").load(facts).orderBy("written_at").select(*columns)
result = [[str(value) for value in row] for row in read.collect()]
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev spark-demo", description=__doc__)
    for name in ("--program", "--python", "--site", "--jars", "--peer"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-spark-demo-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder)
        jars = ",".join(sorted(glob.glob(os.fspath(args.jars / "*.jar"))))
        print("starting Spark ...", flush=True)
        worker = Package(args.python, jars, folder / "worker.log",
                         ROOT / "tests/spark/spark_worker.py", PYTHONPATH=os.fspath(args.site))
        try:
            simulator.create("shop", ORDERS)
            fill_orders(simulator, 1, 1000)
            simulator.enable("orders")
            local = Pipeline(args.program, folder / "lake", simulator, "shop", "dbo_orders",
                             "orders-v1")
            options = {
                "connectionString": f"Server={simulator.host},{simulator.port};Database=shop;"
                "Encrypt=yes;TrustServerCertificate=yes",
                "user": simulator.user, "password": simulator.password,
                "captureInstance": "dbo_orders", "maxCommitsPerBatch": "500"}
            places = {"options": options, "target": os.fspath(local.bronze),
                      "checkpoint": os.fspath(local.checkpoint), "facts": os.fspath(local.facts)}
            counts = worker.do("run", code=BOOTSTRAP, **places)
            print(f"1. bootstrap on Spark: rows by operation {counts}", flush=True)
            simulator.run("UPDATE dbo.orders SET amount = amount + 1 WHERE id <= 20")
            simulator.run("DELETE dbo.orders WHERE id > 990")
            simulator.capture()
            counts = worker.do("run", code=BOOTSTRAP, **places)
            print(f"2. 20 updates and 10 deletes streamed by Spark: {counts}", flush=True)
            fill_orders(simulator, 5000, 5)
            simulator.capture()
            code, output = local.run()
            print(f"3. the local binary goes on from the same checkpoint:\n{output}", flush=True)
            counts = worker.do("run", code=BOOTSTRAP, **places)
            print(f"4. and Spark after it: {counts}\n\nThe facts table:")
            for row in worker.do("run", code=FACTS, **places):
                print("  ", *row)
            right = code == 0 and counts == {"0": 1000, "3": 20, "4": 20, "1": 10, "2": 5}
            worker.stop()
        finally:
            worker.process.kill()
            simulator.stop()
    print("1 passed, 0 failed" if right else "0 passed, 1 failed")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
