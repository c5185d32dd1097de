//! What a change of rows stands on: the files of one table version, which rows of them
//! are to go, and how they go: by deletion vectors where the table has them, by writing
//! what is left of a file anew where it has not, by removing a file that has no row left.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use delta_kernel::actions::deletion_vector::DeletionVectorDescriptor;
use delta_kernel::actions::deletion_vector_writer::{
    KernelDeletionVector, StreamingDeletionVectorWriter,
};
use delta_kernel::arrow::array::AsArray as _;
use delta_kernel::engine::arrow_data::{ArrowEngineData, EngineDataArrowExt as _};
use delta_kernel::object_store::path::Path;
use delta_kernel::object_store::ObjectStoreExt as _;
use delta_kernel::scan::state::ScanFile;
use delta_kernel::scan::ScanMetadata;
use delta_kernel::snapshot::SnapshotRef;
use delta_kernel::transaction::{BoundWriteContext, Transaction};
use delta_kernel::FilteredEngineData;
use roaring::RoaringTreemap;
use serde_json::{json, Value};

use crate::create::{VECTORS_FEATURE, VECTORS_PROPERTY};
use crate::failure::{Code, Failure, Outcome};
use crate::probe::{files_of, WholeFiles};
use crate::table::{runtime, Place};
use crate::write::{DataFile, RowWriter};

/// One file of the version that is changed, by its number.
pub struct BaseFile {
    pub file: ScanFile,
    /// Absent: the log does not say.
    row_count: Option<u64>,
    gone_count: u64,
}

pub struct Base {
    pub snapshot: SnapshotRef,
    pub files: Vec<BaseFile>,
    pub numbers: HashMap<String, usize>,
    has_vectors: bool,
    removed: Mutex<BTreeMap<usize, RoaringTreemap>>,
}

/// What becomes of the files whose rows go.
#[derive(Default)]
pub struct Removal {
    /// Paths, as the log has them, of files that go altogether.
    gone: HashSet<String>,
    vectors: HashMap<String, DeletionVectorDescriptor>,
    /// Files with what is left of others.
    pub rewritten: Vec<DataFile>,
    /// Paths begun, of those and of deletion vectors.
    pub paths: Vec<Path>,
    pub removed_count: u64,
    pub rewritten_row_count: u64,
}

impl Base {
    pub fn new(place: &Place, snapshot: SnapshotRef) -> Outcome<Self> {
        let scan = snapshot.clone().scan_builder().build()?;
        let mut files = Vec::new();
        for file in files_of(place, &scan)? {
            let row_count = file.stats.as_ref().map(|stats| stats.num_records);
            let gone_count = file.dv_info.cardinality()?.unwrap_or(0);
            files.push(BaseFile { file, row_count, gone_count });
        }
        let numbers = files.iter().enumerate().map(|(i, f)| (f.file.path.clone(), i)).collect();
        let has_vectors = has_deletion_vectors(&snapshot)?;
        Ok(Self { snapshot, files, numbers, has_vectors, removed: Mutex::default() })
    }

    /// [{"row_count", "removed_count", "size_bytes"}], by number; a count the log lacks is
    /// null.
    pub fn describe(&self) -> Value {
        let files = self.files.iter().map(|file| {
            json!({
                "row_count": file.row_count,
                "removed_count": file.gone_count,
                "size_bytes": file.file.size,
            })
        });
        Value::Array(files.collect())
    }

