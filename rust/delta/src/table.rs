//! A table at a location: its storage, and the newest snapshot seen, which is brought up
//! to date with one look at the log instead of a listing when nothing happened.

use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use delta_kernel::object_store::local::LocalFileSystem;
use delta_kernel::object_store::path::Path;
use delta_kernel::object_store::{DynObjectStore, Error as StoreError, ObjectStoreExt as _};
use delta_kernel::snapshot::SnapshotRef;
use delta_kernel::{KernelError, Snapshot};
use delta_kernel_default_engine::executor::tokio::TokioMultiThreadExecutor;
use delta_kernel_default_engine::storage::store_from_url_opts;
use delta_kernel_default_engine::{DefaultEngine, DefaultEngineBuilder};
use tokio::runtime::{Builder, Runtime};
use url::Url;

use crate::failure::{Code, Failure, Outcome};

pub type TableEngine = DefaultEngine<TokioMultiThreadExecutor>;

/// Written into every commit as commitInfo.engineInfo.
pub const ENGINE_INFO: &str = "mssql-cdc";

const CHECKPOINT_INTERVAL_DEFAULT: u64 = 10;

/// The process's runtime for storage calls, started with the first table.
pub fn runtime() -> Outcome<&'static Runtime> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    RUNTIME
        .get_or_init(|| {
            let mut builder = Builder::new_multi_thread();
            builder.thread_name("delta").enable_all().build().map_err(|e| e.to_string())
        })
        .as_ref()
        .map_err(|e| Failure::new(Code::Failed, e))
}

/// Where a table is, and how it is reached. Cheap to copy, shared by threads.
#[derive(Clone)]
pub struct Place {
    pub url: Url,
    pub store: Arc<DynObjectStore>,
    pub engine: Arc<TableEngine>,
    pub is_local: bool,
}

impl Place {
    /// A path of this machine, or a URL whose scheme an object store serves. Credentials
    /// of object stores come from their usual environment variables.
    pub fn open(location: &str) -> Outcome<Self> {
        let runtime = runtime()?;
        let url = table_url(location)?;
        let is_local = url.scheme() == "file";
        let store: Arc<DynObjectStore> = if is_local {
            Arc::new(LocalFileSystem::new().with_fsync(true))
        } else {
            store_from_url_opts(&url, store_options())?
        };
        let executor = Arc::new(TokioMultiThreadExecutor::new(runtime.handle().clone()));
        let engine =
            Arc::new(DefaultEngineBuilder::new(store.clone()).with_task_executor(executor).build());
        Ok(Self { url, store, engine, is_local })
    }

    pub fn log_path(&self, version: u64) -> Outcome<Path> {
        let url = self.url.join(&format!("_delta_log/{version:020}.json"))?;
        Ok(Path::from_url_path(url.path())?)
    }

    pub fn log_folder(&self) -> Outcome<Path> {
        Ok(Path::from_url_path(self.url.join("_delta_log/")?.path())?)
    }

