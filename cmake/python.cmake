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
if(SKBUILD)
  # The checkout's own extension must stay as it is. In the wheel, CMake's prefix is the package headrace.
  set_target_properties(_core PROPERTIES INSTALL_RPATH "$ORIGIN/${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS _core LIBRARY DESTINATION . COMPONENT python)
else()
  set_target_properties(_core PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_SOURCE_DIR}/python/headrace
    BUILD_RPATH "${PROJECT_BINARY_DIR}/lib;${HEADRACE_GGML_LIB_DIR}")
endif()
