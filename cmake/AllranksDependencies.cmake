# The libraries AllRanks uses, all from Debian's packages (docs/dependencies.md gives the reasons).
#
# Targets to link:
#   fmt::fmt  nlohmann_json::nlohmann_json  CLI11::CLI11  tl::expected  tomlplusplus::tomlplusplus
#   allranks_zstd  allranks_lz4  OpenSSL::Crypto  Threads::Threads
#   allranks_seccomp                                         (the sandbox)
#   CURL::libcurl                                            (model providers)
#   GTest::gtest_main  rapidcheck  benchmark::benchmark      (tests and bench only)
# Variables: ALLRANKS_HAVE_CUDA, and with it ALLRANKS_NVCC and CUDAToolkit_INCLUDE_DIRS; MPI_C_FOUND.

find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(tomlplusplus 3 REQUIRED)

find_package(PkgConfig REQUIRED)
pkg_check_modules(ALLRANKS_ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(ALLRANKS_LZ4 REQUIRED IMPORTED_TARGET liblz4)
add_library(allranks_zstd INTERFACE)
target_link_libraries(allranks_zstd INTERFACE PkgConfig::ALLRANKS_ZSTD)
add_library(allranks_lz4 INTERFACE)
target_link_libraries(allranks_lz4 INTERFACE PkgConfig::ALLRANKS_LZ4)

pkg_check_modules(ALLRANKS_SECCOMP REQUIRED IMPORTED_TARGET libseccomp)
add_library(allranks_seccomp INTERFACE)
target_link_libraries(allranks_seccomp INTERFACE PkgConfig::ALLRANKS_SECCOMP)
pkg_check_modules(ALLRANKS_DW REQUIRED IMPORTED_TARGET libdw libelf)
add_library(allranks_dw INTERFACE)
target_link_libraries(allranks_dw INTERFACE PkgConfig::ALLRANKS_DW)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto)
find_package(CURL 7.88 REQUIRED)

find_package(GTest 1.12 REQUIRED)
find_package(benchmark REQUIRED)
find_package(rapidcheck REQUIRED)

# nvcc is optional: the node, the PTX front end and the harness build without it, and tests on stored
# PTX run. What needs it is registered with allranks_skipped_test() so that it shows as skipped.
set(ALLRANKS_HAVE_CUDA OFF)
if(ALLRANKS_CUDA)
  find_package(CUDAToolkit 13.0 QUIET)
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
    set(ALLRANKS_HAVE_CUDA ON)
    set(ALLRANKS_NVCC "${CUDAToolkit_NVCC_EXECUTABLE}")
  endif()
endif()
# MPI only for programs that nvcc builds and mpirun starts.
if(ALLRANKS_HAVE_CUDA)
  find_package(MPI QUIET COMPONENTS C)
endif()

if(ALLRANKS_HAVE_CUDA)
  message(STATUS "nvcc ${CUDAToolkit_VERSION}: ${ALLRANKS_NVCC}")
else()
  message(STATUS "nvcc: not found or not wanted; what needs it is skipped")
endif()
