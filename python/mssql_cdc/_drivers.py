"""Other clients than the core's own: options backend=mssql-python and backend=arrow-odbc.

A connection here runs one batch of T-SQL at a time and gives each result set as Arrow, in the types
the core's own client gives: the same rows, whoever reads them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from mssql_cdc._sessions import TokenFunction, find

# SQL_COPT_SS_ACCESS_TOKEN: a token goes to the driver before it connects.
_ACCESS_TOKEN = 1256
_SERVER = ("SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(40)) AS version, "
           "DB_NAME() AS name")
_LOST = ("communication link failure", "connection is broken", "tcp provider", "08s01", "08001",
         "08003", "login timeout expired", "connection is closed")
_DENIED = ("permission was denied", "does not have permission")
_BUSY = ("deadlock victim", "lock request time out")


class DriverError(Exception):
    """What a driver said, without what it must not say."""


def told(error: BaseException) -> tuple[str, str]:
    """Kind and text of a driver's error; it has no number, so its text is all there is."""
    text = str(error)
    lower = text.lower()
    for kind, signs in (("denied", _DENIED), ("busy", _BUSY), ("login", ("login failed",)),
                        ("lost", _LOST)):
        if any(sign in lower for sign in signs):
            return kind, text
    return "server", text


def _plain(array: Any) -> Any:
    """An array in the type the core's client gives its values in."""
    import pyarrow as pa
    from pyarrow import compute

    type_ = array.type
    if pa.types.is_uint8(type_):
        return array.cast(pa.int16())
    if pa.types.is_large_string(type_):
        return array.cast(pa.string())
    if pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return array.cast(pa.binary())
    if pa.types.is_time(type_):
        # "13:50:01.123456700": always nine fraction digits.
        return array.cast(pa.time64("ns")).cast(pa.string())
    if pa.types.is_timestamp(type_):
        whole = compute.floor_temporal(array, unit="microsecond") if type_.unit == "ns" else array
        return whole.cast(pa.timestamp("us", tz="UTC" if type_.tz is not None else None),
                          safe=False)
    return array


def _plain_batch(batch: Any) -> Any:
    import pyarrow as pa

    arrays = [_plain(array) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


class _Connection:
    """One connection; `failure` is what the last rows ended with."""

    def __init__(self, secrets: list[str]) -> None:
        self.secrets = [secret for secret in secrets if secret]
        self.failure: BaseException | None = None

    def next_result(self) -> Any:
        """The next result set as a reader; None after the last."""
        import pyarrow as pa

        with self._telling():
            first = self._first_batch()
        if first is None:
            return None
        first = _plain_batch(first)
        return pa.RecordBatchReader.from_batches(first.schema, self._rows(first))

    def _rows(self, first: Any) -> Iterator[Any]:
        try:
            batch = first
            while batch is not None and batch.num_rows:
                yield batch
                with self._telling():
                    batch = self._next_batch()
                batch = None if batch is None else _plain_batch(batch)
        except BaseException as error:
            self.failure = error
            raise

    def finish(self) -> None:
        """Reads to the end: an error may come after the last row."""
        with self._telling():
            while self._first_batch() is not None:
                pass

    def server(self) -> tuple[list[int], str]:
        """The version in numbers, and the database's name."""
        self.execute(_SERVER, 1)
        row = self.next_result().read_all().to_pylist()[0]
        self.finish()
        return [int(part) for part in row["version"].split(".")[:3]], row["name"]

    def execute(self, sql: str, row_count: int) -> None:
        self.failure = None
        with self._telling():
            self._execute(sql, row_count)

    def _telling(self) -> _Telling:
        return _Telling(self.secrets)

    def _execute(self, sql: str, row_count: int) -> None:
        raise NotImplementedError

    def _first_batch(self) -> Any:
        raise NotImplementedError

    def _next_batch(self) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class _Telling:
    """A driver's exception with every secret replaced, and nothing that holds one behind it."""

    def __init__(self, secrets: list[str]) -> None:
        self.secrets = secrets

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, DriverError):
            return
        text = str(error)
        for secret in self.secrets:
            text = text.replace(secret, "***")
        raise DriverError(text) from None


