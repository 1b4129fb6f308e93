# find_package(AllRanks): the program, and tests that run your CUDA programs on its virtual node.
#
#   allranks_test(NAME name PROGRAM target|path [ARGS argument...] [CHECK] [SCHEDULES n]
#                 [DEVICES n] [RANKS n] [PROFILE name] [OPTIONS option...])
#
# adds a test that passes if the program exits with 0 and, with CHECK, nothing is found (exit code 87) and no
# thread waits for ever (86). SCHEDULES runs it under so many more of the executions that PTX permits. Findings
# of CHECK are also written to <name>.sarif in the test's folder.
get_filename_component(_allranks_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_program(ALLRANKS_EXECUTABLE allranks HINTS "${_allranks_prefix}/bin")
if(NOT ALLRANKS_EXECUTABLE)
  set(AllRanks_FOUND FALSE)
  set(AllRanks_NOT_FOUND_MESSAGE "the program allranks is not in ${_allranks_prefix}/bin, nor on PATH")
  return()
endif()

function(allranks_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "CHECK" "NAME;PROGRAM;SCHEDULES;DEVICES;RANKS;PROFILE" "ARGS;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "allranks_test: unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_NAME OR NOT arg_PROGRAM)
    message(FATAL_ERROR "allranks_test: NAME and PROGRAM are required")
  endif()
  if(arg_SCHEDULES AND NOT arg_CHECK)
    message(FATAL_ERROR "allranks_test(${arg_NAME}): SCHEDULES needs CHECK")
  endif()
  set(options)
  foreach(option IN ITEMS DEVICES RANKS PROFILE SCHEDULES)
    if(arg_${option})
      string(TOLOWER ${option} name)
      list(APPEND options --${name} ${arg_${option}})
    endif()
  endforeach()
  if(arg_CHECK)
    list(APPEND options --check --findings "${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}.sarif")
  endif()
  set(program "${arg_PROGRAM}")
  if(TARGET ${arg_PROGRAM})
    set(program "$<TARGET_FILE:${arg_PROGRAM}>")
  endif()
  add_test(NAME ${arg_NAME} COMMAND "${ALLRANKS_EXECUTABLE}" exec ${options} ${arg_OPTIONS} -- "${program}" ${arg_ARGS})
endfunction()
