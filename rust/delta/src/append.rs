//! An append in steps: begin, any number of sources drained by threads of the caller,
//! commit. What is not committed removes its data files when it is dropped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use delta_kernel::arrow::array::{ArrayRef, RecordBatch, StringArray};
use delta_kernel::arrow::datatypes::{
    DataType as ArrowType, Field as ArrowField, Schema as ArrowSchema,
};
use delta_kernel::arrow::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use delta_kernel::arrow::record_batch::RecordBatchReader as _;
use delta_kernel::committer::FileSystemCommitter;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::object_store::path::Path;
use delta_kernel::object_store::{Error as StoreError, ObjectStoreExt as _};
use delta_kernel::schema::{DataType, SchemaRef, StructField, StructType};
use delta_kernel::snapshot::SnapshotRef;
use delta_kernel::transaction::{
    BoundWriteContext, CommitResult, CommittedTransaction, Transaction, UpdateTableOperation,
};
use serde_json::Value;

use crate::change::Base;
use crate::failure::{Code, Failure, Outcome};
use crate::schema::{
    field_to_json, fields_from_json, find_field, is_mapped, missing_fields, table_fields, type_name,
};
use crate::table::{runtime, Place, Table, ENGINE_INFO};
use crate::write::{DataFile, RowWriter};

/// Commits that lose against other writers are tried again this often.
const ATTEMPT_COUNT: u32 = 15;

pub enum Begun {
    Ready(Box<Append>),
    /// The table's txn is at or above the wanted one; its newest version.
    AlreadyThere(u64),
}

#[derive(Clone, Copy)]
#[repr(i32)]
pub enum Kind {
    Committed = 0,
    AlreadyThere = 1,
    NoRows = 2,
}

pub struct Done {
    pub kind: Kind,
    pub version: u64,
    pub row_count: u64,
    pub size_bytes: u64,
}

#[derive(Default)]
pub struct Written {
    pub files: Vec<DataFile>,
    /// Every path begun, also by sources that failed.
    pub paths: Vec<Path>,
}

pub struct Append {
    pub place: Place,
    pub context: BoundWriteContext,
    /// For the first attempt; later ones build their own on the newest snapshot.
    pub transaction: Option<Transaction>,
    pub read_version: u64,
    pub table_id: String,
    pub add: Vec<StructField>,
    pub txn: Option<(String, i64)>,
    /// Of a change of rows.
    pub base: Option<Base>,
    pub commits_nothing: bool,
    pub written: Mutex<Written>,
    pub is_stopped: AtomicBool,
    pub keeps_files: bool,
}

/// `spec`: {"app_id", "txn_version", "merge_schema", "fields"}, the fields being those
/// of all sources together.
pub fn begin(table: &mut Table, spec: &Value) -> Outcome<Begun> {
    let snapshot = table.must_refresh()?;
    let txn = match (spec["app_id"].as_str(), spec["txn_version"].as_i64()) {
        (Some(app_id), Some(version)) => Some((app_id.to_string(), version)),
        _ => None,
    };
    if is_there(table, &txn)? {
        return Ok(Begun::AlreadyThere(snapshot.version()));
    }
    let metadata = snapshot.table_configuration().metadata();
    if !metadata.partition_columns().is_empty() {
        return Err(Failure::new(Code::Unsupported, "the table is partitioned"));
    }
    let table_id = metadata.id().to_string();
    let wanted = fields_from_json(&spec["fields"])?;
    if spec["merge_schema"].as_bool().unwrap_or(false) {
        check_types(&table_fields(&snapshot), &wanted)?;
    } else {
        check_known(&snapshot, &wanted)?;
    }
    let add = missing_fields(&snapshot, &wanted)?;
    let transaction = build(table, &snapshot, &add, &txn)?;
    let context = transaction.write_state()?.write_context_builder().build()?;
    Ok(Begun::Ready(Box::new(Append {
        place: table.place.clone(),
        context,
        transaction: Some(transaction),
        read_version: snapshot.version(),
        table_id,
        add,
        txn,
        base: None,
        commits_nothing: false,
        written: Mutex::default(),
        is_stopped: AtomicBool::new(false),
        keeps_files: false,
    })))
}

fn is_there(table: &mut Table, txn: &Option<(String, i64)>) -> Outcome<bool> {
    match txn {
        Some((app_id, version)) => Ok(table.last_txn(app_id)?.is_some_and(|last| last >= *version)),
        None => Ok(false),
    }
}

/// The table has these columns, with these types.
pub fn check_known(snapshot: &SnapshotRef, wanted: &[StructField]) -> Outcome<()> {
    let have = table_fields(snapshot);
    check_types(&have, wanted)?;
    match wanted.iter().find(|field| find_field(&have, field.name()).is_none()) {
        Some(field) => {
            let detail = "the table lacks the column";
            Err(Failure::of_column(Code::SchemaMismatch, field.name(), detail))
        }
        None => Ok(()),
    }
}

