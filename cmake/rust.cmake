# rust_delta: the static library of rust/delta, built once in release for every preset,
# in a target folder outside the checkout (MSSQL_CDC_CARGO_TARGET_DIR, set by ./dev).
if(DEFINED ENV{MSSQL_CDC_CARGO_TARGET_DIR})
  set(cargo_target $ENV{MSSQL_CDC_CARGO_TARGET_DIR})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(cargo_target $ENV{XDG_CACHE_HOME}/mssql-cdc/cargo)
else()
  set(cargo_target $ENV{HOME}/.cache/mssql-cdc/cargo)
endif()
set(rust_delta_archive ${cargo_target}/release/libmssql_cdc_delta.a)

add_library(rust_delta INTERFACE)
if(EXISTS ${PROJECT_SOURCE_DIR}/rust/delta/Cargo.toml)
  file(GLOB rust_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rust/delta/src/*.rs)
  add_custom_command(
    OUTPUT ${rust_delta_archive}
    # Crates' build scripts remember CC and CXX, which the wheel's build sets: they would be
    # made anew each time one kind of build follows the other.
    COMMAND ${CMAKE_COMMAND} -E env --unset=CC --unset=CXX CARGO_TARGET_DIR=${cargo_target}
            cargo build --release --locked --quiet
            --manifest-path ${PROJECT_SOURCE_DIR}/rust/delta/Cargo.toml
    COMMAND ${CMAKE_COMMAND} -E touch ${rust_delta_archive}
    DEPENDS ${rust_sources} ${PROJECT_SOURCE_DIR}/rust/delta/Cargo.toml
            ${PROJECT_SOURCE_DIR}/rust/delta/Cargo.lock
    COMMENT "cargo build rust/delta" VERBATIM)
  add_custom_target(rust_delta_build DEPENDS ${rust_delta_archive})
  add_dependencies(rust_delta rust_delta_build)
  target_link_libraries(rust_delta INTERFACE ${rust_delta_archive} pthread dl m)
  target_link_options(rust_delta INTERFACE -fuse-ld=gold -Wl,--gc-sections)
endif()
