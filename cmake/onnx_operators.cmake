# The ONNX door's operators are the families in src/doors/onnx/ops; all_operators.cpp there includes the two outputs.
# A family is a source <stem>.cpp that defines
#     std::span<const Operator> <stem>_operators()
# in headrace::onnx.
file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/doors/onnx/ops/*.cpp)
# An edit can make an existing file a family, which a glob alone does not see.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
set(includes "")
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(stem ${file} NAME_WE)
  file(STRINGS ${file} family REGEX "^std::span<const Operator> ${stem}_operators\\(\\)" LIMIT_COUNT 1)
  if(family)
    string(APPEND includes "namespace headrace::onnx { std::span<const Operator> ${stem}_operators(); }\n")
    string(APPEND rows "${stem}_operators(),\n")
  endif()
endforeach()
# CONFIGURE leaves an unchanged file alone, so a re-configure does not recompile the table.
file(CONFIGURE OUTPUT ${HEADRACE_GENERATED_DIR}/onnx_operator_includes.inc CONTENT "${includes}" @ONLY)
file(CONFIGURE OUTPUT ${HEADRACE_GENERATED_DIR}/onnx_operator_rows.inc CONTENT "${rows}" @ONLY)
