# The op catalog is the concatenation of the families in src/ops, in file-name order; src/ops/catalog.cpp includes the
# two outputs. A family is a source <stem>.cpp that defines
#     std::span<const OpDef> <stem>_ops()
# in headrace::ops.
file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/*.cpp)
# An edit can make an existing file a family, which a glob alone does not see.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
set(includes "")
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(stem ${file} NAME_WE)
  file(STRINGS ${file} family REGEX "^std::span<const OpDef> ${stem}_ops\\(\\)" LIMIT_COUNT 1)
  if(family)
    string(APPEND includes "namespace headrace::ops { std::span<const OpDef> ${stem}_ops(); }\n")
    string(APPEND rows "ops::${stem}_ops(),\n")
  endif()
endforeach()
set(HEADRACE_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
# CONFIGURE leaves an unchanged file alone, so a re-configure does not recompile the catalog.
file(CONFIGURE OUTPUT ${HEADRACE_GENERATED_DIR}/op_catalog_includes.inc CONTENT "${includes}" @ONLY)
file(CONFIGURE OUTPUT ${HEADRACE_GENERATED_DIR}/op_catalog_rows.inc CONTENT "${rows}" @ONLY)
