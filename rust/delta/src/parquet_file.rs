//! One data file while it is written: row groups bounded by bytes, each in memory only
//! in its encoded form; values of many megabytes not even in that.

use std::sync::Arc;

use delta_kernel::arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch, StringArray};
use delta_kernel::arrow::datatypes::{DataType, SchemaRef as ArrowSchemaRef};
use delta_kernel::parquet::arrow::arrow_writer::{
    compute_leaves, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions,
};
use delta_kernel::parquet::basic::Compression;
use delta_kernel::parquet::file::properties::WriterProperties;
use delta_kernel::parquet::file::writer::SerializedFileWriter;
use delta_kernel::transaction::BoundWriteContext;
use delta_kernel_default_engine::stats::FileStatsAccumulator;

use crate::failure::Outcome;
use crate::large_values::LargeValues;
use crate::row_sizes::{pieces, value_size_bytes_max};
use crate::table::ENGINE_INFO;
use crate::upload::Upload;

const ROW_GROUP_SIZE_BYTES_MAX: usize = 32 << 20;
const ROW_GROUP_ROW_COUNT_MAX: usize = 1 << 20;
/// Rows are encoded in pieces of this size, so that a row group is hardly larger than it
/// may be.
const PIECE_SIZE_BYTES_MAX: usize = 8 << 20;
/// From here on a value is written past the row group's buffers.
const LARGE_VALUE_SIZE_BYTES: usize = 1 << 20;
/// The statistics of a table have 32 characters of a text, at most 64 where that leaves no
/// upper bound, and look at one more.
const STATISTICS_CHAR_COUNT: usize = 65;
/// Texts from here on are shortened before they are compared.
const LONG_TEXT_SIZE_BYTES: usize = 4 << 10;

pub struct ParquetFile {
    writer: SerializedFileWriter<Upload>,
    factory: ArrowRowGroupWriterFactory,
    schema: ArrowSchemaRef,
    group: RowGroup,
    pub statistics: FileStatsAccumulator,
    pub row_count: u64,
}

/// The row group being filled.
#[derive(Default)]
struct RowGroup {
    /// One a leaf column; none at all before the first row.
    columns: Vec<ArrowColumnWriter>,
    row_count: usize,
}

impl ParquetFile {
    pub fn new(
        upload: Upload,
        schema: ArrowSchemaRef,
        context: &BoundWriteContext,
    ) -> Outcome<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(ENGINE_INFO.to_string())
            .build();
        let options =
            ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(upload, schema.clone(), options)?;
        let (writer, factory) = writer.into_serialized_writer()?;
        let statistics =
            FileStatsAccumulator::new(context.stats_columns(), context.physical_data_schema());
        Ok(Self { writer, factory, schema, group: RowGroup::default(), statistics, row_count: 0 })
    }

    pub fn size_bytes(&self) -> usize {
        self.writer.bytes_written()
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Outcome<()> {
        self.statistics.merge(&shortened(batch)?)?;
        self.row_count += batch.num_rows() as u64;
        for rows in pieces(batch, ROW_GROUP_SIZE_BYTES_MAX) {
            let piece = batch.slice(rows.start, rows.len());
            if piece.columns().iter().any(is_large) {
                self.end_row_group()?;
                self.write_large(&piece)?;
                continue;
            }
            for rows in pieces(&piece, PIECE_SIZE_BYTES_MAX) {
                self.encode(&piece.slice(rows.start, rows.len()))?;
            }
        }
        Ok(())
    }

    /// Completes the file in storage.
    pub fn finish(&mut self) -> Outcome<()> {
        self.end_row_group()?;
        self.writer.finish()?;
        self.writer.inner_mut().finish()
    }

    pub fn abandon(mut self) {
        self.writer.inner_mut().abort();
    }

    fn encode(&mut self, piece: &RecordBatch) -> Outcome<()> {
        if self.group.columns.is_empty() {
            let index = self.writer.flushed_row_groups().len();
            self.group.columns = self.factory.create_column_writers(index)?;
        }
        let mut columns = self.group.columns.iter_mut();
        for (field, array) in self.schema.fields().iter().zip(piece.columns()) {
            for leaf in compute_leaves(field, array)? {
                if let Some(column) = columns.next() {
                    column.write(&leaf)?;
                }
            }
        }
        self.group.row_count += piece.num_rows();
        let columns = self.group.columns.iter();
        let size_bytes: usize = columns.map(ArrowColumnWriter::get_estimated_total_bytes).sum();
        let is_full = size_bytes >= ROW_GROUP_SIZE_BYTES_MAX
            || self.group.row_count >= ROW_GROUP_ROW_COUNT_MAX;
        if is_full {
            self.end_row_group()
        } else {
            Ok(())
        }
    }

    fn end_row_group(&mut self) -> Outcome<()> {
        let group = std::mem::take(&mut self.group);
        if group.row_count == 0 {
            return Ok(());
        }
        let mut out = self.writer.next_row_group()?;
        for column in group.columns {
            column.close()?.append_to_row_group(&mut out)?;
        }
        out.close()?;
        Ok(())
    }

    /// `piece` as a row group of its own, its large values straight from their array.
    fn write_large(&mut self, piece: &RecordBatch) -> Outcome<()> {
        let index = self.writer.flushed_row_groups().len();
        let mut writers = self.factory.create_column_writers(index)?.into_iter();
        let descriptions = self.writer.schema_descr().columns().to_vec();
        let mut out = self.writer.next_row_group()?;
        let mut leaf_index = 0;
        for (field, array) in self.schema.fields().iter().zip(piece.columns()) {
            if is_large(array) {
                let (values, close) = LargeValues::new(array, &descriptions[leaf_index])?;
                out.append_column(&values, close)?;
                writers.next();
                leaf_index += 1;
                continue;
            }
            for leaf in compute_leaves(field, array)? {
                let Some(mut column) = writers.next() else { continue };
                column.write(&leaf)?;
                column.close()?.append_to_row_group(&mut out)?;
                leaf_index += 1;
            }
        }
        out.close()?;
        Ok(())
    }
}

fn is_large(column: &ArrayRef) -> bool {
    value_size_bytes_max(column) >= LARGE_VALUE_SIZE_BYTES
}

/// The batch with long texts cut to what statistics can tell apart. The bounds of the
/// whole texts are kept for every batch of a file otherwise, and only then cut.
fn shortened(batch: &RecordBatch) -> Outcome<RecordBatch> {
    let is_long = |column: &ArrayRef| {
        *column.data_type() == DataType::Utf8
            && value_size_bytes_max(column) >= LONG_TEXT_SIZE_BYTES
    };
    if !batch.columns().iter().any(is_long) {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter();
    let columns =
        columns.map(|column| if is_long(column) { beginnings(column) } else { column.clone() });
    Ok(RecordBatch::try_new(batch.schema(), columns.collect())?)
}

/// Cut at whole characters, texts keep their order.
fn beginnings(column: &ArrayRef) -> ArrayRef {
    let texts = column.as_string::<i32>().iter();
    let cut = texts.map(|text| {
        text.map(|text| match text.char_indices().nth(STATISTICS_CHAR_COUNT) {
            Some((end, _)) => &text[..end],
            None => text,
        })
    });
    Arc::new(cut.collect::<StringArray>())
}
