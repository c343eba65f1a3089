# libggml-headrace.so, which gives the CPU backend of llama.cpp's programs our products with packed weights:
# GGML_BACKEND_PATH names it.
if(NOT HEADRACE_LLAMA_SOURCE)
  message(STATUS "The accelerator for llama.cpp needs ggml's own headers, which only the source tree has that "
    "tools/setup.py fetches: it is left out")
  return()
endif()
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/packed/*.cpp)
# The tests link the static library, and so reach what the shared one hides.
add_library(headrace_backends_packed STATIC ${sources})
target_include_directories(headrace_backends_packed PUBLIC ${PROJECT_SOURCE_DIR}/src)
target_include_directories(headrace_backends_packed SYSTEM PUBLIC ${HEADRACE_LLAMA_SOURCE}/ggml/src)
target_compile_definitions(headrace_backends_packed
  PUBLIC GGML_SHARED
  PRIVATE GGML_BACKEND_DL GGML_BACKEND_SHARED GGML_BACKEND_BUILD
    HEADRACE_GGML_VERSION="${ggml_VERSION}" HEADRACE_GGML_COMMIT="${GGML_BUILD_COMMIT}")
target_link_libraries(headrace_backends_packed PUBLIC headrace_kernels ggml::ggml ${CMAKE_DL_LIBS})

add_library(ggml-headrace SHARED $<TARGET_OBJECTS:headrace_backends_packed>)
target_link_libraries(ggml-headrace PRIVATE headrace_backends_packed)
target_link_options(ggml-headrace PRIVATE ${HEADRACE_HIDE_ARCHIVES}
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/ggml-headrace.map)
# No path to the ggml it was built with: it takes the host's, which it compares with that. Installed, it finds Highway
# beside itself.
set_target_properties(ggml-headrace PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
