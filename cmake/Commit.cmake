# Writes OUT, a header with the commit that ROOT is at, `+` behind it if files differ from it. Written only if
# it has changed. Sources without git, as in a tarball, have the commit that COMMIT says.
#   cmake -DROOT=... -DOUT=... -DCOMMIT=... -P Commit.cmake
set(commit "${COMMIT}")
if(commit STREQUAL "")
  execute_process(COMMAND git -C "${ROOT}" describe --always --exclude=* --abbrev=12 --dirty=+ OUTPUT_VARIABLE commit
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(commit STREQUAL "")
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT "${OUT}" CONTENT "inline constexpr char kCommit[] = \"${commit}\";\n")
