# room(NAME DEPENDS rooms... [DIR dir] [LIBRARIES targets...] [BINARY name])
#
# One room: a static library of every .cc in its folder (src/NAME unless DIR is given),
# and one test program from its *_test.cc files. Files named *_fuzz.cc and *_bench.cc
# are programs of their own, built elsewhere. A room links only what DEPENDS lists;
# tools/tidy.py holds the include lines to the same table. Everything in the folder is
# compiled, so no source can be in the tree yet unbuilt. With BINARY the room's main.cc
# becomes that program.
function(room name)
  cmake_parse_arguments(arg "" "DIR;BINARY" "DEPENDS;LIBRARIES" ${ARGN})
  if(NOT arg_DIR)
    set(arg_DIR src/${name})
  endif()
  set(dir ${PROJECT_SOURCE_DIR}/${arg_DIR})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_fuzz|_bench)\\.cc$|/main\\.cc$")

  if(sources)
    add_library(${name} STATIC ${sources})
    set(scope PUBLIC)
    # As the wheel's extension needs its rooms, which shows nothing but its entry: in every
    # optimised build, so that ccache has each object once.
    if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT name IN_LIST ROOMS_OF_THE_PROGRAM)
      set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
                            CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    endif()
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} ${scope} ${arg_DEPENDS} ${arg_LIBRARIES} fmt::fmt warnings)

  if(tests OR fuzzers)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ${name} GTest::gmock GTest::gtest_main)
    # Only for those who use it: it keeps a file from being shared by ccache.
    foreach(test ${tests})
      file(STRINGS ${test} uses REGEX MSSQL_CDC_SOURCE_DIR LIMIT_COUNT 1)
      if(uses)
        set_source_files_properties(${test} PROPERTIES COMPILE_DEFINITIONS
          MSSQL_CDC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
      endif()
    endforeach()
    # Under g++ a fuzz target is replayed over its corpus as a unit test; for clang,
    # tools/fuzz.py sets MSSQL_CDC_FUZZERS and gets the fuzzer itself.
    foreach(fuzzer ${fuzzers})
      get_filename_component(stem ${fuzzer} NAME_WE)
      if(MSSQL_CDC_FUZZERS)
        add_executable(${stem} ${fuzzer})
        target_link_libraries(${stem} PRIVATE ${name})
        target_link_options(${stem} PRIVATE -fsanitize=fuzzer)
        continue()
      endif()
      add_executable(${stem}_replay ${fuzzer} ${PROJECT_SOURCE_DIR}/tests/fuzz_replay.cc)
      target_link_libraries(${stem}_replay PRIVATE ${name})
      string(REPLACE "_fuzz" "" corpus ${stem})
      add_test(NAME ${stem}_replay COMMAND ${stem}_replay ${PROJECT_SOURCE_DIR}/tests/corpus/${corpus})
      set_tests_properties(${stem}_replay PROPERTIES LABELS unit)
    endforeach()
    if(tests)
      add_test(NAME ${name} COMMAND ${name}_test)
      set_tests_properties(${name} PROPERTIES LABELS unit)
    endif()
  endif()

  if(arg_BINARY AND EXISTS ${dir}/main.cc)
    add_executable(${arg_BINARY} ${dir}/main.cc)
    target_link_libraries(${arg_BINARY} PRIVATE ${name})
  endif()
endfunction()