    pub fn remove(&self, file: usize, rows: &[i64]) -> Outcome<()> {
        if file >= self.files.len() {
            return Err(Failure::new(Code::Internal, "there is no such file"));
        }
        let mut removed = self.removed();
        let marked = removed.entry(file).or_default();
        for row in rows {
            marked.insert(u64::try_from(*row).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    fn removed(&self) -> MutexGuard<'_, BTreeMap<usize, RoaringTreemap>> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what the removal needs. Into `out`, so that the caller knows the files begun
    /// also when it fails.
    pub fn carry_out(
        &self,
        place: &Place,
        context: &BoundWriteContext,
        out: &mut Removal,
    ) -> Outcome<()> {
        let mut buffer = Vec::new();
        let mut writer = StreamingDeletionVectorWriter::new(&mut buffer);
        let mut pending = Vec::new();
        let mut whole: Option<WholeFiles<'_>> = None;
        for (number, rows) in self.removed().iter() {
            let base = &self.files[*number];
            let before = vector_of(place, &base.file)?;
            let new_count = rows.len() - rows.intersection_len(&before);
            out.removed_count += new_count;
            let all = rows | before;
            let path = base.file.path.clone();
            if base.row_count == Some(all.len()) {
                out.gone.insert(path);
            } else if new_count == 0 {
                continue;
            } else if self.has_vectors && base.row_count.is_some() {
                let mut vector = KernelDeletionVector::new();
                vector.add_deleted_row_indexes(all);
                pending.push((path, writer.write_deletion_vector(vector)?));
            } else {
                let files = match whole.take() {
                    Some(files) => files,
                    None => WholeFiles::new(place, &self.snapshot)?,
                };
                rewrite(place, context, &files, &path, &all, out)?;
                whole = Some(files);
                out.gone.insert(path);
            }
        }
        writer.finalize()?;
        if pending.is_empty() {
            return Ok(());
        }
        let place_of_vectors = context.new_deletion_vector_path(String::new());
        let path = Path::from_url_path(place_of_vectors.absolute_path()?.path())?;
        out.paths.push(path.clone());
        runtime()?.block_on(place.store.put(&path, buffer.into()))?;
        for (file, written) in pending {
            out.vectors.insert(file, written.to_descriptor(&place_of_vectors));
        }
        Ok(())
    }

    /// Puts the removal into `transaction`.
    pub fn stage(
        &self,
        place: &Place,
        removal: &Removal,
        transaction: &mut Transaction,
    ) -> Outcome<()> {
        let scan = self.snapshot.clone().scan_builder().build()?;
        let mut for_vectors = Vec::new();
        for metadata in scan.scan_metadata(place.engine.as_ref())? {
            let (of_gone, others) = part(metadata?, &removal.gone)?;
            transaction.remove_files(of_gone);
            for_vectors.push(Ok(others));
        }
        if !removal.vectors.is_empty() {
            transaction
                .update_deletion_vectors(removal.vectors.clone(), for_vectors.into_iter())?;
        }
        Ok(())
    }
}

/// What is left of a file, into new files.
fn rewrite(
    place: &Place,
    context: &BoundWriteContext,
    files: &WholeFiles<'_>,
    path: &str,
    gone: &RoaringTreemap,
    out: &mut Removal,
) -> Outcome<()> {
    let mut writer = RowWriter::new(place, context, 0, files.shown())?;
    let written = files.each(path, gone, |batch| {
        out.rewritten_row_count += batch.num_rows() as u64;
        writer.write(&batch)
    });
    let closed = written.and_then(|()| writer.close());
    let (data_files, paths) = writer.into_files();
    out.rewritten.extend(data_files);
    out.paths.extend(paths);
    closed
}

/// The rows of `metadata` whose files are in `gone`, and the others.
fn part(
    metadata: ScanMetadata,
    gone: &HashSet<String>,
) -> Outcome<(FilteredEngineData, FilteredEngineData)> {
    let (data, mut selected) = metadata.scan_files.into_parts();
    let batch = data.try_into_record_batch()?;
    selected.resize(batch.num_rows(), true);
    let paths = batch
        .column_by_name("path")
        .and_then(|column| column.as_string_opt::<i32>())
        .ok_or_else(|| Failure::new(Code::Internal, "scan files have no paths"))?;
    let goes: Vec<bool> = (0..batch.num_rows()).map(|i| gone.contains(paths.value(i))).collect();
    let both = |wanted: bool| -> Vec<bool> {
        selected.iter().zip(&goes).map(|(selected, goes)| *selected && *goes == wanted).collect()
    };
    let one = Box::new(ArrowEngineData::new(batch.clone()));
    let other = Box::new(ArrowEngineData::new(batch.clone()));
    Ok((
        FilteredEngineData::try_new(one, both(true))?,
        FilteredEngineData::try_new(other, both(false))?,
    ))
}

/// The rows of a file that are gone already.
pub fn vector_of(place: &Place, file: &ScanFile) -> Outcome<RoaringTreemap> {
    let rows = file.dv_info.get_row_indexes(place.engine.as_ref(), &place.url)?;
    Ok(rows.unwrap_or_default().into_iter().collect())
}

/// Whether the table takes deletion vectors: the feature, and the property that says to
/// write them.
pub fn has_deletion_vectors(snapshot: &SnapshotRef) -> Outcome<bool> {
    let protocol = serde_json::to_value(snapshot.table_configuration().protocol())?;
    let features = protocol["writerFeatures"].as_array();
    let is_wanted = snapshot
        .metadata_configuration()
        .get(VECTORS_PROPERTY)
        .is_some_and(|value| value.eq_ignore_ascii_case("true"));
    Ok(is_wanted && features.is_some_and(|all| all.iter().any(|name| name == VECTORS_FEATURE)))
}
