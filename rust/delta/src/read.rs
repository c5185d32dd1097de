//! Rows out of a table, as an Arrow C stream fed by a thread of its own, and their count.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;

use delta_kernel::arrow::array::RecordBatchReader;
use delta_kernel::arrow::array::{BooleanArray, Int32Array, RecordBatch, Scalar, StringArray};
use delta_kernel::arrow::compute::kernels::cmp::{eq, gt, gt_eq};
use delta_kernel::arrow::compute::{and, filter_record_batch, is_not_null, is_null};
use delta_kernel::arrow::datatypes::{Schema as ArrowSchema, SchemaRef as ArrowSchemaRef};
use delta_kernel::arrow::error::ArrowError;
use delta_kernel::arrow::ffi_stream::FFI_ArrowArrayStream;
use delta_kernel::engine::arrow_conversion::TryIntoArrow as _;
use delta_kernel::engine::arrow_data::EngineDataArrowExt as _;
use delta_kernel::expressions::{Expression, Predicate, Scalar as KernelScalar};
use delta_kernel::scan::state::ScanFile;
use delta_kernel::scan::Scan;
use delta_kernel::schema::{DataType, StructField, StructType};
use delta_kernel::snapshot::SnapshotRef;
use serde_json::Value;

use crate::failure::{Code, Failure, Outcome};
use crate::schema::{find_field, table_fields};
use crate::table::{Table, TableEngine};

const BATCHES_AHEAD: usize = 2;

enum Operator {
    Equal(String),
    Above(String),
    AtLeast(String),
    NumberIs(i32),
    IsNull,
    IsNotNull,
}

struct Condition {
    column: StructField,
    operator: Operator,
}

/// `spec`: {"columns": [names], "conditions": [{"column", "op", "text"}]}; no columns
/// means all.
pub fn read(table: &mut Table, spec: &Value) -> Outcome<FFI_ArrowArrayStream> {
    let snapshot = match spec["version"].as_u64() {
        Some(version) => table.at_version(version)?,
        None => table.must_refresh()?,
    };
    let fields = table_fields(&snapshot);
    let mut shown = Vec::new();
    for name in spec["columns"].as_array().into_iter().flatten() {
        shown.push(lookup(&fields, name.as_str().unwrap_or_default())?);
    }
    if shown.is_empty() {
        shown.clone_from(&fields);
    }
    let conditions = conditions(&fields, &spec["conditions"])?;
    let mut scanned = shown.clone();
    for condition in &conditions {
        if find_field(&scanned, condition.column.name()).is_none() {
            scanned.push(condition.column.clone());
        }
    }
    let scan = snapshot
        .scan_builder()
        .with_schema(Arc::new(StructType::try_new(scanned)?))
        .with_predicate(predicate(&conditions).map(Arc::new))
        .build()?;
    let schema: ArrowSchema = (&StructType::try_new(shown)?).try_into_arrow()?;
    let schema = Arc::new(schema);
    let (sender, receiver) = sync_channel(BATCHES_AHEAD);
    let work = Work {
        scan,
        engine: table.place.engine.clone(),
        conditions,
        schema: schema.clone(),
        sender,
    };
    std::thread::Builder::new().name("delta-read".to_string()).spawn(move || work.run())?;
    let rows = Rows::new(schema, receiver);
    Ok(FFI_ArrowArrayStream::new(Box::new(rows)))
}

pub fn lookup(fields: &[StructField], name: &str) -> Outcome<StructField> {
    find_field(fields, name)
        .cloned()
        .ok_or_else(|| Failure::of_column(Code::SchemaMismatch, name, "the table lacks the column"))
}

fn conditions(fields: &[StructField], spec: &Value) -> Outcome<Vec<Condition>> {
    let mut conditions = Vec::new();
    for condition in spec.as_array().into_iter().flatten() {
        let column = lookup(fields, condition["column"].as_str().unwrap_or_default())?;
        let operator = match condition["op"].as_str() {
            Some("null") => Operator::IsNull,
            Some("not_null") => Operator::IsNotNull,
            Some("number") if *column.data_type() == DataType::INTEGER => {
                let number = condition["number"].as_i64().unwrap_or_default();
                Operator::NumberIs(i32::try_from(number).unwrap_or_default())
            }
            op if *column.data_type() == DataType::STRING => {
                let text = condition["text"].as_str().unwrap_or_default().to_string();
                match op {
                    Some("above") => Operator::Above(text),
                    Some("at_least") => Operator::AtLeast(text),
                    _ => Operator::Equal(text),
                }
            }
            _ => {
                let detail = "the column is of another type than what it is compared with";
                return Err(Failure::of_column(Code::SchemaMismatch, column.name(), detail));
            }
        };
        conditions.push(Condition { column, operator });
    }
    Ok(conditions)
}

/// For skipping files and row groups; every row is looked at again.
fn predicate(conditions: &[Condition]) -> Option<Predicate> {
    let parts = conditions.iter().map(|condition| {
        let column = Expression::column([condition.column.name().as_str()]);
        let literal = |text: &String| Expression::literal(KernelScalar::String(text.clone()));
        match &condition.operator {
            Operator::Equal(text) => Predicate::eq(column, literal(text)),
            Operator::Above(text) => Predicate::gt(column, literal(text)),
            Operator::AtLeast(text) => Predicate::ge(column, literal(text)),
            Operator::NumberIs(number) => {
                Predicate::eq(column, Expression::literal(KernelScalar::Integer(*number)))
            }
            Operator::IsNull => Predicate::is_null(column),
            Operator::IsNotNull => Predicate::is_not_null(column),
        }
    });
    parts.reduce(Predicate::and)
}

