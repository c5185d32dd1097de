//! A Parquet column chunk of large values, encoded while it is written.
//!
//! The general writer holds a page as plain values, then compressed, then once more in
//! its chunk: several times the largest value. Here the pages are compressed twice
//! instead, first for their sizes, which Parquet wants before the bytes, then for good,
//! and no more than one block is in memory.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use delta_kernel::arrow::array::{Array, ArrayRef, AsArray as _, BinaryArray};
use delta_kernel::arrow::datatypes::DataType;
use delta_kernel::parquet::basic::{Compression, Encoding};
use delta_kernel::parquet::column::writer::ColumnCloseResult;
use delta_kernel::parquet::data_type::ByteArray;
use delta_kernel::parquet::errors::{ParquetError, Result};
use delta_kernel::parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder};
use delta_kernel::parquet::file::reader::{ChunkReader, Length};
use delta_kernel::parquet::file::statistics::Statistics;
use delta_kernel::parquet::schema::types::ColumnDescPtr;

/// Snappy compresses blocks of this size, each by itself.
const BLOCK_SIZE_BYTES: usize = 64 << 10;
/// A page ends with the row that brings it here.
const PAGE_SIZE_BYTES: usize = 1 << 20;

/// The pages of one column chunk, as its bytes in the file.
pub struct LargeValues {
    values: BinaryArray,
    pages: Arc<[Page]>,
}

struct Page {
    rows: Range<usize>,
    header: Vec<u8>,
    /// Which rows have a value, as the page begins; empty where all must have one.
    levels: Vec<u8>,
    /// Of `levels` and the plain values.
    plain_size_bytes: u32,
    /// As written, with the header.
    size_bytes: usize,
}

impl LargeValues {
    /// The chunk of `column` (Utf8 or Binary) and what the row group says of it.
    pub fn new(
        column: &ArrayRef,
        description: &ColumnDescPtr,
    ) -> Result<(Self, ColumnCloseResult)> {
        let values = match column.data_type() {
            DataType::Utf8 => BinaryArray::from(column.as_string::<i32>().clone()),
            _ => column.as_binary::<i32>().clone(),
        };
        let is_optional = description.max_def_level() > 0;
        let pages =
            page_rows(&values).into_iter().map(|rows| Page::new(&values, rows, is_optional));
        let pages: Arc<[Page]> = pages.collect::<Result<Vec<Page>>>()?.into();
        let close = describe(&values, &pages, description)?;
        Ok((Self { values, pages }, close))
    }
}

/// Rows in pages of about PAGE_SIZE_BYTES, at least one row each.
fn page_rows(values: &BinaryArray) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut first, mut size_bytes) = (0, 0);
    for row in 0..values.len() {
        size_bytes += values.value(row).len();
        if size_bytes >= PAGE_SIZE_BYTES || row + 1 == values.len() {
            found.push(first..row + 1);
            (first, size_bytes) = (row + 1, 0);
        }
    }
    found
}

impl Page {
    fn new(values: &BinaryArray, rows: Range<usize>, is_optional: bool) -> Result<Self> {
        let levels = if is_optional { encode_levels(values, rows.clone()) } else { Vec::new() };
        let present = rows.clone().filter(|row| values.is_valid(*row));
        let plain: usize = present.map(|row| 4 + values.value(row).len()).sum();
        let plain_size = i32::try_from(levels.len() + plain).map_err(|_| {
            ParquetError::General("a value is larger than a Parquet page can be".to_string())
        })?;
        let mut page = Self {
            rows,
            header: Vec::new(),
            levels,
            plain_size_bytes: plain_size.unsigned_abs(),
            size_bytes: 0,
        };
        let mut blocks = Blocks::of(&page);
        let mut block = Vec::new();
        let mut compressed = varint(u64::from(page.plain_size_bytes)).len();
        while blocks.next(values, &page, &mut block)? {
            compressed += block.len();
        }
        page.header = encode_header(plain_size, i32::try_from(compressed)?, page.rows.len() as i32);
        page.size_bytes = page.header.len() + compressed;
        Ok(page)
    }
}

