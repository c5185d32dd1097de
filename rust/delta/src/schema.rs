//! Columns as the C ABI passes them, as JSON: {"name", "type", "nullable", "comment"},
//! the type by its Delta name; and what Delta asks of names.

use delta_kernel::schema::{DataType, MetadataValue, StructField};
use delta_kernel::snapshot::SnapshotRef;
use serde_json::{json, Value};

use crate::failure::{Code, Failure, Outcome};

pub fn field_from_json(value: &Value) -> Outcome<StructField> {
    let name = value["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        return Err(Failure::new(Code::SchemaMismatch, "a column has no name"));
    }
    let data_type: DataType = serde_json::from_value(value["type"].clone())
        .map_err(|error| Failure::of_column(Code::SchemaMismatch, name, error))?;
    let field = StructField::new(name, data_type, value["nullable"].as_bool().unwrap_or(true));
    match value["comment"].as_str() {
        Some(comment) if !comment.is_empty() => Ok(field.with_metadata([("comment", comment)])),
        _ => Ok(field),
    }
}

pub fn fields_from_json(value: &Value) -> Outcome<Vec<StructField>> {
    value.as_array().into_iter().flatten().map(field_from_json).collect()
}

pub fn field_to_json(field: &StructField) -> Outcome<Value> {
    let comment = match field.metadata.get("comment") {
        Some(MetadataValue::String(text)) => text.as_str(),
        _ => "",
    };
    Ok(json!({
        "name": field.name(),
        "type": type_name(field.data_type())?,
        "nullable": field.is_nullable(),
        "comment": comment,
    }))
}

/// "decimal(18,4)", "timestamp_ntz"; of nested types only their kind.
pub fn type_name(data_type: &DataType) -> Outcome<String> {
    Ok(match serde_json::to_value(data_type)? {
        Value::String(name) => name,
        other => other["type"].as_str().unwrap_or("unknown").to_string(),
    })
}

/// Column names match ignoring case.
pub fn find_field<'a>(fields: &'a [StructField], name: &str) -> Option<&'a StructField> {
    let wanted = name.to_lowercase();
    fields.iter().find(|field| field.name().to_lowercase() == wanted)
}

pub fn table_fields(snapshot: &SnapshotRef) -> Vec<StructField> {
    snapshot.schema().fields().cloned().collect()
}

/// Names that Parquet readers of Spark refuse, so that Delta asks for column mapping.
pub fn needs_mapping(name: &str) -> bool {
    name.contains([' ', ',', ';', '{', '}', '(', ')', '\n', '\t', '='])
}

pub fn is_mapped(snapshot: &SnapshotRef) -> bool {
    snapshot
        .metadata_configuration()
        .get("delta.columnMapping.mode")
        .is_some_and(|mode| mode != "none")
}

/// The columns of `wanted` that the table lacks, after checking that it can take them.
/// Only nullable ones can be added, and a first TIMESTAMP_NTZ or specially named column
/// would need a protocol upgrade, which is left to the table's owner.
pub fn missing_fields(snapshot: &SnapshotRef, wanted: &[StructField]) -> Outcome<Vec<StructField>> {
    let have = table_fields(snapshot);
    let mut missing: Vec<StructField> = Vec::new();
    for field in wanted {
        if find_field(&have, field.name()).is_some() || find_field(&missing, field.name()).is_some()
        {
            continue;
        }
        let refuse =
            |detail: &str| Err(Failure::of_column(Code::Unsupported, field.name(), detail));
        if *field.data_type() == DataType::TIMESTAMP_NTZ && !has_timestamp_ntz(snapshot)? {
            return refuse("the table lacks the feature timestampNtz that this column needs");
        }
        if needs_mapping(field.name()) && !is_mapped(snapshot) {
            return refuse("the table lacks column mapping, which this column's name needs");
        }
        let mut field = field.clone();
        field.nullable = true;
        missing.push(field);
    }
    Ok(missing)
}

fn has_timestamp_ntz(snapshot: &SnapshotRef) -> Outcome<bool> {
    let protocol = serde_json::to_value(snapshot.table_configuration().protocol())?;
    let features = protocol["writerFeatures"].as_array();
    Ok(features.is_some_and(|all| all.iter().any(|name| name == "timestampNtz")))
}
