//! Rows into Parquet files, streaming: one row group in memory, statistics beside it.

use std::sync::Arc;

use delta_kernel::arrow::array::{new_null_array, RecordBatch};
use delta_kernel::arrow::datatypes::{Schema as ArrowSchema, SchemaRef as ArrowSchemaRef};
use delta_kernel::arrow::ffi_stream::RecordBatchStreamReader;
use delta_kernel::engine::arrow_conversion::TryIntoArrow as _;
use delta_kernel::engine::arrow_data::{ArrowEngineData, EngineDataArrowExt as _};
use delta_kernel::object_store::buffered::BufWriter;
use delta_kernel::object_store::path::Path;
use delta_kernel::parquet::arrow::arrow_writer::ArrowWriterOptions;
use delta_kernel::parquet::arrow::async_writer::AsyncArrowWriter;
use delta_kernel::parquet::basic::Compression;
use delta_kernel::parquet::file::properties::WriterProperties;
use delta_kernel::transaction::BoundWriteContext;
use delta_kernel::{Engine as _, ExpressionEvaluator, FileMeta};
use delta_kernel_default_engine::build_add_file_metadata;
use delta_kernel_default_engine::parquet::DataFileMetadata;
use delta_kernel_default_engine::stats::FileStatsAccumulator;
use url::Url;
use uuid::Uuid;

use crate::create::now_ms;
use crate::failure::{Code, Failure, Outcome};
use crate::table::{runtime, Place, ENGINE_INFO};

const ROW_GROUP_SIZE_BYTES_MAX: usize = 32 << 20;
const FILE_SIZE_BYTES_MAX: usize = 256 << 20;
/// Of one upload request; two may be under way.
const PART_SIZE_BYTES: usize = 8 << 20;

/// A data file that is complete in storage: the row of its `add` action.
pub struct DataFile {
    pub add: RecordBatch,
    pub path: Path,
    pub row_count: u64,
    pub size_bytes: u64,
}

struct OpenFile {
    writer: AsyncArrowWriter<BufWriter>,
    statistics: FileStatsAccumulator,
    url: Url,
    path: Path,
    row_count: u64,
}

/// Writes the batches of one source; `finish` completes the last file.
pub struct RowWriter<'a> {
    place: &'a Place,
    context: &'a BoundWriteContext,
    source_index: u32,
    /// By table column: its place in the source, or None if the source lacks it.
    columns: Vec<Option<usize>>,
    logical: ArrowSchemaRef,
    to_physical: Arc<dyn ExpressionEvaluator>,
    open: Option<OpenFile>,
    /// Data files so far, complete or not.
    paths: Vec<Path>,
    files: Vec<DataFile>,
}

impl<'a> RowWriter<'a> {
    pub fn new(
        place: &'a Place,
        context: &'a BoundWriteContext,
        source_index: u32,
        source: &ArrowSchema,
    ) -> Outcome<Self> {
        let logical: ArrowSchema = context.logical_data_schema().as_ref().try_into_arrow()?;
        let to_physical = place.engine.evaluation_handler().new_expression_evaluator(
            context.logical_data_schema().clone(),
            context.logical_to_physical(),
            context.physical_data_schema().clone().into(),
        )?;
        let columns = match_columns(&logical, source)?;
        Ok(Self {
            place,
            context,
            source_index,
            columns,
            logical: Arc::new(logical),
            to_physical,
            open: None,
            paths: Vec::new(),
            files: Vec::new(),
        })
    }

    /// Writes every batch of `reader`, until `is_stopped` says so.
    pub fn drain(
        &mut self,
        reader: RecordBatchStreamReader,
        is_stopped: impl Fn() -> bool,
    ) -> Outcome<()> {
        for batch in reader {
            if is_stopped() {
                return Err(Failure::new(Code::Cancelled, "another source failed"));
            }
            self.write(&batch.map_err(|error| Failure::new(Code::Source, error))?)?;
        }
        self.close()
    }

    /// The finished files, and every path that was begun.
    pub fn into_files(mut self) -> (Vec<DataFile>, Vec<Path>) {
        self.abandon();
        (std::mem::take(&mut self.files), std::mem::take(&mut self.paths))
    }

