# How tests are registered.
#
#   allranks_test(name SOURCES file... [LIBS target...] [LABELS label...] [ONE_PROCESS] [TIMEOUT s]
#                 [OPTIMIZED])
#     A GoogleTest program. Each TEST becomes a ctest case called <name>.<Suite>.<Test>, listed when
#     ctest starts, so building stays quick. ONE_PROCESS registers the program as a single case: for
#     suites of many very short cases. The label "wall" marks tests that measure real time; they run
#     with nothing beside them. Tests find data through ALLRANKS_SOURCE_DIR (the repository's root)
#     and ALLRANKS_BINARY_DIR. OPTIMIZED keeps the optimiser for the test's own code in a quick build
#     (ALLRANKS_PCH), where it is left out for all others: compiling them is most of their cost.
#
#   allranks_skipped_test(name reason)
#     A test that cannot run in this configuration, reported by ctest as skipped, with its name.
include(GoogleTest)

function(allranks_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_PROCESS;OPTIMIZED" "TIMEOUT" "SOURCES;LIBS;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "allranks_test(${name}): SOURCES missing or unknown arguments: "
                        "${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest_main GTest::gtest)
  target_compile_definitions(${name} PRIVATE ALLRANKS_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             ALLRANKS_BINARY_DIR="${PROJECT_BINARY_DIR}")
  allranks_quiet_strings(${name})
  if(ALLRANKS_PCH AND NOT arg_OPTIMIZED)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  set(headers <gtest/gtest.h> <algorithm> <map> <string> <vector>)
  if("nlohmann_json::nlohmann_json" IN_LIST arg_LIBS OR arg_LIBS MATCHES "allranks_(model|campaign|report)")
    allranks_precompile_shared(test_json_${arg_OPTIMIZED} ${name} ${headers} <nlohmann/json.hpp>)
  else()
    allranks_precompile_shared(test_${arg_OPTIMIZED} ${name} ${headers})
  endif()
  set(properties TIMEOUT ${arg_TIMEOUT})
  if("wall" IN_LIST arg_LABELS)
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  if(arg_ONE_PROCESS)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES ${properties} LABELS "${arg_LABELS}")
  else()
    # One LABELS per label: ctest adds them up, while a list would not survive the generated scripts.
    foreach(label IN LISTS arg_LABELS)
      list(APPEND properties LABELS ${label})
    endforeach()
    gtest_discover_tests(
      ${name}
      TEST_PREFIX "${name}."
      DISCOVERY_MODE PRE_TEST
      DISCOVERY_TIMEOUT 60
      PROPERTIES ${properties})
  endif()
endfunction()

function(allranks_skipped_test name reason)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "allranks-skip: ${reason}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "allranks-skip:")
endfunction()
