//! The Delta Lake side of mssql_cdc: delta_kernel behind a C ABI.
//!
//! `delta_abi.h` in src/lake is the contract. The kernel does the log, its features and
//! its checkpoints; this crate adds what it leaves to engines: streaming Parquet files,
//! recognising a replay, rebasing an append that lost against another writer, removing
//! the files of what was not committed, changes of rows, and the few commits the kernel has no call for.

mod abi;
mod alter;
mod append;
mod change;
mod change_abi;
mod change_commit;
mod create;
mod failure;
mod history;
mod large_values;
mod parquet_file;
mod probe;
mod read;
mod row_sizes;
mod schema;
mod table;
mod upload;
mod vectors;
mod write;
