# How libFuzzer targets are registered (preset `sanitize` only).
#
#   allranks_fuzz(name [SOURCES file...] [LIBS target...])
#     Builds fuzz/<name>.cpp, with sources of folders that are no part of the instrumented build, as fuzz_<name> at the top of the build folder. .ci/run finds it there and
#     starts it on the seeds in fuzz/corpus/<name>.
add_custom_target(fuzz_all)
function(allranks_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  add_executable(fuzz_${name} ${name}.cpp ${arg_SOURCES})
  target_link_libraries(fuzz_${name} PRIVATE ${arg_LIBS})
  add_dependencies(fuzz_all fuzz_${name})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endfunction()
