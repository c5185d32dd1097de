"""PySpark where it is there, and a clear word where it is not."""

from __future__ import annotations

try:
    import pyspark
except ImportError:
    raise ImportError(
        'this part of mssql_cdc needs PySpark: run it on a Spark platform, which ships its own, or '
        'pip install "mssql-cdc[spark]" for a local Spark') from None

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
except ImportError:
    raise ImportError(f"mssql_cdc needs PySpark 4.0 or later; this is {pyspark.__version__}") from None


def is_connect(session: object) -> bool:
    """Whether a session is one of Spark Connect, which runs user code in processes of its own."""
    return type(session).__module__.startswith("pyspark.sql.connect")


__all__ = ["DataSource", "DataSourceReader", "InputPartition", "is_connect", "pyspark"]
