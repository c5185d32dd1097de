//! Rows of data files with their places: number of the file, number of the row in it.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;

use delta_kernel::arrow::array::{Array as _, AsArray as _, BooleanArray, Int32Array, RecordBatch};
use delta_kernel::arrow::compute::filter_record_batch;
use delta_kernel::arrow::datatypes::{
    DataType as ArrowType, Field as ArrowField, Int64Type, Schema as ArrowSchema,
    SchemaRef as ArrowSchemaRef,
};
use delta_kernel::arrow::ffi_stream::FFI_ArrowArrayStream;
use delta_kernel::engine::arrow_conversion::TryIntoArrow as _;
use delta_kernel::engine::arrow_data::EngineDataArrowExt as _;
use delta_kernel::expressions::{Expression, Predicate, Scalar};
use delta_kernel::scan::state::{transform_to_logical, ScanFile};
use delta_kernel::scan::Scan;
use delta_kernel::schema::{DataType, MetadataColumnSpec, StructField, StructType};
use delta_kernel::snapshot::SnapshotRef;
use delta_kernel::{Engine as _, FileMeta, PredicateRef};
use roaring::RoaringTreemap;
use serde_json::Value;

use crate::change::{vector_of, Base};
use crate::failure::{Code, Failure, Outcome};
use crate::read::{lookup, send_last, Message, Rows};
use crate::schema::table_fields;
use crate::table::Place;

const BATCHES_AHEAD: usize = 8;
/// The row's number, while a file is read.
const ROW_COLUMN: &str = "__$mssql_cdc_row";
const FILE_COLUMN: &str = "__$mssql_cdc_file";

fn scan_of(
    snapshot: &SnapshotRef,
    fields: &[StructField],
    predicate: Option<PredicateRef>,
) -> Outcome<(Scan, ArrowSchemaRef)> {
    let shown: ArrowSchema = (&StructType::try_new(fields.to_vec())?).try_into_arrow()?;
    let mut scanned = fields.to_vec();
    scanned.push(StructField::create_metadata_column(ROW_COLUMN, MetadataColumnSpec::RowIndex));
    let scan = snapshot
        .clone()
        .scan_builder()
        .with_schema(Arc::new(StructType::try_new(scanned)?))
        .with_predicate(predicate)
        .build()?;
    Ok((scan, Arc::new(shown)))
}

/// Reads one file and hands on its batches, with `ROW_COLUMN` last, without the rows that
/// are gone. `take` says whether to go on.
fn each_batch(
    place: &Place,
    scan: &Scan,
    file: &ScanFile,
    gone: &RoaringTreemap,
    mut take: impl FnMut(RecordBatch) -> Outcome<bool>,
) -> Outcome<()> {
    let size = u64::try_from(file.size)
        .map_err(|_| Failure::new(Code::Failed, "a file's size is negative"))?;
    let meta = FileMeta::new(place.url.join(&file.path)?, file.modification_time, size);
    let physical = scan.physical_schema().clone();
    let read = place.engine.parquet_handler().read_parquet_files(
        &[meta],
        physical.clone(),
        scan.physical_predicate(),
    )?;
    for data in read {
        let logical = transform_to_logical(
            place.engine.as_ref(),
            data?,
            &physical,
            scan.logical_schema(),
            file.transform.clone(),
        )?;
        let batch = without(logical.try_into_record_batch()?, gone)?;
        if batch.num_rows() != 0 && !take(batch)? {
            break;
        }
    }
    Ok(())
}

fn without(batch: RecordBatch, gone: &RoaringTreemap) -> Outcome<RecordBatch> {
    if gone.is_empty() {
        return Ok(batch);
    }
    let rows = row_column(&batch)?;
    let mask: BooleanArray = rows
        .as_primitive::<Int64Type>()
        .values()
        .iter()
        .map(|row| Some(!gone.contains(row.unsigned_abs())))
        .collect();
    Ok(filter_record_batch(&batch, &mask)?)
}

