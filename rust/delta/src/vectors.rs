//! Gives a table the feature of deletion vectors: one commit of protocol and metaData, for
//! which the kernel has no call.

use delta_kernel::object_store::{Error as StoreError, PutMode};
use serde_json::{json, Value};
use uuid::Uuid;

use crate::change::has_deletion_vectors;
use crate::create::{now_ms, VECTORS_FEATURE, VECTORS_PROPERTY};
use crate::failure::{Code, Failure, Outcome};
use crate::table::{runtime, Table, ENGINE_INFO};

const ATTEMPT_COUNT: u32 = 10;

/// Does nothing to a table that takes deletion vectors already.
pub fn enable(table: &mut Table) -> Outcome<()> {
    for _ in 0..ATTEMPT_COUNT {
        let snapshot = table.must_refresh()?;
        if has_deletion_vectors(&snapshot)? {
            return Ok(());
        }
        let configuration = snapshot.table_configuration();
        let protocol = upgraded(serde_json::to_value(configuration.protocol())?)?;
        let mut metadata = serde_json::to_value(configuration.metadata())?;
        if metadata["configuration"].get("delta.enableInCommitTimestamps") == Some(&json!("true")) {
            let detail = "the table has in-commit timestamps: let its engine set the property";
            return Err(Failure::new(Code::Unsupported, detail));
        }
        metadata["configuration"][VECTORS_PROPERTY] = json!("true");
        let properties = json!({ VECTORS_PROPERTY: "true" }).to_string();
        let info = json!({
            "timestamp": now_ms()?,
            "operation": "SET TBLPROPERTIES",
            "operationParameters": {"properties": properties},
            "engineInfo": ENGINE_INFO,
            "txnId": Uuid::new_v4().to_string(),
        });
        let actions = [
            json!({"commitInfo": info}),
            json!({"protocol": protocol}),
            json!({"metaData": metadata}),
        ];
        let body: String = actions.iter().map(|action| format!("{action}\n")).collect();
        let path = table.place.log_path(snapshot.version() + 1)?;
        let put =
            table.place.store.put_opts(&path, body.into_bytes().into(), PutMode::Create.into());
        match runtime()?.block_on(put) {
            Ok(_) => {
                table.forget();
                return Ok(());
            }
            Err(StoreError::AlreadyExists { .. }) | Err(StoreError::Precondition { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::new(Code::Conflict, "other writers kept committing first"))
}

/// Features by name. What a legacy version stands for is named only where it is known to
/// be what this writer keeps anyway.
fn upgraded(mut protocol: Value) -> Outcome<Value> {
    let writer = protocol["minWriterVersion"].as_i64().unwrap_or(0);
    let reader = protocol["minReaderVersion"].as_i64().unwrap_or(0);
    if writer != 7 {
        if writer > 2 || reader > 1 {
            let detail = "the table's protocol stands for features by number: let its engine \
                          upgrade it";
            return Err(Failure::new(Code::Unsupported, detail));
        }
        let legacy: &[&str] = if writer == 2 { &["appendOnly", "invariants"] } else { &[] };
        protocol["writerFeatures"] = json!(legacy);
        protocol["minWriterVersion"] = json!(7);
    }
    if reader != 3 {
        if reader > 1 {
            let detail = "the table's protocol stands for features by number: let its engine \
                          upgrade it";
            return Err(Failure::new(Code::Unsupported, detail));
        }
        protocol["minReaderVersion"] = json!(3);
    }
    for key in ["readerFeatures", "writerFeatures"] {
        if !protocol[key].is_array() {
            protocol[key] = json!([]);
        }
        if let Some(features) = protocol[key].as_array_mut() {
            if !features.iter().any(|name| name == VECTORS_FEATURE) {
                features.push(json!(VECTORS_FEATURE));
            }
        }
    }
    Ok(protocol)
}
