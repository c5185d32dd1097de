//! Changes a table without rows: new columns at the end, properties. One commit, made by
//! the kernel so that it keeps the table's features in order; the properties, for which
//! the kernel has no call, are put into its metaData action on the way to storage.

use std::sync::Arc;

use delta_kernel::committer::{CommitMetadata, CommitResponse, Committer, PublishMetadata};
use delta_kernel::engine::arrow_utils::to_json_bytes;
use delta_kernel::object_store::path::Path;
use delta_kernel::object_store::{Error as StoreError, PutMode};
use delta_kernel::schema::StructField;
use delta_kernel::snapshot::SnapshotRef;
use delta_kernel::transaction::{CommitResult, UpdateTableOperation};
use delta_kernel::{
    Engine, FileMeta, FilteredEngineData, KernelError, KernelResult, KernelResultIterator,
};
use serde_json::{json, Map, Value};

use crate::create::check_properties;
use crate::failure::{Code, Failure, Outcome};
use crate::schema::{field_to_json, fields_from_json, missing_fields};
use crate::table::{runtime, Place, Table, ENGINE_INFO};

/// Commits that lose against other writers are tried again this often.
const ATTEMPT_COUNT: u32 = 10;

/// `spec`: {"fields", "properties"}. What is there already is left out; nothing left
/// makes no commit.
pub fn alter(table: &mut Table, spec: &Value) -> Outcome<()> {
    let wanted = fields_from_json(&spec["fields"])?;
    let properties = spec["properties"].as_object().cloned().unwrap_or_default();
    check_properties(&properties)?;
    for _ in 0..ATTEMPT_COUNT {
        let snapshot = table.must_refresh()?;
        let add = missing_fields(&snapshot, &wanted)?;
        let mut set = properties.clone();
        set.retain(|key, value| {
            let current = snapshot.metadata_configuration().get(key);
            current.map(String::as_str) != value.as_str()
        });
        if add.is_empty() && set.is_empty() {
            return Ok(());
        }
        if commit(table, &snapshot, add, set)? {
            table.forget();
            return Ok(());
        }
    }
    Err(Failure::new(Code::Conflict, "other writers kept committing first"))
}

/// Returns false when another writer took the version.
fn commit(
    table: &Table,
    snapshot: &SnapshotRef,
    add: Vec<StructField>,
    set: Map<String, Value>,
) -> Outcome<bool> {
    let engine = table.place.engine.as_ref();
    let (operation, parameters) = if add.is_empty() {
        ("SET TBLPROPERTIES", [("properties", Some(Value::Object(set.clone()).to_string()))])
    } else {
        let columns = add.iter().map(|field| Ok(json!({"column": field_to_json(field)?})));
        let columns = columns.collect::<Outcome<Vec<Value>>>()?;
        ("ADD COLUMNS", [("columns", Some(Value::Array(columns).to_string()))])
    };
    let operation = UpdateTableOperation::Custom(operation.to_string());
    let mut builder = snapshot
        .clone()
        .update_table(operation, ENGINE_INFO, false)
        .with_operation_parameters(parameters);
    for field in add {
        builder = builder.add_column(field);
    }
    let committer = PropertyCommitter {
        place: table.place.clone(),
        metadata: serde_json::to_value(snapshot.table_configuration().metadata())?,
        set,
    };
    match builder.build(engine, Box::new(committer))?.commit(engine)? {
        CommitResult::Committed(_) => Ok(true),
        CommitResult::Conflicted(_) => Ok(false),
        CommitResult::Retryable(retryable) => Err(retryable.error.into()),
    }
}

struct PropertyCommitter {
    place: Place,
    /// The metaData action of the version that is changed.
    metadata: Value,
    set: Map<String, Value>,
}

impl PropertyCommitter {
    /// The commit file: the kernel's actions, the properties merged into metaData.
    fn body(&self, actions: Vec<u8>) -> Result<String, serde_json::Error> {
        let mut lines: Vec<Value> = serde_json::Deserializer::from_slice(&actions)
            .into_iter::<Value>()
            .collect::<Result<_, _>>()?;
        if !self.set.is_empty() {
            if !lines.iter().any(|line| line["metaData"].is_object()) {
                lines.push(json!({"metaData": self.metadata}));
            }
            for line in lines.iter_mut().filter(|line| line["metaData"].is_object()) {
                for (key, value) in &self.set {
                    line["metaData"]["configuration"][key] = value.clone();
                }
            }
        }
        Ok(lines.iter().map(|line| format!("{line}\n")).collect())
    }
}

impl Committer for PropertyCommitter {
    fn commit(
        &self,
        _engine: &dyn Engine,
        actions: KernelResultIterator<'_, FilteredEngineData>,
        metadata: CommitMetadata,
    ) -> KernelResult<CommitResponse> {
        let body = self.body(to_json_bytes(actions)?).map_err(wrapped)?;
        let size = body.len() as u64;
        let url = metadata.published_commit_path()?;
        let path = Path::from_url_path(url.path())?;
        let put =
            self.place.store.put_opts(&path, body.into_bytes().into(), PutMode::Create.into());
        let runtime = runtime().map_err(|failure| KernelError::generic(failure.detail))?;
        match runtime.block_on(put) {
            Ok(_) => {
                let file_meta = FileMeta::new(url, metadata.in_commit_timestamp(), size);
                Ok(CommitResponse::Committed { file_meta })
            }
            Err(StoreError::AlreadyExists { .. }) | Err(StoreError::Precondition { .. }) => {
                Ok(CommitResponse::Conflict { version: metadata.version() })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn is_catalog_committer(&self) -> bool {
        false
    }

    fn publish(&self, _engine: &dyn Engine, metadata: PublishMetadata) -> KernelResult<()> {
        if metadata.commits_to_publish().is_empty() {
            return Ok(());
        }
        Err(KernelError::generic("this table's commits are not published"))
    }
}

fn wrapped(error: serde_json::Error) -> KernelError {
    KernelError::GenericError { source: Box::new(Arc::new(error)) }
}
