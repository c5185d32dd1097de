"""The existing package (mssql-cdc-pyspark) on Spark and Delta, told what to do line by line.

Runs in an environment of its own, because it brings other versions of Arrow and a JVM.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import functools
import importlib
import os
import pathlib
import re
import sys

sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parent.parent / "harness"))

import line_worker  # noqa: E402

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def session(jars: str):
    """A Spark session with Delta, set up to cost a test little (small heap, one log partition)."""
    from pyspark.sql import SparkSession

    built = (
        SparkSession.builder.master("local[2]").appName("existing")
        .config("spark.jars", jars)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog",
                "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        # The default, INT96, wraps around outside the years 1677 to 2262 in other readers.
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.ui.enabled", "false")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.python.authenticate.socketTimeout", "300s")  # A busy machine.
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    built.sparkContext.setLogLevel("ERROR")
    return built


def canonical_text(value) -> str | None:
    """One text per value, whoever read it: instants in UTC with 6 digits, bytes as hex."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    if isinstance(value, decimal.Decimal):
        return format(value.normalize(), "f")
    return None if value is None else str(value)


class Stopped(BaseException):
    """Ends the package's work where a kill would; nothing of it catches this."""


@contextlib.contextmanager
def stopping(at: str, holding: str, number: int):
    """The `number`-th call of the function `at` (module:name, or module:class.name) ends with
    Stopped before it does anything; with `holding`, calls count that have a text it matches."""
    module, _, path = at.partition(":")
    *classes, name = path.split(".")
    owner = importlib.import_module(module)
    for inner in classes:
        owner = getattr(owner, inner)
    real, calls = getattr(owner, name), 0

    def function(*positional, **named):
        nonlocal calls
        texts = [value for value in (*positional, *named.values()) if isinstance(value, str)]
        calls += any(re.fullmatch(holding, text) for text in texts) if holding else 1
        if calls >= number:
            raise Stopped
        return real(*positional, **named)

    setattr(owner, name, function)
    try:
        yield
    finally:
        setattr(owner, name, real)


def patient(work):
    """Does it again where Spark gave up on a Python process of its own that took more than
    10 s to start, as one does on a busy machine; the package's calls are made to be repeated."""
    @functools.wraps(work)
    def patiently(*positional, **named):
        for _ in range(20):
            try:
                return work(*positional, **named)
            except Exception as error:
                if "failed to connect back" not in str(error):
                    raise
        return work(*positional, **named)
    return patiently


class Worker:
    def __init__(self, jars: str) -> None:
        self.spark = session(jars)

    def version(self) -> str:
        import mssql_cdc

        return mssql_cdc.__version__

    @patient
    def stopped(self, does, at, holding="", number=1, **arguments) -> bool:
        """Whether the package, doing `does`, got to where it is stopped (see stopping)."""
        try:
            with stopping(at, holding, number):
                getattr(self, does)(**arguments)
        except Stopped:
            return True
        return False

    def forget(self) -> None:
        """What is known of Delta tables, before others take their places."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    @patient
    def stream(self, options, target, app_id, checkpoint, facts, **more) -> None:
        """Everything that is there now, into bronze."""
        import mssql_cdc

        query = mssql_cdc.stream(self.spark, options).to_delta(
            target, app_id, checkpoint, facts, trigger={"availableNow": True}, **more)
        query.awaitTermination()

    def read(self, table: str) -> list[list]:
        """The names of a Delta table's columns, then its rows as texts (canonical_text)."""
        from pyspark.sql import functions, types

        read = self.spark.read.format("delta").load(table)
        for field in read.schema:
            # Spark cannot hand an instant of the year 1 to Python.
            if isinstance(field.dataType, (types.TimestampType, types.TimestampNTZType)):
                name = "`" + field.name.replace("`", "``") + "`"
                text = functions.date_format(name, "yyyy-MM-dd HH:mm:ss.SSSSSS")
                read = read.withColumn(field.name, text)
        return [read.columns, *([canonical_text(value) for value in row] for row in read.collect())]

    @patient
    def backfill(self, options, target, app_id, facts, **more) -> dict:
        """Waves until the chunked snapshot is done, or as many as are asked for; the last status."""
        import mssql_cdc

        while True:
            status = mssql_cdc.stream(self.spark, options).backfill(
                target, app_id=app_id, facts_table=facts, **more)
            if status["done"] or status["paused"] or "max_waves" in more:
                return status

    @patient
    def apply(self, bronze, silver, control, facts, options, **more) -> dict:
        import mssql_cdc

        return mssql_cdc.apply_changes(self.spark, bronze, silver, control_table=control,
                                       facts_table=facts, options=options, **more)

    @patient
    def reconcile(self, options, silver, bronze, control, facts, **more) -> dict:
        import mssql_cdc

        result = mssql_cdc.reconcile(self.spark, options, silver, bronze=bronze,
                                     control_table=control, facts_table=facts, **more)
        return {name: value for name, value in result.items() if name != "report"}


if __name__ == "__main__":
    line_worker.serve(lambda: Worker(sys.argv[1]))