pub enum Message {
    Batch(RecordBatch),
    Failed(String),
    End,
}

/// Runs `send_batches` and tells the reader of `sender` how it ended, a panic included.
pub fn send_last(sender: &SyncSender<Message>, send_batches: impl FnOnce() -> Outcome<()>) {
    let last = match catch_unwind(AssertUnwindSafe(send_batches)) {
        Ok(Ok(())) => Message::End,
        Ok(Err(failure)) => Message::Failed(failure.detail),
        Err(_) => Message::Failed("reading panicked".to_string()),
    };
    // The reader may have gone away already.
    let _ = sender.send(last);
}

struct Work {
    scan: Scan,
    engine: Arc<TableEngine>,
    conditions: Vec<Condition>,
    schema: ArrowSchemaRef,
    sender: SyncSender<Message>,
}

impl Work {
    fn run(self) {
        send_last(&self.sender, || self.send_batches());
    }

    fn send_batches(&self) -> Outcome<()> {
        for data in self.scan.execute(self.engine.clone())? {
            let batch = self.select(data?.try_into_record_batch()?)?;
            if batch.num_rows() != 0 && self.sender.send(Message::Batch(batch)).is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The rows that meet the conditions, with the columns asked for.
    fn select(&self, batch: RecordBatch) -> Outcome<RecordBatch> {
        let mut mask: Option<BooleanArray> = None;
        for condition in &self.conditions {
            let name = condition.column.name();
            let array = batch.column_by_name(name).ok_or_else(|| {
                Failure::of_column(Code::Internal, name, "a scanned column is missing")
            })?;
            let literal = |text: &String| Scalar::new(StringArray::from(vec![text.as_str()]));
            let holds = match &condition.operator {
                Operator::Equal(text) => eq(array, &literal(text))?,
                Operator::Above(text) => gt(array, &literal(text))?,
                Operator::AtLeast(text) => gt_eq(array, &literal(text))?,
                Operator::NumberIs(number) => {
                    eq(array, &Scalar::new(Int32Array::from(vec![*number])))?
                }
                Operator::IsNull => is_null(array)?,
                Operator::IsNotNull => is_not_null(array)?,
            };
            mask = Some(match mask {
                Some(mask) => and(&mask, &holds)?,
                None => holds,
            });
        }
        let kept = match &mask {
            Some(mask) => filter_record_batch(&batch, mask)?,
            None => batch,
        };
        let shown = self.schema.fields().iter().map(|field| {
            kept.column_by_name(field.name()).cloned().ok_or_else(|| {
                Failure::of_column(Code::Internal, field.name(), "a scanned column is missing")
            })
        });
        let arrays = shown.collect::<Outcome<Vec<_>>>()?;
        Ok(RecordBatch::try_new(self.schema.clone(), arrays)?)
    }
}

/// What a thread sends, as a stream.
pub struct Rows {
    schema: ArrowSchemaRef,
    receiver: Receiver<Message>,
    is_done: bool,
}

impl Rows {
    pub fn new(schema: ArrowSchemaRef, receiver: Receiver<Message>) -> Self {
        Self { schema, receiver, is_done: false }
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let message =
            self.receiver.recv().unwrap_or(Message::Failed("reading stopped".to_string()));
        match message {
            Message::Batch(batch) => Some(Ok(batch)),
            Message::Failed(detail) => {
                self.is_done = true;
                Some(Err(ArrowError::ExternalError(detail.into())))
            }
            Message::End => {
                self.is_done = true;
                None
            }
        }
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> ArrowSchemaRef {
        self.schema.clone()
    }
}

/// From the files' statistics; files without any are counted by reading.
pub fn row_count(table: &mut Table) -> Outcome<u64> {
    let snapshot = table.must_refresh()?;
    let engine = table.place.engine.as_ref();
    let scan = snapshot.clone().scan_builder().build()?;
    let mut counted = Some(0u64);
    for metadata in scan.scan_metadata(engine)? {
        counted = metadata?.visit_scan_files(counted, add_file)?;
    }
    match counted {
        Some(count) => Ok(count),
        None => count_by_reading(&snapshot, &table.place.engine),
    }
}

fn add_file(total: &mut Option<u64>, file: ScanFile) {
    let removed = file.dv_info.cardinality().ok().map(|rows| rows.unwrap_or(0));
    *total = match (*total, file.stats, removed) {
        (Some(total), Some(stats), Some(removed)) => {
            Some(total + stats.num_records.saturating_sub(removed))
        }
        _ => None,
    };
}

fn count_by_reading(snapshot: &SnapshotRef, engine: &Arc<TableEngine>) -> Outcome<u64> {
    let first: Vec<StructField> = table_fields(snapshot).into_iter().take(1).collect();
    let scan = snapshot
        .clone()
        .scan_builder()
        .with_schema(Arc::new(StructType::try_new(first)?))
        .build()?;
    let mut count = 0;
    for data in scan.execute(engine.clone())? {
        count += data?.try_into_record_batch()?.num_rows() as u64;
    }
    Ok(count)
}
