"""A checksum of Arrow cells that is the same in every client, whatever its Arrow types.

Arithmetic is modulo 2**64. A cell's value is: an integer or bit as it is; a decimal's
unscaled value (its low 64 bits); a date's days since 1970; a timestamp's microseconds since
1970; a text's value is its UTF-8 length + 1 + 31 * the sum of each byte times its place
(counted from 1); NULL is a constant. A column's value is the sum of its cells, each times
its row's number (from 1, through all batches); the checksum is the sum of the columns, each
times its number (from 1). bench/read_client.cc computes the same.
"""

import numpy
import pyarrow
import pyarrow.compute

NULL = numpy.uint64(0x9E3779B97F4A7C15)


class Checksum:
    def __init__(self) -> None:
        self.row_count = 0
        self.columns: list[int] = []

    def add(self, batch: pyarrow.RecordBatch) -> None:
        rows = numpy.arange(self.row_count + 1, self.row_count + len(batch) + 1,
                            dtype=numpy.uint64)
        self.columns += [0] * (batch.num_columns - len(self.columns))
        for index, column in enumerate(batch.columns):
            cells = cell_values(column)
            if column.null_count:
                cells = numpy.where(nulls(column), NULL, cells)
            self.columns[index] += int((cells * rows).sum(dtype=numpy.uint64))
        self.row_count += len(batch)

    def text(self) -> str:
        total = sum((index + 1) * column for index, column in enumerate(self.columns))
        return f"{total % 2**64:016x}"


def nulls(column: pyarrow.Array):
    return pyarrow.compute.is_null(column).to_numpy(zero_copy_only=False)


def cell_values(column: pyarrow.Array):
    """One uint64 a row; what stands for NULL is replaced by the caller."""
    kind = column.type
    if pyarrow.types.is_boolean(kind):
        column = column.cast(pyarrow.uint8())
    elif pyarrow.types.is_timestamp(kind):
        unit = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}[kind.unit]
        whole = column.cast(pyarrow.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        whole = whole // 1000 if kind.unit == "ns" else whole * unit
        return whole.astype(numpy.uint64)
    elif pyarrow.types.is_date32(kind):
        column = column.cast(pyarrow.int32())
    elif pyarrow.types.is_decimal128(kind):
        low = numpy.frombuffer(column.buffers()[1], dtype=numpy.uint64)[::2]
        return low[column.offset:column.offset + len(column)]
    elif pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        return text_values(column)
    return column.fill_null(0).to_numpy(zero_copy_only=False).astype(numpy.int64).astype(
        numpy.uint64)


def text_values(column: pyarrow.Array):
    wide = pyarrow.types.is_large_string(column.type)
    offsets = numpy.frombuffer(column.buffers()[1],
                               dtype=numpy.int64 if wide else numpy.int32)
    offsets = offsets[column.offset:column.offset + len(column) + 1].astype(numpy.int64)
    lengths = numpy.diff(offsets)
    content = column.buffers()[2]
    content = numpy.frombuffer(content, dtype=numpy.uint8) if content else numpy.zeros(0, "u1")
    content = content[offsets[0]:offsets[-1]].astype(numpy.uint64)
    places = numpy.arange(len(content)) - numpy.repeat(offsets[:-1] - offsets[0], lengths) + 1
    sums = numpy.concatenate([numpy.zeros(1, numpy.uint64),
                              numpy.cumsum(content * places.astype(numpy.uint64),
                                           dtype=numpy.uint64)])
    own = sums[offsets[1:] - offsets[0]] - sums[offsets[:-1] - offsets[0]]
    return own * numpy.uint64(31) + lengths.astype(numpy.uint64) + numpy.uint64(1)