fn check_types(have: &[StructField], wanted: &[StructField]) -> Outcome<()> {
    for field in wanted {
        let known = find_field(have, field.name()).map(StructField::data_type);
        if let Some(known) = known.filter(|known| *known != field.data_type()) {
            let detail = format!(
                "the table has {}, the rows have {}",
                type_name(known)?,
                type_name(field.data_type())?
            );
            return Err(Failure::of_column(Code::SchemaMismatch, field.name(), detail));
        }
    }
    Ok(())
}

fn build(
    table: &Table,
    snapshot: &SnapshotRef,
    add: &[StructField],
    txn: &Option<(String, i64)>,
) -> Outcome<Transaction> {
    let mut parameters =
        vec![("mode", Some("Append".to_string())), ("partitionBy", Some("[]".to_string()))];
    if !add.is_empty() {
        let columns = add.iter().map(field_to_json).collect::<Outcome<Vec<Value>>>()?;
        parameters.push(("addedColumns", Some(Value::Array(columns).to_string())));
    }
    let mut builder = snapshot
        .clone()
        .update_table(UpdateTableOperation::Write, ENGINE_INFO, true)
        .with_operation_parameters(parameters);
    if add.is_empty() {
        builder = builder.with_blind_append();
    }
    for field in add {
        builder = builder.add_column(field.clone());
    }
    if let Some((app_id, version)) = txn {
        builder = builder.with_transaction_id(app_id.as_str(), *version);
    }
    Ok(builder.build(table.place.engine.as_ref(), Box::new(FileSystemCommitter::new()))?)
}

impl Append {
    /// Writes all rows of `stream`, which is owned from here on. May be called by several
    /// threads at once, each with a stream and an index of its own.
    ///
    /// # Safety
    /// `stream` is a valid Arrow C stream that nobody else uses.
    pub unsafe fn drain(
        &self,
        stream: *mut FFI_ArrowArrayStream,
        source_index: u32,
    ) -> Outcome<()> {
        let result = self.drain_checked(stream, source_index);
        if result.is_err() {
            self.stop();
        }
        result
    }

    unsafe fn drain_checked(&self, stream: *mut FFI_ArrowArrayStream, index: u32) -> Outcome<()> {
        let reader = RecordBatchStreamReader::from_raw(stream)
            .map_err(|error| Failure::new(Code::Source, error))?;
        let schema = reader.schema();
        let mut writer = RowWriter::new(&self.place, &self.context, index, &schema)?;
        let result = writer.drain(reader, || self.is_stopped.load(Ordering::Acquire));
        let (files, paths) = writer.into_files();
        let mut written = self.written();
        written.files.extend(files);
        written.paths.extend(paths);
        result
    }

    /// The sources that are being drained end at their next batch.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    pub fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Files, rows and bytes.
    pub fn totals(&self) -> (u64, u64, u64) {
        let written = self.written();
        let rows = written.files.iter().map(|file| file.row_count).sum();
        let bytes = written.files.iter().map(|file| file.size_bytes).sum();
        (written.files.len() as u64, rows, bytes)
    }

    /// Records all drained rows and the txn in one table version. A version that another
    /// writer took is retried on the newest snapshot, while that does not hold the txn.
    pub fn commit(&mut self, table: &mut Table, user_metadata: Option<&str>) -> Outcome<Done> {
        if self.is_cancelled() {
            return Err(Failure::new(Code::Cancelled, "a source failed"));
        }
        let (_, row_count, size_bytes) = self.totals();
        let done = |kind, version| Done { kind, version, row_count, size_bytes };
        if row_count == 0 {
            return Ok(done(Kind::NoRows, self.read_version));
        }
        for attempt in 0..ATTEMPT_COUNT {
            let transaction = match self.transaction.take() {
                Some(transaction) => transaction,
                None => {
                    let snapshot = table.must_refresh()?;
                    if is_there(table, &self.txn)? {
                        return Ok(done(Kind::AlreadyThere, snapshot.version()));
                    }
                    self.rebuild(table, &snapshot)?
                }
            };
            let version = self.read_version + 1;
            if let Some(committed) = self.attempt(transaction, user_metadata, version)? {
                self.keeps_files = true;
                let snapshot = committed.and_then(|c| c.post_commit_snapshot().cloned());
                table.committed(version, snapshot, self.txn.as_ref());
                return Ok(done(Kind::Committed, version));
            }
            std::thread::sleep(pause(attempt));
        }
        Err(Failure::new(Code::Conflict, "other writers kept committing first"))
    }

