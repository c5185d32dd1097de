//! A change of rows in steps: begin, probe, remove and drain in any order, commit. The
//! version it was begun on is the one it changes: when another writer commits meanwhile
//! it is a conflict, for the rows have to be looked at again.

use std::sync::atomic::AtomicBool;
use std::sync::Mutex;

use delta_kernel::committer::FileSystemCommitter;
use delta_kernel::transaction::{Transaction, UpdateTableOperation};
use serde_json::Value;

use crate::append::{check_known, Append, Done, Kind};
use crate::change::{Base, Removal};
use crate::failure::{Code, Failure, Outcome};
use crate::schema::fields_from_json;
use crate::table::{Table, ENGINE_INFO};

pub struct Changed {
    pub done: Done,
    pub added_count: u64,
    pub removed_count: u64,
    pub rewritten_row_count: u64,
}

/// `spec`: {"kind": "merge" or "optimize", "fields": of the rows that are added,
/// "commits_nothing": whether there is a commit also with nothing to do}.
pub fn begin(table: &mut Table, spec: &Value) -> Outcome<Box<Append>> {
    let snapshot = table.must_refresh()?;
    let metadata = snapshot.table_configuration().metadata();
    if !metadata.partition_columns().is_empty() {
        return Err(Failure::new(Code::Unsupported, "the table is partitioned"));
    }
    let table_id = metadata.id().to_string();
    check_known(&snapshot, &fields_from_json(&spec["fields"])?)?;
    let transaction = build(table, &snapshot, spec["kind"].as_str() == Some("optimize"))?;
    let context = transaction.write_state()?.write_context_builder().build()?;
    let base = Base::new(&table.place, snapshot.clone())?;
    Ok(Box::new(Append {
        place: table.place.clone(),
        context,
        transaction: Some(transaction),
        read_version: snapshot.version(),
        table_id,
        add: Vec::new(),
        txn: None,
        base: Some(base),
        commits_nothing: spec["commits_nothing"].as_bool() == Some(true),
        written: Mutex::default(),
        is_stopped: AtomicBool::new(false),
        keeps_files: false,
    }))
}

fn build(
    table: &Table,
    snapshot: &delta_kernel::snapshot::SnapshotRef,
    optimizes: bool,
) -> Outcome<Transaction> {
    let operation =
        if optimizes { UpdateTableOperation::Optimize } else { UpdateTableOperation::Merge };
    let builder = snapshot.clone().update_table(operation, ENGINE_INFO, !optimizes);
    Ok(builder.build(table.place.engine.as_ref(), Box::new(FileSystemCommitter::new()))?)
}

impl Append {
    pub fn base(&self) -> Outcome<&Base> {
        self.base.as_ref().ok_or_else(|| Failure::new(Code::Internal, "this is no change of rows"))
    }

    /// Records what was removed and drained in one table version.
    pub fn commit_change(
        &mut self,
        table: &mut Table,
        user_metadata: Option<&str>,
    ) -> Outcome<Changed> {
        if self.is_cancelled() {
            return Err(Failure::new(Code::Cancelled, "a source failed"));
        }
        let (_, added_count, _) = self.totals();
        let mut removal = Removal::default();
        let carried_out = self.base()?.carry_out(&self.place, &self.context, &mut removal);
        {
            let mut written = self.written();
            written.files.append(&mut removal.rewritten);
            written.paths.append(&mut removal.paths);
        }
        carried_out?;
        let (_, row_count, size_bytes) = self.totals();
        let result = |kind, version| Changed {
            done: Done { kind, version, row_count, size_bytes },
            added_count,
            removed_count: removal.removed_count,
            rewritten_row_count: removal.rewritten_row_count,
        };
        if row_count == 0 && removal.removed_count == 0 && !self.commits_nothing {
            return Ok(result(Kind::NoRows, self.read_version));
        }
        let mut transaction = self
            .transaction
            .take()
            .ok_or_else(|| Failure::new(Code::Internal, "the change was committed"))?;
        self.base()?.stage(&self.place, &removal, &mut transaction)?;
        let version = self.read_version + 1;
        match self.attempt(transaction, user_metadata, version)? {
            Some(committed) => {
                self.keeps_files = true;
                let snapshot = committed.and_then(|c| c.post_commit_snapshot().cloned());
                table.committed(version, snapshot, None);
                Ok(result(Kind::Committed, version))
            }
            None => Err(Failure::new(Code::Conflict, "another writer committed first")),
        }
    }
}
