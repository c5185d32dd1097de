//! Makes a table: one commit, version 0, protocol and metaData only, as Spark writes it.

use std::time::{SystemTime, UNIX_EPOCH};

use delta_kernel::object_store::{Error as StoreError, PutMode};
use delta_kernel::schema::{DataType, MetadataValue, StructField, StructType};
use serde_json::{json, Map, Value};
use uuid::Uuid;

use crate::failure::{Code, Failure, Outcome};
use crate::schema::{fields_from_json, needs_mapping};
use crate::table::{runtime, Table, ENGINE_INFO};

/// Says that deletion vectors are written; a table made with it has their feature.
pub const VECTORS_PROPERTY: &str = "delta.enableDeletionVectors";
pub const VECTORS_FEATURE: &str = "deletionVectors";

/// `spec`: {"fields", "description", "properties"}. Leaves a table that is there alone,
/// also one that somebody else made at the same moment.
pub fn create(table: &mut Table, spec: &Value) -> Outcome<()> {
    if table.refresh()?.is_some() {
        return Ok(());
    }
    let body = first_commit(spec)?;
    let path = table.place.log_path(0)?;
    let put = table.place.store.put_opts(&path, body.into_bytes().into(), PutMode::Create.into());
    match runtime()?.block_on(put) {
        Ok(_) | Err(StoreError::AlreadyExists { .. }) | Err(StoreError::Precondition { .. }) => {
            table.must_refresh().map(drop)
        }
        Err(error) => Err(error.into()),
    }
}

fn first_commit(spec: &Value) -> Outcome<String> {
    let mut fields = fields_from_json(&spec["fields"])?;
    let description = spec["description"].as_str().unwrap_or_default();
    let mut properties = spec["properties"].as_object().cloned().unwrap_or_default();
    let has_vectors = properties.get(VECTORS_PROPERTY) == Some(&json!("true"));
    let mut others = properties.clone();
    if has_vectors {
        others.remove(VECTORS_PROPERTY);
    }
    check_properties(&others)?;
    let is_mapped = fields.iter().any(|field| needs_mapping(field.name()));
    if is_mapped {
        fields = map_columns(fields);
        properties.insert("delta.columnMapping.mode".to_string(), json!("name"));
        let last_id = fields.len().to_string();
        properties.insert("delta.columnMapping.maxColumnId".to_string(), json!(last_id));
    }
    let has_ntz = fields.iter().any(|field| *field.data_type() == DataType::TIMESTAMP_NTZ);
    let schema = StructType::try_new(fields)?;
    let now = now_ms()?;
    let mut metadata = json!({
        "id": Uuid::new_v4().to_string(),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": serde_json::to_string(&schema)?,
        "partitionColumns": [],
        "configuration": properties,
        "createdTime": now,
    });
    let mut parameters = json!({
        "isManaged": "false",
        "partitionBy": "[]",
        "clusterBy": "[]",
        "properties": Value::Object(properties).to_string(),
    });
    if !description.is_empty() {
        metadata["description"] = json!(description);
        parameters["description"] = json!(description);
    }
    let info = json!({
        "timestamp": now,
        "operation": "CREATE TABLE",
        "operationParameters": parameters,
        "isolationLevel": "Serializable",
        "isBlindAppend": true,
        "operationMetrics": {},
        "engineInfo": ENGINE_INFO,
        "txnId": Uuid::new_v4().to_string(),
    });
    let actions = [
        json!({"commitInfo": info}),
        json!({"metaData": metadata}),
        json!({"protocol": protocol(has_ntz, is_mapped, has_vectors)}),
    ];
    Ok(actions.iter().map(|action| format!("{action}\n")).collect())
}

/// Features by name once one is needed. A legacy version of 3 and up would stand for
/// features such as check constraints, which the kernel does not write.
fn protocol(has_ntz: bool, is_mapped: bool, has_vectors: bool) -> Value {
    let mut features = Vec::new();
    if has_ntz {
        features.push("timestampNtz");
    }
    if is_mapped {
        features.push("columnMapping");
    }
    if has_vectors {
        features.push(VECTORS_FEATURE);
    }
    if features.is_empty() {
        return json!({"minReaderVersion": 1, "minWriterVersion": 2});
    }
    let writer_features = [&features[..], &["invariants", "appendOnly"]].concat();
    json!({
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": writer_features,
    })
}

fn map_columns(fields: Vec<StructField>) -> Vec<StructField> {
    fields
        .into_iter()
        .zip(1i64..)
        .map(|(field, id)| {
            field.add_metadata([
                ("delta.columnMapping.id", MetadataValue::Number(id)),
                (
                    "delta.columnMapping.physicalName",
                    MetadataValue::String(format!("col-{}", Uuid::new_v4())),
                ),
            ])
        })
        .collect()
}

/// Delta's own properties may stand for features of the protocol; only those that are
/// plain settings pass.
pub fn check_properties(properties: &Map<String, Value>) -> Outcome<()> {
    const PLAIN: [&str; 4] = [
        "delta.checkpointInterval",
        "delta.logRetentionDuration",
        "delta.deletedFileRetentionDuration",
        "delta.setTransactionRetentionDuration",
    ];
    for (key, value) in properties {
        if key.starts_with("delta.") && !PLAIN.contains(&key.as_str()) {
            return Err(Failure::new(
                Code::Unsupported,
                format!("the property {key} is not set here"),
            ));
        }
        if !value.is_string() {
            return Err(Failure::new(Code::Failed, format!("the property {key} is not text")));
        }
    }
    Ok(())
}

pub fn now_ms() -> Outcome<i64> {
    let elapsed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|error| Failure::new(Code::Failed, error))?;
    i64::try_from(elapsed.as_millis()).map_err(|error| Failure::new(Code::Failed, error))
}
