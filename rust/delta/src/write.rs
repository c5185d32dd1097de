//! Rows into the data files of a table: each batch in the table's columns, then in a
//! Parquet file, with a new file where one grows too large.

use std::sync::Arc;

use delta_kernel::arrow::array::{new_null_array, RecordBatch};
use delta_kernel::arrow::datatypes::{Schema as ArrowSchema, SchemaRef as ArrowSchemaRef};
use delta_kernel::arrow::ffi_stream::RecordBatchStreamReader;
use delta_kernel::engine::arrow_conversion::TryIntoArrow as _;
use delta_kernel::engine::arrow_data::{ArrowEngineData, EngineDataArrowExt as _};
use delta_kernel::object_store::path::Path;
use delta_kernel::transaction::BoundWriteContext;
use delta_kernel::{Engine as _, ExpressionEvaluator, FileMeta};
use delta_kernel_default_engine::build_add_file_metadata;
use delta_kernel_default_engine::parquet::DataFileMetadata;
use url::Url;
use uuid::Uuid;

use crate::create::now_ms;
use crate::failure::{Code, Failure, Outcome};
use crate::parquet_file::ParquetFile;
use crate::table::Place;
use crate::upload::Upload;

const FILE_SIZE_BYTES_MAX: usize = 256 << 20;

/// A data file that is complete in storage: the row of its `add` action.
pub struct DataFile {
    pub add: RecordBatch,
    pub row_count: u64,
    pub size_bytes: u64,
}

struct OpenFile {
    file: ParquetFile,
    url: Url,
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

    pub fn write(&mut self, batch: &RecordBatch) -> Outcome<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let physical = self.arrange(batch)?;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.start(&physical)?,
        };
        let written = open.file.write(&physical);
        let is_full = open.file.size_bytes() >= FILE_SIZE_BYTES_MAX;
        self.open = Some(open);
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
        let upload = Upload::new(self.place, path.clone());
        let file = ParquetFile::new(upload, first.schema(), self.context)?;
        self.paths.push(path);
        Ok(OpenFile { file, url })
    }

    /// Completes the file that is open, if one is.
    pub fn close(&mut self) -> Outcome<()> {
        let Some(OpenFile { mut file, url }) = self.open.take() else { return Ok(()) };
        file.finish()?;
        let (row_count, size_bytes) = (file.row_count, file.size_bytes() as u64);
        let statistics = file
            .statistics
            .finish()?
            .ok_or_else(|| Failure::new(Code::Internal, "a data file has no statistics"))?;
        let meta = DataFileMetadata::new(FileMeta::new(url, now_ms()?, size_bytes), statistics);
        let add = build_add_file_metadata(meta, self.context)?.try_into_record_batch()?;
        self.files.push(DataFile { add, row_count, size_bytes });
        Ok(())
    }

    fn abandon(&mut self) {
        if let Some(open) = self.open.take() {
            open.file.abandon();
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