fn describe(
    values: &BinaryArray,
    pages: &[Page],
    description: &ColumnDescPtr,
) -> Result<ColumnCloseResult> {
    let size_bytes: usize = pages.iter().map(|page| page.size_bytes).sum();
    let plain_size_bytes: usize =
        pages.iter().map(|page| page.header.len() + page.plain_size_bytes as usize).sum();
    let offsets = values.value_offsets();
    let value_bytes = |rows: &Range<usize>| i64::from(offsets[rows.end] - offsets[rows.start]);
    let mut index = OffsetIndexBuilder::new();
    let mut offset = 0;
    for page in pages {
        index.append_row_count(page.rows.len() as i64);
        index.append_offset_and_size(offset, i32::try_from(page.size_bytes)?);
        index.append_unencoded_byte_array_data_bytes(Some(value_bytes(&page.rows)));
        offset += page.size_bytes as i64;
    }
    // Bounds of values this large are of use to nobody; the table's own statistics have
    // their beginnings.
    let statistics =
        Statistics::new::<ByteArray>(None, None, None, Some(values.null_count() as u64), false);
    let metadata = ColumnChunkMetaData::builder(description.clone())
        .set_compression(Compression::SNAPPY)
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE])
        .set_total_compressed_size(size_bytes as i64)
        .set_total_uncompressed_size(plain_size_bytes as i64)
        .set_num_values(values.len() as i64)
        .set_data_page_offset(0)
        .set_unencoded_byte_array_data_bytes(Some(value_bytes(&(0..values.len()))))
        .set_statistics(statistics)
        .build()?;
    Ok(ColumnCloseResult {
        bytes_written: size_bytes as u64,
        rows_written: values.len() as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: Some(index.build()),
    })
}

/// Definition levels of a version 1 data page: their size, then runs of equal ones.
fn encode_levels(values: &BinaryArray, rows: Range<usize>) -> Vec<u8> {
    let mut levels = vec![0; 4];
    let mut row = rows.start;
    while row < rows.end {
        let is_valid = values.is_valid(row);
        let same = (row..rows.end).take_while(|other| values.is_valid(*other) == is_valid).count();
        levels.extend(varint((same as u64) << 1));
        levels.push(u8::from(is_valid));
        row += same;
    }
    let size = levels.len() as u32 - 4;
    levels[..4].copy_from_slice(&size.to_le_bytes());
    levels
}

