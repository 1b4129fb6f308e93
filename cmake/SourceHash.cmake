# Writes OUT, a header with the SHA-256 of all sources below FOLDERS (of ROOT), but for documents: what
# a verdict depends on, the same on every machine. Written only if it has changed, so that nothing is
# compiled for it.
#   cmake -DROOT=... -DOUT=... "-DFOLDERS=a;b" -P SourceHash.cmake
set(all "")
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/${folder}/*")
  list(FILTER files EXCLUDE REGEX "\\.md$")
  list(SORT files)
  foreach(file IN LISTS files)
    file(SHA256 "${ROOT}/${file}" hash)
    string(APPEND all "${hash} ${file}\n")
  endforeach()
endforeach()
string(SHA256 hash "${all}")
file(CONFIGURE OUTPUT "${OUT}" CONTENT "inline constexpr char kJudgingSources[] = \"${hash}\";\n")
