"""The Python package on Spark and Delta, told what to do line by line (package_worker.py's way).

Beside what the existing package's worker does, it keeps queries running, dies where a test wants it
to, and runs code as users write it.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.fspath(HERE.parent / name) for name in ("existing", "harness")]

import line_worker  # noqa: E402
import package_worker  # noqa: E402

MASTER = os.environ.get("MSSQL_CDC_TEST_MASTER")


def cluster_session(jars: str):
    """A session whose executors are processes of their own and find the package themselves."""
    from pyspark.sql import SparkSession

    path, hook = os.environ["MSSQL_CDC_TEST_SITE"], os.environ.pop("MSSQL_CDC_TEST_HOOK", "")
    if hook:
        path = os.pathsep.join((os.fspath(HERE / "hooks"), path))
    built = (
        SparkSession.builder.master(MASTER).appName("cluster")
        .config("spark.jars", jars)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog",
                "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.memory", "768m")
        .config("spark.executorEnv.PYTHONPATH", path)
        .config("spark.executorEnv.MSSQL_CDC_TEST_HOOK", hook)
        .config("spark.speculation", os.environ.get("MSSQL_CDC_TEST_SPECULATION", "false"))
        .config("spark.speculation.interval", "100ms")
        .config("spark.speculation.multiplier", "1.1")
        .config("spark.speculation.quantile", "0.3")
        .config("spark.speculation.minTaskRuntime", "0s")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    built.sparkContext.setLogLevel("ERROR")
    return built


def connect_session(jars: str):
    """A session of Spark Connect; its server is a Spark of this process."""
    import pyspark
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    port = os.environ["MSSQL_CDC_TEST_CONNECT"]
    # Spark gives each of the server's Python processes 10 s to start. Beside this folder they find
    # the compiled modules; elsewhere they compile those of pyspark.zip, each anew.
    os.chdir(pathlib.Path(pyspark.__file__).parent.parent)
    RemoteSession._start_connect_server("local[2]", {
        "spark.jars": jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        # The client of remote("local") knows the default port only.
        "spark.connect.grpc.binding.port": port,
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    })
    os.environ["SPARK_LOCAL_REMOTE"] = os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    return RemoteSession.builder.remote(f"sc://localhost:{port}").getOrCreate()


def plain_session(jars: str):
    """A session of a Spark that Delta's jars are not for."""
    from pyspark.sql import SparkSession

    del jars
    return (SparkSession.builder.master("local[2]").appName("plain")
            .config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
            .getOrCreate())


def session(jars: str):
    if MASTER:
        return cluster_session(jars)
    if "MSSQL_CDC_TEST_CONNECT" in os.environ:
        return connect_session(jars)
    if "MSSQL_CDC_TEST_PLAIN" in os.environ:
        return plain_session(jars)
    return package_worker.session(jars)


class Worker(package_worker.Worker):
    def __init__(self, jars: str) -> None:
        # What is loaded into this process is not for Java's.
        os.environ.pop("LD_PRELOAD", None)
        self.spark = session(jars)
        self.queries: dict = {}

    def stop_at_link(self, number: int) -> None:
        """This process ends before its `number`-th hard link from now on (crash_shim.c)."""
        ctypes.CDLL(None).CrashShimStopAtLink(ctypes.c_long(number))

    def start(self, query, options, target, app_id, checkpoint, facts, **more) -> None:
        """A query that runs until `finish`."""
        import mssql_cdc

        self.queries[query] = mssql_cdc.stream(self.spark, options).to_delta(
            target, app_id, checkpoint, facts, **more)

    def catch_up(self, query) -> list:
        """Waits until the query has read what is there; duration and rows of each batch so far."""
        running = self.queries[query]
        running.processAllAvailable()
        return [[progress["batchId"], progress["numInputRows"], progress["durationMs"]]
                for progress in map(as_dict, running.recentProgress)]

    def finish(self, query) -> None:
        self.queries.pop(query).stop()

    def die(self, where, **arguments) -> None:
        """Runs `stream`, ending this process at a point of its first batch that has rows."""
        from mssql_cdc import sink, tables

        def before(work):
            def dies(*_, **__):
                os._exit(9)

            del work
            return dies

        def after(work):
            def dies(*given, **named):
                work(*given, **named)
                os._exit(9)

            return dies

        if where == "before the snapshot":
            tables.append = before(tables.append)
        elif where == "after the snapshot":
            tables.append = after(tables.append)
        elif where == "before the rows":
            sink.Sink._append = before(sink.Sink._append)
        elif where == "between rows and facts":
            sink.Sink._append = after(sink.Sink._append)
        elif where == "between facts and checkpoint":
            sink.Sink.__call__ = after(sink.Sink.__call__)
        self.stream(**arguments)

    def run(self, code: str, **names) -> object:
        """Runs a user's code in one namespace; what it calls `result` is the answer."""
        space = {"spark": self.spark, **names}
        exec(compile(code, "example", "exec"), space)
        return space.get("result")

    def snapshot(self, options, target, **more) -> dict:
        import mssql_cdc

        return mssql_cdc.stream(self.spark, options).snapshot(target, **more)

    def catalog(self, table: str) -> list[list]:
        """As `read`, of a table of the catalog."""
        where = self.spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]["location"]
        return self.read(where.removeprefix("file:"))


def as_dict(progress) -> dict:
    return progress if isinstance(progress, dict) else json.loads(progress.json)


if __name__ == "__main__":
    line_worker.serve(lambda: Worker(sys.argv[1]))
