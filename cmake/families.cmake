# headrace_families(<name> <folder> <type> <suffix> <namespace>): what the sources in src/<folder> have to offer, in
# file-name order, as ${HEADRACE_GENERATED_DIR}/<name>_includes.inc and <name>_rows.inc. A source <stem>.cpp offers
# something when it defines
#     <type> <stem>_<suffix>()
# in <namespace>.
set(HEADRACE_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
function(headrace_families name folder type suffix namespace)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cpp)
  # An edit can make an existing file a family, which a glob alone does not see.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(includes "")
  set(rows "")
  foreach(file IN LISTS files)
    get_filename_component(stem ${file} NAME_WE)
    file(STRINGS ${file} family REGEX "^${type} ${stem}_${suffix}\\(\\)" LIMIT_COUNT 1)
    if(family)
      string(APPEND includes "namespace ${namespace} { ${type} ${stem}_${suffix}(); }\n")
      string(APPEND rows "${namespace}::${stem}_${suffix}(),\n")
    endif()
  endforeach()
  # CONFIGURE leaves an unchanged file alone, so a re-configure does not recompile the table.
  file(CONFIGURE OUTPUT ${HEADRACE_GENERATED_DIR}/${name}_includes.inc CONTENT "${includes}" @ONLY)
  file(CONFIGURE OUTPUT ${HEADRACE_GENERATED_DIR}/${name}_rows.inc CONTENT "${rows}" @ONLY)
endfunction()

# headrace_op_names(<file>): the names that the sources in src/ops give their ops, as strings of C++, one a line. They
# stand behind `name = `, or first but one in a macro, HR_UNARY(Abs, "abs", ...).
function(headrace_op_names file)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/*.cpp)
  set(rows "")
  foreach(source IN LISTS sources)
    file(STRINGS ${source} lines REGEX "[ \t]name = \"|^HR_[A-Z_]*\\([A-Za-z0-9]+, \"")
    foreach(line IN LISTS lines)
      string(REGEX MATCH "\"[a-z0-9_]+\"" name "${line}")
      string(APPEND rows "${name},\n")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT ${file} CONTENT "${rows}" @ONLY)
endfunction()