    /// None: another writer has the version. Some(None): committed, though the answer
    /// was lost and had to be looked up in the log.
    pub fn attempt(
        &mut self,
        transaction: Transaction,
        user_metadata: Option<&str>,
        version: u64,
    ) -> Outcome<Option<Option<CommittedTransaction>>> {
        let (file_count, row_count, size_bytes) = self.totals();
        let mut transaction = transaction.with_operation_metrics([
            ("numFiles", Some(file_count.to_string())),
            ("numOutputRows", Some(row_count.to_string())),
            ("numOutputBytes", Some(size_bytes.to_string())),
        ]);
        let attempt_id = uuid::Uuid::new_v4().to_string();
        let (row, schema) = commit_info(user_metadata, &attempt_id)?;
        transaction = transaction.with_commit_info(Box::new(ArrowEngineData::new(row)), schema);
        for file in &self.written().files {
            transaction.add_files(Box::new(ArrowEngineData::new(file.add.clone())));
        }
        // None: somebody has the version.
        let failure: Option<Failure> = match transaction.commit(self.place.engine.as_ref()) {
            Ok(CommitResult::Committed(committed)) => return Ok(Some(Some(committed))),
            Ok(CommitResult::Conflicted(_)) => None,
            Ok(CommitResult::Retryable(retryable)) => Some(retryable.error.into()),
            Err(error) => Some(error.into()),
        };
        // The write may have reached the log before it failed; a client that repeats such
        // a write on its own finds the version taken, by itself.
        let found = self.is_in_log(version, &attempt_id);
        let Some(failure) = failure else {
            return match found {
                Ok(true) => Ok(Some(None)),
                Ok(false) => Ok(None),
                Err(failure) => {
                    self.keeps_files = true;
                    Err(failure)
                }
            };
        };
        match found {
            Ok(true) => Ok(Some(None)),
            // An object store may still carry out what it did not answer.
            Ok(false) => {
                self.keeps_files = !self.place.is_local;
                Err(failure)
            }
            Err(_) => {
                self.keeps_files = true;
                Err(failure)
            }
        }
    }

    fn is_in_log(&self, version: u64, attempt_id: &str) -> Outcome<bool> {
        let path = self.place.log_path(version)?;
        let read = runtime()?.block_on(async {
            let found = self.place.store.get(&path).await?;
            found.bytes().await
        });
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(StoreError::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        Ok(String::from_utf8_lossy(&bytes).contains(attempt_id))
    }

    /// The same append on a newer snapshot, if the files written still fit the table.
    fn rebuild(&mut self, table: &Table, snapshot: &SnapshotRef) -> Outcome<Transaction> {
        let conflict = |detail: &str| Err(Failure::new(Code::Conflict, detail));
        let metadata = snapshot.table_configuration().metadata();
        if metadata.id() != self.table_id || !metadata.partition_columns().is_empty() {
            return conflict("the table was replaced meanwhile");
        }
        let have = table_fields(snapshot);
        let mut add = Vec::new();
        for field in &self.add {
            match find_field(&have, field.name()) {
                None => add.push(field.clone()),
                Some(other) if other.name() == field.name() => {}
                Some(_) => return conflict("another writer added the same column meanwhile"),
            }
        }
        if is_mapped(snapshot) && !self.add.is_empty() {
            return conflict("another writer committed before new mapped columns were added");
        }
        let transaction = build(table, snapshot, &add, &self.txn)?;
        let context = transaction.write_state()?.write_context_builder().build()?;
        let now = context.physical_data_schema();
        let fits = self.context.physical_data_schema().fields().all(|field| {
            now.field(field.name()).is_some_and(|other| other.data_type() == field.data_type())
        });
        if !fits {
            return conflict("the table's columns changed meanwhile");
        }
        self.read_version = snapshot.version();
        Ok(transaction)
    }
}

impl Drop for Append {
    fn drop(&mut self) {
        if self.keeps_files {
            return;
        }
        let Ok(runtime) = runtime() else { return };
        let paths = std::mem::take(&mut self.written().paths);
        for path in paths {
            // Best effort: a file that stays is not part of any table version.
            let _ = runtime.block_on(self.place.store.delete(&path));
        }
    }
}

fn commit_info(
    user_metadata: Option<&str>,
    attempt_id: &str,
) -> Outcome<(RecordBatch, SchemaRef)> {
    let mut texts = vec![("attemptId", attempt_id)];
    texts.extend(user_metadata.map(|text| ("userMetadata", text)));
    let fields = texts.iter().map(|(name, _)| ArrowField::new(*name, ArrowType::Utf8, true));
    let arrays = texts.iter().map(|(_, text)| Arc::new(StringArray::from(vec![*text])) as ArrayRef);
    let row = RecordBatch::try_new(
        Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>())),
        arrays.collect(),
    )?;
    let fields = texts.iter().map(|(name, _)| StructField::nullable(*name, DataType::STRING));
    Ok((row, Arc::new(StructType::try_new(fields)?)))
}

/// The first tries go at once: whoever won is done by then.
fn pause(attempt: u32) -> Duration {
    if attempt < 3 {
        return Duration::ZERO;
    }
    let spread = u64::from(uuid::Uuid::new_v4().as_bytes()[0]);
    Duration::from_millis((1 << attempt.min(9)) * (128 + spread) / 256)
}