fn row_column(batch: &RecordBatch) -> Outcome<&delta_kernel::arrow::array::ArrayRef> {
    batch
        .column_by_name(ROW_COLUMN)
        .filter(|column| *column.data_type() == ArrowType::Int64)
        .ok_or_else(|| Failure::new(Code::Internal, "rows have no numbers"))
}

/// `batch` in the columns of `shown`.
fn arrange(batch: &RecordBatch, shown: &ArrowSchemaRef) -> Outcome<RecordBatch> {
    let arrays = shown.fields().iter().map(|field| {
        batch.column_by_name(field.name()).cloned().ok_or_else(|| {
            Failure::of_column(Code::Internal, field.name(), "a scanned column is missing")
        })
    });
    Ok(RecordBatch::try_new(shown.clone(), arrays.collect::<Outcome<Vec<_>>>()?)?)
}

/// Whole files: every column, and the rows that are not gone.
pub struct WholeFiles<'a> {
    place: &'a Place,
    scan: Scan,
    shown: ArrowSchemaRef,
    files: HashMap<String, ScanFile>,
}

impl<'a> WholeFiles<'a> {
    pub fn new(place: &'a Place, snapshot: &SnapshotRef) -> Outcome<Self> {
        let (scan, shown) = scan_of(snapshot, &table_fields(snapshot), None)?;
        // Of this scan: a file's transform goes with the scan's columns.
        let files = files_of(place, &scan)?.into_iter().map(|f| (f.path.clone(), f)).collect();
        Ok(Self { place, scan, shown, files })
    }

    pub fn shown(&self) -> &ArrowSchemaRef {
        &self.shown
    }

    /// Hands on the rows of the file at `path` that are not in `gone`.
    pub fn each(
        &self,
        path: &str,
        gone: &RoaringTreemap,
        mut take: impl FnMut(RecordBatch) -> Outcome<()>,
    ) -> Outcome<()> {
        let file = self.files.get(path);
        let file = file.ok_or_else(|| Failure::new(Code::Internal, "a file is missing"))?;
        each_batch(self.place, &self.scan, file, gone, |batch| {
            take(arrange(&batch, &self.shown)?).map(|()| true)
        })
    }
}

pub fn files_of(place: &Place, scan: &Scan) -> Outcome<Vec<ScanFile>> {
    let mut files = Vec::new();
    for metadata in scan.scan_metadata(place.engine.as_ref())? {
        files = metadata?.visit_scan_files(files, |all: &mut Vec<ScanFile>, f| all.push(f))?;
    }
    Ok(files)
}

/// `spec`: {"columns": [name], "files": [number] or null, "near": {"column", "ranges":
/// [[low, high]]} or null}. The rows of the version that `base` is of, the columns asked
/// for and then `_file` and `_row`; rows that are outside of all ranges may be missing.
pub fn probe(place: &Place, base: &Base, spec: &Value) -> Outcome<FFI_ArrowArrayStream> {
    let fields = table_fields(&base.snapshot);
    let mut wanted = Vec::new();
    for name in spec["columns"].as_array().into_iter().flatten() {
        wanted.push(lookup(&fields, name.as_str().unwrap_or_default())?);
    }
    let predicate = near(&fields, &spec["near"])?.map(Arc::new);
    let (scan, columns) = scan_of(&base.snapshot, &wanted, predicate)?;
    let only: Option<HashSet<u64>> =
        spec["files"].as_array().map(|all| all.iter().filter_map(Value::as_u64).collect());
    let mut files = Vec::new();
    for file in files_of(place, &scan)? {
        let number = base.numbers.get(&file.path).copied();
        let number = number.ok_or_else(|| Failure::new(Code::Internal, "a file is missing"))?;
        if only.as_ref().is_none_or(|only| only.contains(&(number as u64))) {
            files.push((i32::try_from(number).unwrap_or(i32::MAX), file));
        }
    }
    let mut shown: Vec<_> = columns.fields().iter().cloned().collect();
    shown.push(Arc::new(ArrowField::new(FILE_COLUMN, ArrowType::Int32, false)));
    shown.push(Arc::new(ArrowField::new(ROW_COLUMN, ArrowType::Int64, false)));
    let schema = Arc::new(ArrowSchema::new(shown));
    let (sender, receiver) = sync_channel(BATCHES_AHEAD);
    let work = Work { place: place.clone(), scan, files, schema: schema.clone(), sender };
    std::thread::Builder::new().name("delta-probe".to_string()).spawn(move || work.run())?;
    Ok(FFI_ArrowArrayStream::new(Box::new(Rows::new(schema, receiver))))
}

