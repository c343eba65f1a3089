# headrace_schema(<target>): gives <target> "ggml_ir_generated.h", made by flatc from schema/ggml_ir.fbs.
function(headrace_schema target)
  set(schema ${PROJECT_SOURCE_DIR}/schema/ggml_ir.fbs)
  file(GLOB found CONFIGURE_DEPENDS ${schema})
  get_target_property(type ${target} TYPE)
  if(NOT found OR type STREQUAL "INTERFACE_LIBRARY")
    return()
  endif()
  set(directory ${PROJECT_BINARY_DIR}/generated/schema)
  set(header ${directory}/ggml_ir_generated.h)
  add_custom_command(
    OUTPUT ${header}
    COMMAND flatbuffers::flatc --cpp --cpp-std c++17 --scoped-enums -o ${directory} ${schema}
    DEPENDS ${schema}
    COMMENT "flatc ggml_ir.fbs")
  target_sources(${target} PRIVATE ${header})
  target_include_directories(${target} SYSTEM PUBLIC ${directory})
endfunction()