class MssqlPythonConnection(_Connection):
    """A connection of Microsoft's mssql-python."""

    def __init__(self, options: Mapping[str, str]) -> None:
        try:
            import mssql_python
        except ImportError:
            raise ImportError('backend=mssql-python needs its driver: '
                              'pip install "mssql-cdc[mssql-python]"') from None
        login = {"UID": find(options, "user"), "PWD": find(options, "password")}
        token = find(options, "accessToken")
        if find(options, "tokenProvider"):
            token = TokenFunction(find(options, "tokenProvider") or "")()
        super().__init__([login["PWD"] or "", token or ""])
        more: dict[str, Any] = {key: value for key, value in login.items() if value}
        if token:
            encoded = token.encode("utf-16-le")
            more["attrs_before"] = {_ACCESS_TOKEN: struct.pack("<I", len(encoded)) + encoded}
        with self._telling():
            self.connection = mssql_python.connect(
                find(options, "connectionString") or "", autocommit=True,
                timeout=int(find(options, "connectTimeout") or 30), **more)
        self.cursor: Any = None
        self.row_count, self.at_first = 1, True

    def _execute(self, sql: str, row_count: int) -> None:
        if self.cursor is not None:
            self.cursor.close()
        self.cursor = self.connection.cursor()
        self.cursor.execute(sql)
        self.row_count, self.at_first = row_count, True

    def _first_batch(self) -> Any:
        while self.at_first or self.cursor.nextset():
            self.at_first = False
            if self.cursor.description:
                return self.cursor.arrow_batch(self.row_count)
        return None

    def _next_batch(self) -> Any:
        return self.cursor.arrow_batch(self.row_count)

    def close(self) -> None:
        self.connection.close()


def _with_micros(schema: Any) -> Any:
    """Nanoseconds, which arrow-odbc asks for, reach from 1677 to 2262 only."""
    import pyarrow as pa

    return pa.schema([
        field.with_type(pa.timestamp("us", field.type.tz))
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns" else field
        for field in schema])


class ArrowOdbcConnection(_Connection):
    """A connection of arrow-odbc, over an ODBC driver of this machine."""

    DRIVER = "Driver={ODBC Driver 18 for SQL Server};"
    SIZE_BYTES_MAX = 64 << 20
    VALUE_SIZE_MAX = 65536

    def __init__(self, options: Mapping[str, str]) -> None:
        try:
            import arrow_odbc
        except ImportError:
            raise ImportError('backend=arrow-odbc needs arrow-odbc: '
                              'pip install "mssql-cdc[arrow-odbc]"') from None
        if find(options, "accessToken") or find(options, "tokenProvider"):
            raise ValueError("backend=arrow-odbc cannot pass a token: use an Authentication= "
                             "keyword of the ODBC driver in connectionString")
        super().__init__([find(options, "password") or ""])
        text = find(options, "connectionString") or ""
        if "driver=" not in text.lower().replace(" ", ""):
            text = self.DRIVER + text
        if not text.rstrip().endswith(";"):
            text += ";"  # The login is written behind it.
        with self._telling():
            self.connection = arrow_odbc.connect(
                text, user=find(options, "user") or None, password=find(options, "password") or None,
                login_timeout_sec=int(find(options, "connectTimeout") or 30))
        self.reader: Any = None
        self.sql, self.row_count = "", 1

    def _execute(self, sql: str, row_count: int) -> None:
        self.reader = None
        self.sql, self.row_count = sql, row_count

    def _limits(self) -> dict[str, Any]:
        return {"batch_size": self.row_count, "max_bytes_per_batch": self.SIZE_BYTES_MAX,
                "max_text_size": self.VALUE_SIZE_MAX, "max_binary_size": self.VALUE_SIZE_MAX,
                "map_schema": _with_micros}

    def _first_batch(self) -> Any:
        if self.sql:
            sql, self.sql = self.sql, ""
            # What has no result set is read over.
            self.reader = self.connection.read_arrow_batches(
                query="SET NOCOUNT ON; " + sql, **self._limits())
        elif self.reader is not None and not self.reader.more_results(**self._limits()):
            self.reader = None
        if self.reader is None:
            return None
        return self._next_batch() or self._nothing()

    def _nothing(self) -> Any:
        import pyarrow as pa

        return pa.RecordBatch.from_arrays(
            [pa.array([], field.type) for field in self.reader.schema],
            names=self.reader.schema.names)

    def _next_batch(self) -> Any:
        return next(self.reader, None)

    def close(self) -> None:
        self.reader = None
        del self.connection


_CONNECTIONS = {"mssql-python": MssqlPythonConnection, "arrow-odbc": ArrowOdbcConnection}


class Connector:
    """Opens connections with these options."""

    def __init__(self, kind: type[_Connection], options: Mapping[str, str]) -> None:
        self.kind, self.options = kind, dict(options)

    def connect(self) -> _Connection:
        """A new connection."""
        return self.kind(self.options)


def connector(options: Mapping[str, str]) -> Connector | None:
    """What opens connections where option backend asks for another client."""
    kind = _CONNECTIONS.get((find(options, "backend") or "native").strip().lower())
    return None if kind is None else Connector(kind, options)
