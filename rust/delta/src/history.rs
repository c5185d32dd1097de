//! The commits of a table, read from its log.

use delta_kernel::object_store::path::Path;
use delta_kernel::object_store::{ObjectStore as _, ObjectStoreExt as _};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{json, Value};

use crate::failure::{Code, Failure, Outcome};
use crate::table::{runtime, Place};

const READ_AHEAD: usize = 16;

/// From `since` (inclusive) on, in order: {"version", "timestamp_ms", "operation",
/// "user_metadata"}. Versions whose commit file was cleaned up are left out.
pub fn history(place: &Place, since: u64) -> Outcome<Value> {
    let folder = place.log_folder()?;
    let after = Path::parse(format!("{folder}/{since:020}"))?;
    let commits: Vec<Value> = runtime()?.block_on(async {
        let listed = place.store.list_with_offset(Some(&folder), &after);
        let mut versions: Vec<(u64, Path)> = listed
            .try_filter_map(|meta| async move {
                Ok(commit_version(&meta.location).map(|version| (version, meta.location)))
            })
            .try_collect()
            .await?;
        versions.retain(|(version, _)| *version >= since);
        versions.sort();
        futures::stream::iter(versions)
            .map(|(version, path)| async move {
                let bytes = place.store.get(&path).await?.bytes().await?;
                describe(version, &bytes)
            })
            .buffered(READ_AHEAD)
            .try_collect()
            .await
    })?;
    Ok(Value::Array(commits))
}

/// Of a plain commit file directly in the log folder: 20 digits and ".json".
fn commit_version(path: &Path) -> Option<u64> {
    let name = path.filename()?;
    let digits = name.strip_suffix(".json")?;
    let is_plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let in_log = path.as_ref().ends_with(&format!("_delta_log/{name}"));
    if is_plain && in_log {
        digits.parse().ok()
    } else {
        None
    }
}

fn describe(version: u64, bytes: &[u8]) -> Outcome<Value> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Failure::new(Code::Failed, format!("commit {version} is not UTF-8")))?;
    let mut info = Value::Null;
    for line in text.lines().filter(|line| line.contains("\"commitInfo\"")) {
        let mut action: Value = serde_json::from_str(line)?;
        if action["commitInfo"].is_object() {
            info = action["commitInfo"].take();
            break;
        }
    }
    let timestamp = info["inCommitTimestamp"].as_i64().or(info["timestamp"].as_i64());
    Ok(json!({
        "version": version,
        "timestamp_ms": timestamp.unwrap_or(0),
        "operation": info["operation"].as_str().unwrap_or_default(),
        "user_metadata": info["userMetadata"].as_str(),
    }))
}
