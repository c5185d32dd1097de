"""One side of a bench on Spark: a session as a user has it, told what to do line by line.

Unlike the tests' sessions it has Java's own compiler settings and collector, and memory to work.
"""

from __future__ import annotations

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.fspath(HERE.parent / "tests" / name) for name in ("spark", "existing", "harness")]

import line_worker  # noqa: E402
import spark_worker  # noqa: E402


def session(jars: str):
    from pyspark.sql import SparkSession

    built = (
        SparkSession.builder.master("local[2]").appName("bench")
        .config("spark.jars", jars)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "5g")
        .getOrCreate()
    )
    built.sparkContext.setLogLevel("ERROR")
    return built


class Worker(spark_worker.Worker):
    def __init__(self, jars: str) -> None:
        self.spark = session(jars)
        self.queries: dict = {}


if __name__ == "__main__":
    line_worker.serve(lambda: Worker(sys.argv[1]))
