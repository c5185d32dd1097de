//! The functions of `delta_abi.h`. Each catches panics, and reports a failure as its code
//! and a JSON text {"detail", "column"}.

use std::ffi::{c_char, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

use delta_kernel::arrow::ffi_stream::FFI_ArrowArrayStream;
use serde_json::{json, Map, Value};

use crate::alter;
use crate::append::{self, Append, Begun, Kind};
use crate::create;
use crate::failure::{Code, Failure, Outcome};
use crate::history;
use crate::read;
use crate::schema::{field_to_json, table_fields};
use crate::table::Table;

#[repr(C)]
pub struct AppendDone {
    kind: i32,
    version: i64,
    row_count: i64,
    size_bytes: i64,
}

pub unsafe fn guard(failure: *mut *mut c_char, work: impl FnOnce() -> Outcome<()>) -> i32 {
    let error = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error,
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            Failure::new(Code::Internal, text.unwrap_or("panic"))
        }
    };
    let text = json!({"detail": error.detail, "column": error.column});
    give(failure, text.to_string());
    error.code as i32
}

/// Hands a text to the caller, who frees it.
pub unsafe fn give(out: *mut *mut c_char, text: String) {
    if !out.is_null() {
        *out = CString::new(text.replace('\0', " ")).unwrap_or_default().into_raw();
    }
}

unsafe fn text<'a>(pointer: *const c_char) -> Outcome<&'a str> {
    optional_text(pointer)?.ok_or_else(|| Failure::new(Code::Internal, "a text is missing"))
}

pub unsafe fn optional_text<'a>(pointer: *const c_char) -> Outcome<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    let text = CStr::from_ptr(pointer).to_str();
    text.map(Some).map_err(|_| Failure::new(Code::Failed, "a text is not UTF-8"))
}

pub unsafe fn spec(pointer: *const c_char) -> Outcome<Value> {
    Ok(serde_json::from_str(text(pointer)?)?)
}

pub unsafe fn borrow<'a, T>(pointer: *mut T) -> Outcome<&'a mut T> {
    pointer.as_mut().ok_or_else(|| Failure::new(Code::Internal, "a handle is missing"))
}

pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_open(
    location: *const c_char,
    out: *mut *mut Table,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || {
        let table = Table::open(text(location)?)?;
        *borrow(out)? = Box::into_raw(Box::new(table));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_close(table: *mut Table) {
    if !table.is_null() {
        let table = Box::from_raw(table);
        let _ = catch_unwind(AssertUnwindSafe(move || drop(table)));
    }
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_free(text: *mut c_char) {
    if !text.is_null() {
        drop(CString::from_raw(text));
    }
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_state(
    table: *mut Table,
    out: *mut *mut c_char,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || {
        let Some(snapshot) = borrow(table)?.refresh()? else {
            *borrow(out)? = std::ptr::null_mut();
            return Ok(());
        };
        let fields: Vec<Value> =
            table_fields(&snapshot).iter().map(field_to_json).collect::<Outcome<_>>()?;
        let properties: Map<String, Value> = snapshot
            .metadata_configuration()
            .iter()
            .map(|(key, value)| (key.clone(), json!(value)))
            .collect();
        let state = json!({
            "version": snapshot.version(),
            "fields": fields,
            "properties": properties,
        });
        give(out, state.to_string());
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_last_txn(
    table: *mut Table,
    app_id: *const c_char,
    has_txn: *mut bool,
    version: *mut i64,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || {
        let last = borrow(table)?.last_txn(text(app_id)?)?;
        *borrow(has_txn)? = last.is_some();
        *borrow(version)? = last.unwrap_or(0);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_create(
    table: *mut Table,
    spec_json: *const c_char,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || create::create(borrow(table)?, &spec(spec_json)?))
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_alter(
    table: *mut Table,
    spec_json: *const c_char,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || alter::alter(borrow(table)?, &spec(spec_json)?))
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_append_begin(
    table: *mut Table,
    spec_json: *const c_char,
    out: *mut *mut Append,
    version: *mut i64,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || {
        *borrow(out)? = match append::begin(borrow(table)?, &spec(spec_json)?)? {
            Begun::Ready(append) => Box::into_raw(append),
            Begun::AlreadyThere(there) => {
                *borrow(version)? = signed(there);
                std::ptr::null_mut()
            }
        };
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_append_drain(
    append: *const Append,
    stream: *mut FFI_ArrowArrayStream,
    source_index: u32,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || match append.as_ref() {
        Some(append) => append.drain(stream, source_index),
        None => Err(Failure::new(Code::Internal, "a handle is missing")),
    })
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_append_commit(
    append: *mut Append,
    table: *mut Table,
    user_metadata: *const c_char,
    out: *mut AppendDone,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || {
        let user_metadata = optional_text(user_metadata)?;
        let done = borrow(append)?.commit(borrow(table)?, user_metadata)?;
        let kind = match done.kind {
            Kind::Committed => 0,
            Kind::AlreadyThere => 1,
            Kind::NoRows => 2,
        };
        *borrow(out)? = AppendDone {
            kind,
            version: signed(done.version),
            row_count: signed(done.row_count),
            size_bytes: signed(done.size_bytes),
        };
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_append_end(append: *mut Append) {
    if !append.is_null() {
        let append = Box::from_raw(append);
        let _ = catch_unwind(AssertUnwindSafe(move || drop(append)));
    }
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_history(
    table: *mut Table,
    since_version: i64,
    out: *mut *mut c_char,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || {
        let since = u64::try_from(since_version).unwrap_or(0);
        give(out, history::history(&borrow(table)?.place, since)?.to_string());
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_read(
    table: *mut Table,
    spec_json: *const c_char,
    out: *mut FFI_ArrowArrayStream,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || {
        let stream = read::read(borrow(table)?, &spec(spec_json)?)?;
        // The caller's memory holds no stream yet that could be dropped.
        std::ptr::write(out, stream);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn mssql_cdc_delta_row_count(
    table: *mut Table,
    out: *mut i64,
    failure: *mut *mut c_char,
) -> i32 {
    guard(failure, || {
        *borrow(out)? = signed(read::row_count(borrow(table)?)?);
        Ok(())
    })
}
