# The build folder has the layout of an installation, with links into the source tree: the program looks
# for what it needs beside itself, and nowhere else.
#   bin/allranks  lib/allranks/  share/allranks/{profiles,problems,prompts,include,models.toml}
set(share "${PROJECT_BINARY_DIR}/share/allranks")
file(MAKE_DIRECTORY "${share}")
foreach(source IN ITEMS profiles problems include share/prompts share/models.toml)
  get_filename_component(name ${source} NAME)
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${source}" "${share}/${name}" SYMBOLIC)
endforeach()
