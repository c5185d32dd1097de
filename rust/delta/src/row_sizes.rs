//! How large the rows of a batch are, and where to cut it so that no piece is large.

use std::ops::Range;

use delta_kernel::arrow::array::{Array, ArrayRef, AsArray as _, RecordBatch};
use delta_kernel::arrow::datatypes::DataType;

/// The offsets of a column of text or bytes: row `i` has the bytes from `[i]` to `[i + 1]`.
pub fn value_offsets(column: &ArrayRef) -> Option<&[i32]> {
    match column.data_type() {
        DataType::Utf8 => Some(column.as_string::<i32>().value_offsets()),
        DataType::Binary => Some(column.as_binary::<i32>().value_offsets()),
        _ => None,
    }
}

/// The largest value of a column of text or bytes; 0 for any other.
pub fn value_size_bytes_max(column: &ArrayRef) -> usize {
    let offsets = value_offsets(column).unwrap_or_default();
    let sizes = offsets.windows(2).map(|pair| pair[1] - pair[0]);
    usize::try_from(sizes.max().unwrap_or(0)).unwrap_or(0)
}

/// Consecutive rows of `batch`, all of them, in pieces of at most `size_bytes_max`; a row
/// that is larger is a piece of its own.
pub fn pieces(batch: &RecordBatch, size_bytes_max: usize) -> Vec<Range<usize>> {
    let row_count = batch.num_rows();
    let mut fixed_size_bytes = 0;
    let mut varying = Vec::new();
    for column in batch.columns() {
        match value_offsets(column) {
            Some(offsets) => varying.push(offsets),
            None => {
                let size = column.to_data().get_slice_memory_size();
                fixed_size_bytes += size.unwrap_or_else(|_| column.get_array_memory_size());
            }
        }
    }
    let per_row = fixed_size_bytes / row_count.max(1);
    let size_of = |rows: Range<usize>| {
        let bytes: i64 =
            varying.iter().map(|o| i64::from(o[rows.end]) - i64::from(o[rows.start])).sum();
        rows.len() * per_row + usize::try_from(bytes).unwrap_or(0)
    };
    let mut found = Vec::new();
    let mut first = 0;
    while first < row_count {
        let (mut fits, mut beyond) = (first + 1, row_count + 1);
        if size_of(first..row_count) <= size_bytes_max {
            fits = row_count;
        }
        while fits + 1 < beyond && fits < row_count {
            let middle = fits + (beyond - fits) / 2;
            if size_of(first..middle) <= size_bytes_max {
                fits = middle;
            } else {
                beyond = middle;
            }
        }
        found.push(first..fits);
        first = fits;
    }
    found
}
