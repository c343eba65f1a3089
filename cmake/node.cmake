# The addon of the npm package in node/, built in place so that a require from the checkout finds it. Node-API is C: one
# binary serves every version of Node from 18 on.
find_path(HEADRACE_NODE_HEADERS node_api.h PATH_SUFFIXES node DOC "The folder of Node's node_api.h")
if(NOT HEADRACE_NODE_HEADERS)
  message(STATUS "Node's headers are not there (Debian's libnode-dev has them): no target node_addon")
  return()
endif()
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/node/src/*.cpp)
add_library(node_addon MODULE EXCLUDE_FROM_ALL ${sources})
target_compile_features(node_addon PRIVATE cxx_std_20)
target_compile_definitions(node_addon PRIVATE NAPI_VERSION=8)
target_include_directories(node_addon PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_include_directories(node_addon SYSTEM PRIVATE ${HEADRACE_NODE_HEADERS})
target_link_libraries(node_addon PRIVATE headrace)
headrace_unity(node_addon)
set_target_properties(node_addon PROPERTIES
  PREFIX "" OUTPUT_NAME headrace SUFFIX ".node"
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_SOURCE_DIR}/node/native
  CXX_VISIBILITY_PRESET hidden
  BUILD_RPATH "${PROJECT_BINARY_DIR}/lib;${HEADRACE_GGML_LIB_DIR}")
