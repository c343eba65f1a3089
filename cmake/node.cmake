# The addons of the npm package in node/, built in place so that a require from the checkout finds them; those with a
# sanitizer (tools/node_asan.py) and those for other machines (tools/wheels) lie beside their build. Node-API is C: one
# binary serves every version of Node from 18 on.
find_program(HEADRACE_NODE node)
get_filename_component(node_prefix "${HEADRACE_NODE}" REALPATH)  # nvm's and NodeSource's have the headers beside them
get_filename_component(node_prefix "${node_prefix}/../.." ABSOLUTE)
find_path(HEADRACE_NODE_HEADERS node_api.h HINTS ${node_prefix}/include PATH_SUFFIXES node
  DOC "The folder of Node's node_api.h")
if(NOT HEADRACE_NODE_HEADERS)
  message(STATUS "Node's headers are not there (Debian's libnode-dev has them): no target node_addon")
  return()
endif()

set(native ${PROJECT_SOURCE_DIR}/node/native)
if(HEADRACE_ASAN OR HEADRACE_TSAN OR HEADRACE_PORTABLE)
  set(native ${PROJECT_BINARY_DIR}/npm/node/native)
endif()

# NAME.node in that folder of the other arguments, sources.
function(headrace_node_addon target name)
  add_library(${target} MODULE EXCLUDE_FROM_ALL ${ARGN})
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_definitions(${target} PRIVATE NAPI_VERSION=8)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(${target} SYSTEM PRIVATE ${HEADRACE_NODE_HEADERS})
  headrace_unity(${target})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} SUFFIX ".node"
    LIBRARY_OUTPUT_DIRECTORY ${native}
    CXX_VISIBILITY_PRESET hidden
    BUILD_RPATH "${PROJECT_BINARY_DIR}/lib;${HEADRACE_GGML_LIB_DIR}"
    INSTALL_RPATH "$ORIGIN/${CMAKE_INSTALL_LIBDIR};$ORIGIN/${CMAKE_INSTALL_LIBDIR}/headrace")
  if(HEADRACE_PORTABLE)
    install(TARGETS ${target} LIBRARY DESTINATION . COMPONENT node)
  endif()
endfunction()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/node/src/*.cpp)
headrace_node_addon(node_addon headrace ${sources})
target_link_libraries(node_addon PRIVATE headrace)

# Language models in an addon of their own: llama.cpp is loaded only where it is used.
if(TARGET headrace_llm_shared)
  file(GLOB llm_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/node/src/llm/*.cpp)
  headrace_node_addon(node_llm_addon headrace-llm ${llm_sources} ${PROJECT_SOURCE_DIR}/node/src/values.cpp
    ${PROJECT_SOURCE_DIR}/node/src/task.cpp)
  target_link_libraries(node_llm_addon PRIVATE headrace_llm_shared)
  # Its threads outlive the worker that loaded it.
  target_link_options(node_llm_addon PRIVATE -Wl,-z,nodelete)
  add_dependencies(node_addon node_llm_addon)
  if(TARGET ggml-headrace)
    add_dependencies(node_llm_addon ggml-headrace)
  endif()
endif()
