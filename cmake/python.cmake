# The extensions headrace._core, headrace._llm and headrace._serve, built in place so that an import from the checkout finds them.
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
if(HEADRACE_PORTABLE)
  include(${PROJECT_SOURCE_DIR}/cmake/portable/python.cmake)
else()
  find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
endif()
execute_process(
  COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)
# It reaches into nanobind's own objects.
set_source_files_properties(${PROJECT_SOURCE_DIR}/python/src/argument_errors.cpp PROPERTIES
  COMPILE_OPTIONS "-isystem;${NB_DIR}/src;-isystem;${NB_DIR}/ext/robin_map/include")

nanobind_add_module(_core STABLE_ABI NB_STATIC NOMINSIZE ${sources})
target_link_libraries(_core PRIVATE headrace)
target_include_directories(_core PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(_core PRIVATE HEADRACE_VERSION="${PROJECT_VERSION}")
set(extensions _core)
if(TARGET headrace_llm_shared)
  set(every_extension ${PROJECT_SOURCE_DIR}/python/src/argument_errors.cpp)
  # A module of its own: llama.cpp is loaded where language models are used. Its domain keeps errors apart, which become
  # other exceptions than _core's.
  file(GLOB llm_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/llm/*.cpp)
  nanobind_add_module(_llm STABLE_ABI NB_STATIC NOMINSIZE NB_DOMAIN headrace_llm ${llm_sources} ${every_extension})
  target_include_directories(_llm PRIVATE ${PROJECT_SOURCE_DIR}/python/src)
  target_link_libraries(_llm PRIVATE headrace_llm_shared)
  # The APIs of `headrace serve`. What it shares with _llm is compiled for both: neither loads the other.
  file(GLOB serve_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/serve/*.cpp)
  set(serve_shared errors.cpp parameters.cpp waiting.cpp)
  list(TRANSFORM serve_shared PREPEND ${PROJECT_SOURCE_DIR}/python/src/llm/)
  nanobind_add_module(_serve STABLE_ABI NB_STATIC NOMINSIZE NB_DOMAIN headrace_serve ${serve_sources} ${serve_shared} ${every_extension})
  target_include_directories(_serve PRIVATE ${PROJECT_SOURCE_DIR}/python/src ${PROJECT_SOURCE_DIR}/python/src/llm)
  target_link_libraries(_serve PRIVATE headrace_serve)
  list(APPEND extensions _llm _serve)
endif()
# The packages' folder: the checkout's own, or for a wheel a copy, since the checkout's extension must stay as it is.
set(packages ${PROJECT_SOURCE_DIR}/python)
if(SKBUILD OR HEADRACE_PORTABLE)
  set(packages ${PROJECT_BINARY_DIR}/python)
endif()
if(SKBUILD)
  file(COPY ${PROJECT_SOURCE_DIR}/python/headrace ${PROJECT_SOURCE_DIR}/python/webnn DESTINATION ${packages}
    FILES_MATCHING PATTERN "*.py")
endif()
if(SKBUILD OR HEADRACE_PORTABLE)
  # In the wheel, CMake's prefix is the package headrace.
  set_target_properties(${extensions} PROPERTIES
    INSTALL_RPATH "$ORIGIN/${CMAKE_INSTALL_LIBDIR};$ORIGIN/${CMAKE_INSTALL_LIBDIR}/headrace")
  install(TARGETS ${extensions} LIBRARY DESTINATION . COMPONENT python)
endif()
foreach(target IN LISTS extensions ITEMS nanobind-static nanobind-static-abi3)
  if(TARGET ${target})
    headrace_unity(${target})
  endif()
endforeach()
set_target_properties(${extensions} PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${packages}/headrace
  BUILD_RPATH "${PROJECT_BINARY_DIR}/lib;${HEADRACE_GGML_LIB_DIR}")
if(HEADRACE_PORTABLE)
  return()  # the stubs are made by importing the modules: tools/wheels takes those of this machine's build
endif()

# Type stubs, beside the modules: nanobind's of the native ones, ours of what Python adds to their classes.
set(core_stub ${packages}/headrace/_core.pyi)
set(webnn_stub ${packages}/webnn/__init__.pyi)
set(native_stubs "")
foreach(extension IN LISTS extensions)
  set(stub ${packages}/headrace/${extension}.pyi)
  nanobind_add_stub(${extension}_stub MODULE headrace.${extension} OUTPUT ${stub}
    PYTHON_PATH ${packages} DEPENDS ${extensions})
  list(APPEND native_stubs ${stub})
endforeach()
# The interpreter keeps the environment that it is run in: there pip says where a build's requirements are.
set(stubs ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/stubs.py)
execute_process(COMMAND ${stubs} --check RESULT_VARIABLE lacking ERROR_VARIABLE reason ERROR_STRIP_TRAILING_WHITESPACE)
if(lacking AND SKBUILD)
  message(FATAL_ERROR "${reason}. Build with pip's isolation, or install what pyproject.toml requires of a build.")
elseif(lacking)
  message(STATUS "${reason}: no stub of webnn")
  return()
endif()
file(GLOB webnn_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/webnn/*.py)
add_custom_command(OUTPUT ${webnn_stub}
  COMMAND ${stubs} --packages ${packages} --core ${core_stub} --output ${webnn_stub}
  DEPENDS ${core_stub} ${PROJECT_SOURCE_DIR}/tools/stubs.py ${webnn_sources} VERBATIM)
add_custom_target(webnn_stub ALL DEPENDS ${webnn_stub})
foreach(extension IN LISTS extensions)
  add_dependencies(webnn_stub ${extension}_stub)
endforeach()
if(SKBUILD)
  install(FILES ${native_stubs} DESTINATION . COMPONENT python)
  install(FILES ${webnn_stub} DESTINATION ../webnn COMPONENT python)
endif()
