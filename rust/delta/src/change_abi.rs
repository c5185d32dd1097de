//! The functions of `delta_abi.h` that change rows.

use std::ffi::c_char;

use delta_kernel::arrow::ffi_stream::FFI_ArrowArrayStream;

use crate::abi::{borrow, give, guard, optional_text, signed, spec};
use crate::append::{Append, Kind};
use crate::change_commit;
use crate::failure::{Code, Failure};
use crate::probe;
use crate::table::Table;
use crate::vectors;

#[repr(C)]
pub struct ChangeDone {
    is_committed: bool,
    version: i64,
    added_count: i64,
    removed_count: i64,
    rewritten_row_count: i64,
    size_bytes: i64,
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_change_begin(
    table: *mut Table,
    spec_json: *const c_char,
    out: *mut *mut Append,
    version: *mut i64,
    files: *mut *mut c_char,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || {
        let change = change_commit::begin(borrow(table)?, &spec(spec_json)?)?;
        *borrow(version)? = signed(change.base()?.snapshot.version());
        give(files, change.base()?.describe().to_string());
        *borrow(out)? = Box::into_raw(change);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_change_probe(
    change: *mut Append,
    spec_json: *const c_char,
    out: *mut FFI_ArrowArrayStream,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || {
        let change = borrow(change)?;
        let stream = probe::probe(&change.place, change.base()?, &spec(spec_json)?)?;
        // The caller's memory holds no stream yet that could be dropped.
        std::ptr::write(out, stream);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_change_remove(
    change: *const Append,
    file: i32,
    rows: *const i64,
    count: u64,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || {
        let count = usize::try_from(count).unwrap_or(0);
        if count == 0 {
            return Ok(());
        }
        if rows.is_null() {
            return Err(Failure::new(Code::Internal, "the rows are missing"));
        }
        let file = usize::try_from(file).unwrap_or(usize::MAX);
        // Shared: a source that is being drained may say which of its rows go.
        let change = change.as_ref();
        let change = change.ok_or_else(|| Failure::new(Code::Internal, "a handle is missing"))?;
        change.base()?.remove(file, std::slice::from_raw_parts(rows, count))
    })
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_change_commit(
    change: *mut Append,
    table: *mut Table,
    user_metadata: *const c_char,
    out: *mut ChangeDone,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || {
        let user_metadata = optional_text(user_metadata)?;
        let changed = borrow(change)?.commit_change(borrow(table)?, user_metadata)?;
        *borrow(out)? = ChangeDone {
            is_committed: matches!(changed.done.kind, Kind::Committed),
            version: signed(changed.done.version),
            added_count: signed(changed.added_count),
            removed_count: signed(changed.removed_count),
            rewritten_row_count: signed(changed.rewritten_row_count),
            size_bytes: signed(changed.done.size_bytes),
        };
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_enable_vectors(
    table: *mut Table,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || vectors::enable(borrow(table)?))
}
