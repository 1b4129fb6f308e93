# What `cmake --install` and CPack put where. Everything is found relative to the program, so a folder with
# bin/, lib/ and share/ may be moved.
#   cmake --install BUILD --prefix FOLDER [--strip] [--component allranks|problems|dev]
#   cpack --config BUILD/CPackConfig.cmake -G DEB|TGZ
install(TARGETS allranks RUNTIME DESTINATION bin COMPONENT allranks)
foreach(library IN ITEMS allranks_shim_host allranks_shim_audit allranks_shim_cuda allranks_shim_cudart
                         allranks_shim_nvml allranks_shim_nvtx allranks_driver)
  if(TARGET ${library})
    install(TARGETS ${library} LIBRARY DESTINATION lib/allranks NAMELINK_SKIP COMPONENT allranks
                               ARCHIVE DESTINATION lib/allranks COMPONENT allranks)
  endif()
endforeach()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/profiles" "${PROJECT_SOURCE_DIR}/include"
                  "${PROJECT_SOURCE_DIR}/share/prompts"
        DESTINATION share/allranks COMPONENT allranks)
install(FILES "${PROJECT_SOURCE_DIR}/share/models.toml" DESTINATION share/allranks COMPONENT allranks)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/problems" DESTINATION share/allranks COMPONENT problems
        PATTERN checked.json EXCLUDE)

# Manual pages and completions, from the program's own table of commands.
set(manual "${PROJECT_BINARY_DIR}/manual")
add_custom_command(
  OUTPUT "${manual}/man1/allranks.1"
  COMMAND allranks docs --install "${manual}"
  DEPENDS allranks
  COMMENT "Manual pages and completions"
  VERBATIM)
add_custom_target(allranks_manual ALL DEPENDS "${manual}/man1/allranks.1")
install(DIRECTORY "${manual}/man1" DESTINATION share/man COMPONENT allranks)
install(FILES "${manual}/bash/allranks" DESTINATION share/bash-completion/completions COMPONENT allranks)
install(FILES "${manual}/zsh/_allranks" DESTINATION share/zsh/vendor-completions COMPONENT allranks)
install(FILES "${manual}/fish/allranks.fish" DESTINATION share/fish/vendor_completions.d COMPONENT allranks)

# find_package(AllRanks)
include(CMakePackageConfigHelpers)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/AllRanksConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/AllRanksConfigVersion.cmake" "${CMAKE_CURRENT_LIST_DIR}/AllRanksConfig.cmake"
        DESTINATION share/cmake/AllRanks COMPONENT dev)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION share/allranks COMPONENT dev)

set(CPACK_PACKAGE_NAME allranks)
set(CPACK_PACKAGE_VENDOR "AllRanks")
set(CPACK_PACKAGE_CONTACT "AllRanks maintainers <maintainers@allranks.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Virtual multi-GPU node, race detector and benchmark for communication code")
set(CPACK_PACKAGE_DESCRIPTION "Runs CUDA programs on simulated GPUs, reports races and deadlocks across them, and
judges code that makes GPUs communicate. No GPU and no driver are needed.")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME "allranks-${PROJECT_VERSION}-linux-x86_64")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL allranks problems dev)
# A tarball has all of it; there is a .deb for each component.
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ALLRANKS_PACKAGE_NAME allranks)
set(CPACK_DEBIAN_PROBLEMS_PACKAGE_NAME allranks-problems)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME allranks-dev)
set(CPACK_DEBIAN_PROBLEMS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DEV_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_ALLRANKS_PACKAGE_SHLIBDEPS ON)
# Compilers of candidates and the sandbox of judgements; exec needs neither.
set(CPACK_DEBIAN_ALLRANKS_PACKAGE_RECOMMENDS "g++, bubblewrap, allranks-problems")
set(CPACK_DEBIAN_ALLRANKS_PACKAGE_SUGGESTS "gnuplot-nox")
set(CPACK_DEBIAN_PROBLEMS_PACKAGE_DEPENDS "allranks (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "allranks (>= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_ALLRANKS_DESCRIPTION "Virtual multi-GPU node for CUDA programs: exec, check, judge and report.")
set(CPACK_COMPONENT_PROBLEMS_DESCRIPTION "The problems of AllRanks, with references and what is wrong on purpose.")
set(CPACK_COMPONENT_DEV_DESCRIPTION "CMake package of AllRanks: tests of your own CUDA programs, and examples.")
include(CPack)