    /// False if there is certainly no table; the kernel takes a folder that is missing for
    /// a mistake. Always true for an object store, which has no folders.
    fn has_log(&self) -> Outcome<bool> {
        if !self.is_local {
            return Ok(true);
        }
        let folder = self.url.join("_delta_log")?.to_file_path();
        let folder = folder.map_err(|()| Failure::new(Code::Unreachable, "not a path"))?;
        match std::fs::metadata(folder) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The ETag of a commit's file, or None if the file is not there.
    fn commit_tag(&self, version: u64) -> Outcome<Option<String>> {
        let path = self.log_path(version)?;
        match runtime()?.block_on(self.store.head(&path)) {
            Ok(meta) => Ok(Some(meta.e_tag.unwrap_or_default())),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn table_url(location: &str) -> Outcome<Url> {
    if !location.contains("://") {
        if location.contains('%') {
            // The default engine takes it for an escape when it lists the log.
            return Err(Failure::new(Code::Refused, "a path must not contain %"));
        }
        let path =
            std::path::absolute(location).map_err(|error| Failure::new(Code::Refused, error))?;
        return Url::from_directory_path(&path)
            .map_err(|()| Failure::new(Code::Refused, "the location is not a usable path"));
    }
    let mut url = Url::parse(location)?;
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

fn store_options() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| {
            ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|prefix| name.starts_with(prefix))
        })
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect()
}

/// A snapshot and what was learned about it.
struct Known {
    snapshot: SnapshotRef,
    /// Of the snapshot's own commit file, local tables only: notices a folder that was
    /// removed and made again.
    tag: Option<String>,
    /// By application id, at this very version.
    txns: HashMap<String, Option<i64>>,
}

pub struct Table {
    pub place: Place,
    known: Option<Known>,
    checkpointing: Option<JoinHandle<()>>,
    /// A checkpoint was finished: the next look at the log should pick it up.
    checkpointed: Arc<AtomicBool>,
}

impl Table {
    pub fn open(location: &str) -> Outcome<Self> {
        Ok(Self {
            place: Place::open(location)?,
            known: None,
            checkpointing: None,
            checkpointed: Arc::new(AtomicBool::new(false)),
        })
    }

    /// The newest snapshot, or None if there is no table.
    pub fn refresh(&mut self) -> Outcome<Option<SnapshotRef>> {
        let Some(known) = &self.known else { return self.load() };
        let version = known.snapshot.version();
        if self.place.is_local && self.place.commit_tag(version)? != known.tag {
            return self.load();
        }
        let is_newest = self.place.commit_tag(version + 1)?.is_none();
        if is_newest && !self.checkpointed.swap(false, Ordering::AcqRel) {
            return Ok(Some(known.snapshot.clone()));
        }
        let next = Snapshot::builder_from(known.snapshot.clone()).build(self.place.engine.as_ref());
        match next {
            Ok(snapshot) => self.keep(snapshot).map(Some),
            Err(_) => self.load(),
        }
    }

    /// As refresh, where a table has to be there.
    pub fn must_refresh(&mut self) -> Outcome<SnapshotRef> {
        self.refresh()?.ok_or_else(|| Failure::new(Code::Unreachable, "there is no Delta table"))
    }

    /// The snapshot of a version that is not newer than the newest.
    pub fn at_version(&mut self, version: u64) -> Outcome<SnapshotRef> {
        if let Some(known) = self.known.as_ref().filter(|k| k.snapshot.version() == version) {
            return Ok(known.snapshot.clone());
        }
        let builder = Snapshot::builder_for(self.place.url.clone()).at_version(version);
        Ok(builder.build(self.place.engine.as_ref())?)
    }

    fn load(&mut self) -> Outcome<Option<SnapshotRef>> {
        self.known = None;
        if !self.place.has_log()? {
            return Ok(None);
        }
        match Snapshot::builder_for(self.place.url.clone()).build(self.place.engine.as_ref()) {
            Ok(snapshot) => self.keep(snapshot).map(Some),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn keep(&mut self, snapshot: SnapshotRef) -> Outcome<SnapshotRef> {
        let version = snapshot.version();
        let txns = match self.known.take() {
            Some(known) if known.snapshot.version() == version => known.txns,
            _ => HashMap::new(),
        };
        let tag = if self.place.is_local { self.place.commit_tag(version)? } else { None };
        self.known = Some(Known { snapshot: snapshot.clone(), tag, txns });
        Ok(snapshot)
    }

    /// Forgets what is cached; the next refresh reads the log from its start.
    pub fn forget(&mut self) {
        self.known = None;
    }

    /// The version of the last txn action of `app_id` in the newest snapshot.
    pub fn last_txn(&mut self, app_id: &str) -> Outcome<Option<i64>> {
        let Some(snapshot) = self.refresh()? else { return Ok(None) };
        if let Some(version) = self.known.as_ref().and_then(|known| known.txns.get(app_id)) {
            return Ok(*version);
        }
        let version = snapshot.get_app_id_version(app_id, self.place.engine.as_ref())?;
        if let Some(known) = &mut self.known {
            known.txns.insert(app_id.to_string(), version);
        }
        Ok(version)
    }

    /// Notes a commit of our own: keeps its snapshot, and starts a checkpoint when the
    /// table's interval is full. A checkpoint that fails changes nothing about the commit.
    pub fn committed(
        &mut self,
        version: u64,
        snapshot: Option<SnapshotRef>,
        txn: Option<&(String, i64)>,
    ) {
        let Some(snapshot) = snapshot.filter(|s| s.version() == version) else {
            self.forget();
            return;
        };
        let txns = self
            .known
            .take()
            .filter(|known| known.snapshot.version() + 1 == version)
            .map(|known| known.txns);
        if self.keep(snapshot.clone()).is_err() {
            self.forget();
        }
        if let (Some(known), Some(mut txns)) = (&mut self.known, txns) {
            if let Some((app_id, version)) = txn {
                txns.insert(app_id.clone(), Some(*version));
            }
            known.txns = txns;
        }
        if version != 0 && version % checkpoint_interval(&snapshot, version) == 0 {
            self.start_checkpoint(snapshot);
        }
    }

    fn start_checkpoint(&mut self, snapshot: SnapshotRef) {
        self.finish_checkpoint();
        let engine = self.place.engine.clone();
        let checkpointed = self.checkpointed.clone();
        let work = move || {
            let done =
                catch_unwind(AssertUnwindSafe(|| snapshot.checkpoint(engine.as_ref(), None)));
            if matches!(done, Ok(Ok(_))) {
                checkpointed.store(true, Ordering::Release);
            }
        };
        self.checkpointing =
            std::thread::Builder::new().name("delta-checkpoint".to_string()).spawn(work).ok();
    }

    fn finish_checkpoint(&mut self) {
        if let Some(thread) = self.checkpointing.take() {
            // Its panics are caught inside.
            let _ = thread.join();
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.finish_checkpoint();
    }
}

/// Commits from one checkpoint to the next: the table's own setting, or else one that
/// grows with the table. A checkpoint lists every file, and a stream adds one a commit: at
/// a fixed interval the checkpoints of a busy table would soon outweigh its data.
fn checkpoint_interval(snapshot: &SnapshotRef, version: u64) -> u64 {
    let by_size = match version {
        0..500 => CHECKPOINT_INTERVAL_DEFAULT,
        500..5000 => 10 * CHECKPOINT_INTERVAL_DEFAULT,
        _ => 100 * CHECKPOINT_INTERVAL_DEFAULT,
    };
    snapshot
        .metadata_configuration()
        .get("delta.checkpointInterval")
        .and_then(|text| text.parse().ok())
        .filter(|interval| *interval > 0)
        .unwrap_or(by_size)
}

fn is_absent(error: &KernelError) -> bool {
    match error {
        KernelError::Backtraced { source, .. } => is_absent(source),
        KernelError::EmptyLog | KernelError::FileNotFound(_) => true,
        // The kernel has no variant of its own for a folder without a log.
        other => other.to_string().contains("No files in log segment"),
    }
}
