"""A local Spark session with Delta, for those who have no platform that brings one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mssql_cdc._spark import pyspark  # noqa: F401  A clear word where it is not there.

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def get_spark(app_name: str = "mssql-cdc", master: str = "local[*]", *,
              delta: bool = True) -> SparkSession:
    """A session in UTC with few shuffle partitions; with `delta`, Delta's extension and catalog."""
    from pyspark.sql import SparkSession

    builder = (SparkSession.builder.appName(app_name).master(master)
               .config("spark.sql.session.timeZone", "UTC")
               .config("spark.sql.shuffle.partitions", "4"))
    if not delta:
        return builder.getOrCreate()
    from delta import configure_spark_with_delta_pip

    builder = (builder
               .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
               .config("spark.sql.catalog.spark_catalog",
                       "org.apache.spark.sql.delta.catalog.DeltaCatalog"))
    return configure_spark_with_delta_pip(builder).getOrCreate()


def available_cores(spark: SparkSession) -> int:
    """How many tasks the session runs at a time."""
    return int(spark.sparkContext.defaultParallelism)


__all__ = ["available_cores", "get_spark"]