/// PageHeader of the Parquet format, in Thrift's compact protocol.
fn encode_header(plain_size: i32, compressed_size: i32, row_count: i32) -> Vec<u8> {
    const INT: u8 = 5;
    const STRUCT: u8 = 12;
    const STOP: u8 = 0;
    const PLAIN: i32 = 0;
    const RLE: i32 = 3;
    let mut header = Vec::new();
    // A field: how far its number is from the one before, its type; then the value.
    let mut put = |step: u8, value: i32| {
        header.push(step << 4 | INT);
        header.extend(varint(u64::from(((value << 1) ^ (value >> 31)) as u32)));
    };
    put(1, 0); // type: DATA_PAGE
    put(1, plain_size);
    put(1, compressed_size);
    header.push(2 << 4 | STRUCT); // data_page_header
    let mut put = |value: i32| {
        header.push(1 << 4 | INT);
        header.extend(varint(u64::from(value.unsigned_abs()) << 1));
    };
    put(row_count);
    put(PLAIN);
    put(RLE); // definition levels
    put(RLE); // repetition levels
    header.extend([STOP, STOP]);
    header
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// The compressed blocks of one page, one after the other.
struct Blocks {
    encoder: snap::raw::Encoder,
    plain: Vec<u8>,
    /// Of the levels: bytes that went into blocks.
    levels_done: usize,
    /// The row being encoded, and how many bytes of its size and value are done.
    row: usize,
    done: usize,
}

impl Blocks {
    fn of(page: &Page) -> Self {
        Self {
            encoder: snap::raw::Encoder::new(),
            plain: Vec::with_capacity(BLOCK_SIZE_BYTES),
            levels_done: 0,
            row: page.rows.start,
            done: 0,
        }
    }

    /// Puts the next block into `out`, or returns false at the end of the page.
    fn next(&mut self, values: &BinaryArray, page: &Page, out: &mut Vec<u8>) -> Result<bool> {
        self.plain.clear();
        self.levels_done += self.take(&page.levels[self.levels_done..]);
        while self.row < page.rows.end && self.plain.len() < BLOCK_SIZE_BYTES {
            self.take_row(values);
        }
        if self.plain.is_empty() {
            return Ok(false);
        }
        out.resize(snap::raw::max_compress_len(self.plain.len()), 0);
        let size = self.encoder.compress(&self.plain, out)?;
        // The encoder begins with the size of its input; the page has that in front once.
        let prefix = varint(self.plain.len() as u64).len();
        out.copy_within(prefix..size, 0);
        out.truncate(size - prefix);
        Ok(true)
    }

    fn take_row(&mut self, values: &BinaryArray) {
        if values.is_null(self.row) {
            self.row += 1;
            return;
        }
        let value = values.value(self.row);
        if self.done < 4 {
            let size = (value.len() as u32).to_le_bytes();
            self.done += self.take(&size[self.done..]);
        }
        if self.done >= 4 {
            self.done += self.take(&value[self.done - 4..]);
        }
        if self.done == 4 + value.len() {
            (self.row, self.done) = (self.row + 1, 0);
        }
    }

    /// Returns how many of `bytes` still went into the block.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(BLOCK_SIZE_BYTES - self.plain.len());
        self.plain.extend_from_slice(&bytes[..taken]);
        taken
    }
}

/// Reads the chunk from its beginning, compressing as it goes.
pub struct LargeValuesReader {
    values: BinaryArray,
    pages: Arc<[Page]>,
    page: usize,
    blocks: Option<Blocks>,
    ready: Vec<u8>,
    ready_done: usize,
}

impl LargeValuesReader {
    /// False at the end of the chunk.
    fn fill(&mut self) -> Result<bool> {
        self.ready_done = 0;
        while let Some(page) = self.pages.get(self.page) {
            let Some(blocks) = &mut self.blocks else {
                self.ready.clone_from(&page.header);
                self.ready.extend(varint(u64::from(page.plain_size_bytes)));
                self.blocks = Some(Blocks::of(page));
                return Ok(true);
            };
            if blocks.next(&self.values, page, &mut self.ready)? {
                return Ok(true);
            }
            self.page += 1;
            self.blocks = None;
        }
        self.ready.clear();
        Ok(false)
    }
}

impl Read for LargeValuesReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.ready_done == self.ready.len() && !self.fill().map_err(std::io::Error::other)? {
            return Ok(0);
        }
        let size = buffer.len().min(self.ready.len() - self.ready_done);
        buffer[..size].copy_from_slice(&self.ready[self.ready_done..self.ready_done + size]);
        self.ready_done += size;
        Ok(size)
    }
}

impl Length for LargeValues {
    fn len(&self) -> u64 {
        self.pages.iter().map(|page| page.size_bytes as u64).sum()
    }
}

/// Only from the beginning, which is all that appending a chunk asks for.
impl ChunkReader for LargeValues {
    type T = LargeValuesReader;

    fn get_read(&self, start: u64) -> Result<LargeValuesReader> {
        if start != 0 {
            return Err(ParquetError::NYI("a chunk of large values is read in order".to_string()));
        }
        Ok(LargeValuesReader {
            values: self.values.clone(),
            pages: self.pages.clone(),
            page: 0,
            blocks: None,
            ready: Vec::new(),
            ready_done: 0,
        })
    }

    fn get_bytes(&self, _start: u64, _length: usize) -> Result<Bytes> {
        Err(ParquetError::NYI("a chunk of large values is read in order".to_string()))
    }
}
