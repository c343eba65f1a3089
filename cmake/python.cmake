# The extension headrace._core, built in place so that an import from the checkout finds it.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/*.cpp)
if(NOT sources)
  message(STATUS "python/src has no sources: no Python extension")
  return()
endif()
if(NOT TARGET headrace)
  message(FATAL_ERROR "HEADRACE_PYTHON needs libheadrace.so, and src has no sources yet")
endif()
# An explicit choice of interpreter (a wheel build makes one) goes before the checkout's .venv.
if(NOT Python_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python)
endif()
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
  COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

nanobind_add_module(_core NB_STATIC NOMINSIZE ${sources})
target_link_libraries(_core PRIVATE headrace)
target_include_directories(_core PRIVATE ${PROJECT_SOURCE_DIR}/include)
set_target_properties(_core PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_SOURCE_DIR}/python/headrace
  BUILD_RPATH "${PROJECT_BINARY_DIR}/lib;${HEADRACE_GGML_LIB_DIR}")

# Type stubs, beside the modules: nanobind's of the native one, ours of what Python adds to its classes.
set(core_stub ${PROJECT_SOURCE_DIR}/python/headrace/_core.pyi)
set(webnn_stub ${PROJECT_SOURCE_DIR}/python/webnn/__init__.pyi)
nanobind_add_stub(_core_stub MODULE headrace._core OUTPUT ${core_stub}
  PYTHON_PATH ${PROJECT_SOURCE_DIR}/python DEPENDS _core)
execute_process(COMMAND ${Python_EXECUTABLE} -c "import numpy" RESULT_VARIABLE no_numpy OUTPUT_QUIET ERROR_QUIET)
if(no_numpy)
  message(STATUS "${Python_EXECUTABLE} has no NumPy, which webnn imports: no stub of webnn")
  return()
endif()
file(GLOB webnn_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/webnn/*.py)
add_custom_command(OUTPUT ${webnn_stub}
  COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${PROJECT_SOURCE_DIR}/python PYTHONDONTWRITEBYTECODE=1
          ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/stubs.py ${core_stub} ${webnn_stub}
  DEPENDS ${core_stub} ${PROJECT_SOURCE_DIR}/tools/stubs.py ${webnn_sources} VERBATIM)
add_custom_target(webnn_stub ALL DEPENDS ${webnn_stub})
add_dependencies(webnn_stub _core_stub)
