//! What can go wrong, in the few kinds that the C++ side tells apart.

use std::fmt::Display;

use delta_kernel::arrow::error::ArrowError;
use delta_kernel::object_store;
use delta_kernel::parquet::errors::ParquetError;
use delta_kernel::KernelError;

/// The return codes of the C ABI; 0 is success. `delta_abi.h` has the same list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    Conflict = 1,
    Unreachable = 2,
    Unsupported = 3,
    SchemaMismatch = 4,
    Failed = 5,
    Source = 6,
    Cancelled = 7,
    Internal = 8,
}

#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub detail: String,
    pub column: Option<String>,
}

pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub fn new(code: Code, detail: impl Display) -> Self {
        Self { code, detail: one_line(&detail.to_string()), column: None }
    }

    pub fn of_column(code: Code, column: &str, detail: impl Display) -> Self {
        Self { column: Some(column.to_string()), ..Self::new(code, detail) }
    }
}

/// Kernel messages may carry a backtrace after the first line.
fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(500).collect()
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        Self::new(code_of(&error), &error)
    }
}

fn code_of(error: &KernelError) -> Code {
    match error {
        KernelError::Backtraced { source, .. } => code_of(source),
        KernelError::IOError(_)
        | KernelError::ObjectStore(_)
        | KernelError::Reqwest(_)
        | KernelError::FileNotFound(_) => Code::Unreachable,
        KernelError::Unsupported(_) | KernelError::InvalidColumnMappingMode(_) => Code::Unsupported,
        _ => Code::Failed,
    }
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Self {
        Self::new(Code::Unreachable, error)
    }
}

impl From<object_store::path::Error> for Failure {
    fn from(error: object_store::path::Error) -> Self {
        Self::new(Code::Failed, error)
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Self::new(Code::Failed, error)
    }
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Self {
        // What the storage under a Parquet writer reports arrives as External.
        let code = match &error {
            ParquetError::External(_) => Code::Unreachable,
            _ => Code::Failed,
        };
        Self::new(code, error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Code::Unreachable, error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Code::Failed, error)
    }
}

impl From<url::ParseError> for Failure {
    fn from(error: url::ParseError) -> Self {
        Self::new(Code::Unreachable, error)
    }
}
