# libexecutorch_ggml_runtime.so, the ExecuTorch delegate, built against the wheel: EXECUTORCH_DIR, or the package of the
# Python that builds. Its variables are used, because its targets exist only from CMake 3.28 on.
set(EXECUTORCH_DIR "" CACHE PATH "The package folder executorch; empty: the one of the checkout's Python")
set(package ${EXECUTORCH_DIR})
if(NOT package)
  file(GLOB package ${PROJECT_SOURCE_DIR}/.venv/lib/python*/site-packages/executorch)
endif()
if(NOT EXISTS "${package}/share/cmake/executorch-config.cmake" AND NOT EXISTS "${package}/lib/cmake")
  message(STATUS "ExecuTorch is not installed: no delegate")
  return()
endif()
find_package(executorch 1.5 CONFIG QUIET PATHS ${package} NO_DEFAULT_PATH)
if(NOT executorch_FOUND)
  message(STATUS "ExecuTorch in ${package} has no usable CMake package: no delegate")
  return()
endif()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/doors/executorch/*.cpp)
add_library(executorch_ggml_runtime SHARED ${sources})
target_include_directories(executorch_ggml_runtime PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_include_directories(executorch_ggml_runtime SYSTEM PRIVATE ${EXECUTORCH_INCLUDE_DIRS})
target_compile_definitions(executorch_ggml_runtime PRIVATE ${EXECUTORCH_COMPILE_DEFINITIONS})
target_link_libraries(executorch_ggml_runtime PRIVATE headrace
  ${EXECUTORCH_RUNTIME_LIBRARY_DIR}/libexecutorch.so ${EXECUTORCH_RUNTIME_LIBRARY_DIR}/libexecutorch_threadpool.so)
set_target_properties(executorch_ggml_runtime PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
  BUILD_RPATH "$ORIGIN;${EXECUTORCH_RUNTIME_LIBRARY_DIR};${HEADRACE_GGML_LIB_DIR}")
