//! What can go wrong, in the few kinds that the C++ side tells apart.

use std::error::Error as StdError;
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
    Refused = 9,
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
        KernelError::IOError(_) | KernelError::ObjectStore(_) => code_of_storage(error),
        KernelError::Reqwest(_) | KernelError::FileNotFound(_) => Code::Unreachable,
        KernelError::Unsupported(_) | KernelError::InvalidColumnMappingMode(_) => Code::Unsupported,
        _ => Code::Failed,
    }
}

/// Refused where trying again cannot help: somebody must change a right or a path.
fn code_of_storage(error: &(dyn StdError + 'static)) -> Code {
    // EPERM, EACCES, ENOTDIR, EISDIR, EROFS, ENAMETOOLONG, ELOOP.
    const LASTING: [i32; 7] = [1, 13, 20, 21, 30, 36, 40];
    let mut next = Some(error);
    while let Some(cause) = next {
        let io = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
        if io.is_some_and(|number| LASTING.contains(&number)) {
            return Code::Refused;
        }
        if let Some(
            object_store::Error::PermissionDenied { .. }
            | object_store::Error::Unauthenticated { .. },
        ) = cause.downcast_ref::<object_store::Error>()
        {
            return Code::Refused;
        }
        next = cause.source();
    }
    Code::Unreachable
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Self {
        Self::new(code_of_storage(&error), error)
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
            ParquetError::External(source) => code_of_storage(source.as_ref()),
            _ => Code::Failed,
        };
        Self::new(code, error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(code_of_storage(&error), error)
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