    fn write(&mut self, batch: &RecordBatch) -> Outcome<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let physical = self.arrange(batch)?;
        let mut file = match self.open.take() {
            Some(file) => file,
            None => self.start(&physical)?,
        };
        file.statistics.merge(&physical)?;
        file.row_count += physical.num_rows() as u64;
        let written = runtime()?.block_on(file.writer.write(&physical));
        let is_full = file.writer.bytes_written() >= FILE_SIZE_BYTES_MAX;
        self.open = Some(file);
        written?;
        if is_full {
            self.close()
        } else {
            Ok(())
        }
    }

    /// The batch in the table's column order, then in its physical form.
    fn arrange(&self, batch: &RecordBatch) -> Outcome<RecordBatch> {
        let fields = self.logical.fields().iter();
        let arrays = fields
            .zip(&self.columns)
            .map(|(field, index)| match index {
                Some(index) => batch.column(*index).clone(),
                None => new_null_array(field.data_type(), batch.num_rows()),
            })
            .collect();
        let logical = RecordBatch::try_new(self.logical.clone(), arrays)
            .map_err(|error| Failure::new(Code::SchemaMismatch, error))?;
        let physical = self.to_physical.evaluate(&ArrowEngineData::new(logical))?;
        Ok(physical.try_into_record_batch()?)
    }

    fn start(&mut self, first: &RecordBatch) -> Outcome<OpenFile> {
        let name = format!("part-{:05}-{}-c000.snappy.parquet", self.source_index, Uuid::new_v4());
        let url = self.context.write_dir().join(&name)?;
        let path = Path::from_url_path(url.path())?;
        let upload =
            BufWriter::with_capacity(self.place.store.clone(), path.clone(), PART_SIZE_BYTES)
                .with_max_concurrency(2);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(ENGINE_INFO.to_string())
            .set_max_row_group_bytes(Some(ROW_GROUP_SIZE_BYTES_MAX))
            .build();
        let options =
            ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = AsyncArrowWriter::try_new_with_options(upload, first.schema(), options)?;
        let statistics = FileStatsAccumulator::new(
            self.context.stats_columns(),
            self.context.physical_data_schema(),
        );
        self.paths.push(path.clone());
        Ok(OpenFile { writer, statistics, url, path, row_count: 0 })
    }

    fn close(&mut self) -> Outcome<()> {
        let Some(mut file) = self.open.take() else { return Ok(()) };
        // An upload that failed to finish cleans up after itself when it is dropped.
        runtime()?.block_on(file.writer.finish())?;
        let size_bytes = file.writer.bytes_written() as u64;
        let statistics = file
            .statistics
            .finish()?
            .ok_or_else(|| Failure::new(Code::Internal, "a data file has no statistics"))?;
        let meta =
            DataFileMetadata::new(FileMeta::new(file.url, now_ms()?, size_bytes), statistics);
        let add = build_add_file_metadata(meta, self.context)?.try_into_record_batch()?;
        self.files.push(DataFile { add, path: file.path, row_count: file.row_count, size_bytes });
        Ok(())
    }

    fn abandon(&mut self) {
        if let (Some(file), Ok(runtime)) = (self.open.take(), runtime()) {
            // Best effort: parts that were sent are dropped by the store's own rules.
            let _ = runtime.block_on(file.writer.into_inner().abort());
        }
    }
}

/// Where each table column is in the source. Names match ignoring case.
fn match_columns(logical: &ArrowSchema, source: &ArrowSchema) -> Outcome<Vec<Option<usize>>> {
    let names: Vec<String> = source.fields().iter().map(|f| f.name().to_lowercase()).collect();
    let mut used = 0;
    let mut columns = Vec::with_capacity(logical.fields().len());
    for field in logical.fields() {
        let wanted = field.name().to_lowercase();
        let index = names.iter().position(|name| *name == wanted);
        match index {
            Some(index) if source.field(index).data_type() != field.data_type() => {
                let detail = format!(
                    "the table has {}, the rows have {}",
                    field.data_type(),
                    source.field(index).data_type()
                );
                return Err(Failure::of_column(Code::SchemaMismatch, field.name(), detail));
            }
            None if !field.is_nullable() => {
                let detail = "the table does not allow NULL, and the rows lack the column";
                return Err(Failure::of_column(Code::SchemaMismatch, field.name(), detail));
            }
            Some(_) => used += 1,
            None => {}
        }
        columns.push(index);
    }
    if used != names.len() {
        let unknown = source.fields().iter().find(|field| {
            let name = field.name().to_lowercase();
            !logical.fields().iter().any(|f| f.name().to_lowercase() == name)
        });
        let name = unknown.map_or("", |field| field.name().as_str());
        return Err(Failure::of_column(Code::SchemaMismatch, name, "the table lacks the column"));
    }
    Ok(columns)
}