struct Work {
    place: Place,
    scan: Scan,
    files: Vec<(i32, ScanFile)>,
    schema: ArrowSchemaRef,
    sender: SyncSender<Message>,
}

impl Work {
    fn run(self) {
        send_last(&self.sender, || self.send_batches());
    }

    fn send_batches(&self) -> Outcome<()> {
        let mut is_wanted = true;
        for (number, file) in &self.files {
            let gone = vector_of(&self.place, file)?;
            each_batch(&self.place, &self.scan, file, &gone, |batch| {
                let batch = self.with_place(&batch, *number)?;
                is_wanted = self.sender.send(Message::Batch(batch)).is_ok();
                Ok(is_wanted)
            })?;
            if !is_wanted {
                break;
            }
        }
        Ok(())
    }

    fn with_place(&self, batch: &RecordBatch, number: i32) -> Outcome<RecordBatch> {
        let rows = row_column(batch)?.clone();
        let files = Arc::new(Int32Array::from_value(number, batch.num_rows()));
        let count = self.schema.fields().len() - 2;
        let mut arrays = Vec::with_capacity(count + 2);
        for field in &self.schema.fields()[..count] {
            let column = batch.column_by_name(field.name()).cloned();
            arrays.push(column.ok_or_else(|| {
                Failure::of_column(Code::Internal, field.name(), "a scanned column is missing")
            })?);
        }
        arrays.push(files);
        arrays.push(rows);
        Ok(RecordBatch::try_new(self.schema.clone(), arrays)?)
    }
}

/// What lets files and row groups without wanted rows be left out; None where the type of
/// the column gives nothing to compare.
fn near(fields: &[StructField], spec: &Value) -> Outcome<Option<Predicate>> {
    let Some(name) = spec["column"].as_str() else { return Ok(None) };
    let field = lookup(fields, name)?;
    let mut ranges = Vec::new();
    for range in spec["ranges"].as_array().into_iter().flatten() {
        let (Some(low), Some(high)) =
            (scalar(field.data_type(), &range[0]), scalar(field.data_type(), &range[1]))
        else {
            return Ok(None);
        };
        let column = || Expression::column([field.name().as_str()]);
        ranges.push(Predicate::and(
            Predicate::ge(column(), Expression::literal(low)),
            Predicate::le(column(), Expression::literal(high)),
        ));
    }
    Ok((!ranges.is_empty()).then(|| Predicate::or_from(ranges)))
}

fn scalar(data_type: &DataType, value: &Value) -> Option<Scalar> {
    if *data_type == DataType::STRING {
        return value.as_str().map(|text| Scalar::String(text.to_string()));
    }
    let number = value.as_i64()?;
    match data_type {
        t if *t == DataType::SHORT => i16::try_from(number).ok().map(Scalar::Short),
        t if *t == DataType::INTEGER => i32::try_from(number).ok().map(Scalar::Integer),
        t if *t == DataType::LONG => Some(Scalar::Long(number)),
        t if *t == DataType::DATE => i32::try_from(number).ok().map(Scalar::Date),
        t if *t == DataType::TIMESTAMP_NTZ => Some(Scalar::TimestampNtz(number)),
        _ => None,
    }
}
