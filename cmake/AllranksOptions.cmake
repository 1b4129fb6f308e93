# Compiler options that hold for every target, with the reason for each that is not a plain warning.

# Adds those of the named folders that describe themselves (have a CMakeLists.txt).
function(allranks_add_folders)
  foreach(folder IN LISTS ARGN)
    if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt")
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()

find_program(ALLRANKS_CCACHE ccache)
if(ALLRANKS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${ALLRANKS_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${ALLRANKS_CCACHE}")
endif()

add_compile_options(
  -Wall
  -Wextra
  -Wpedantic
  -Wshadow
  -Wcast-qual
  -Wimplicit-fallthrough
  -Wformat=2
  -Wundef
  -Wvla
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
  $<$<COMPILE_LANGUAGE:CXX>:-Wextra-semi>)
if(ALLRANKS_WERROR)
  add_compile_options(-Werror)
endif()

# A virtual GPU rounds every float operation on its own, and the same on every machine: the compiler
# must not fuse a multiplication and an addition that the PTX kept apart.
add_compile_options(-ffp-contract=off)
add_compile_options(-march=${ALLRANKS_MARCH} -fno-omit-frame-pointer)
# Failed checks name their place in the repository, on whose machine ever they were compiled.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
# Position-independent code that nobody interposes may still be inlined.
add_compile_options(-fno-semantic-interposition)

# g++ collects its garbage often enough to lose a twelfth of its time; a source needs less than 1 GiB.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-expand=500 --param=ggc-min-heapsize=2097152)
endif()

# One instrumented build serves the unit tests and the fuzz targets.
if(ALLRANKS_SANITIZE)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "ALLRANKS_SANITIZE needs clang: configure with `cmake --preset sanitize`")
  endif()
  add_compile_options(-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

# allranks_quiet_strings(target): for sources that join strings with paths known to the compiler. g++ 12
# then warns of bounds that std::string keeps, or not, depending on how long the build's path is.
function(allranks_quiet_strings target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
                                             -Wno-stringop-overread)
  endif()
endfunction()

# allranks_precompile(target header...): the headers that most sources of a target start with.
function(allranks_precompile target)
  if(ALLRANKS_PCH)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# allranks_precompile_shared(kind target header...): the same, made once for all targets of a kind. The
# first of them makes it; all must have the same headers and options of code generation.
function(allranks_precompile_shared kind target)
  if(NOT ALLRANKS_PCH)
    return()
  endif()
  get_property(owner GLOBAL PROPERTY allranks_precompiled_${kind})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY allranks_precompiled_${kind} ${target})
  endif()
endfunction()

# allranks_common_headers(target [UNOPTIMIZED]): for a library or program that has no header of its own
# that nearly all of its sources start with. UNOPTIMIZED: its code is not where time goes, so quick builds
# leave the optimiser out.
function(allranks_common_headers target)
  get_target_property(kind ${target} TYPE)
  set(more)
  if("UNOPTIMIZED" IN_LIST ARGN)
    # Not CLI11: its header defines objects, which every source that reads it initialises.
    set(more <nlohmann/json.hpp>)
    string(APPEND kind _UNOPTIMIZED)
    if(ALLRANKS_PCH)
      target_compile_options(${target} PRIVATE -O0)
    endif()
  endif()
  allranks_precompile_shared(${kind} ${target} <fmt/format.h> <algorithm> <filesystem> <functional>
                             <map> <memory> <optional> <string> <vector>
                             "${PROJECT_SOURCE_DIR}/src/base/result.h" ${more})
endfunction()

# allranks_join_sources(target [EXCEPT source...]): quick builds compile several sources at a time, so that
# headers outside of the precompiled one are read once. EXCEPT: sources with local names that others have.
function(allranks_join_sources target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCEPT")
  if(ALLRANKS_PCH)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    set_source_files_properties(${arg_EXCEPT} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
