# libexecutorch_ggml_runtime.so, the ExecuTorch delegate, built against the wheel: EXECUTORCH_DIR, or the package of the
# Python that builds. Its variables are used, because its targets exist only from CMake 3.28 on.
set(EXECUTORCH_DIR "" CACHE PATH "The package folder executorch; empty: the one of the Python that builds, if it has one")
set(config share/cmake/executorch-config.cmake)
set(package ${EXECUTORCH_DIR})
if(EXECUTORCH_DIR AND NOT EXISTS "${EXECUTORCH_DIR}/${config}")
  message(FATAL_ERROR "EXECUTORCH_DIR=${EXECUTORCH_DIR} has no ${config}: it should be the folder of the installed package, "
    "as python -c \"import executorch; print(*executorch.__path__)\" prints it (pip install executorch==1.5.1).")
elseif(NOT package AND SKBUILD)
  # By the place of packages: in pip's build environment the interpreter cannot import what is installed there.
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import sysconfig; print(sysconfig.get_path('purelib'))"
    OUTPUT_VARIABLE package OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(package ${package}/executorch)
elseif(NOT package AND NOT HEADRACE_PORTABLE)
  # Noticed by the next build when make executorch installs it.
  file(GLOB package CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/.venv/lib/python*/site-packages/executorch/${config})
  string(REPLACE "/${config}" "" package "${package}")
endif()
if(NOT EXISTS "${package}/${config}")
  message(STATUS "ExecuTorch is not installed: no delegate")
  return()
endif()
find_package(executorch 1.5 CONFIG QUIET PATHS ${package} NO_DEFAULT_PATH)
if(NOT executorch_FOUND)
  set(problem "ExecuTorch in ${package} is not 1.5 or has no C++ headers and libraries: no delegate")
  if(EXECUTORCH_DIR)
    message(FATAL_ERROR "${problem}. EXECUTORCH_DIR should name that of pip install executorch==1.5.1.")
  endif()
  message(STATUS "${problem}")
  return()
endif()
message(STATUS "ExecuTorch from ${package}")

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/doors/executorch/*.cpp)
add_library(executorch_ggml_runtime SHARED ${sources})
headrace_unity(executorch_ggml_runtime)
target_include_directories(executorch_ggml_runtime PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_include_directories(executorch_ggml_runtime SYSTEM PRIVATE ${EXECUTORCH_INCLUDE_DIRS})
target_compile_definitions(executorch_ggml_runtime PRIVATE ${EXECUTORCH_COMPILE_DEFINITIONS})
target_link_libraries(executorch_ggml_runtime PRIVATE headrace
  ${EXECUTORCH_RUNTIME_LIBRARY_DIR}/libexecutorch.so ${EXECUTORCH_RUNTIME_LIBRARY_DIR}/libexecutorch_threadpool.so)
set_target_properties(executorch_ggml_runtime PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
  BUILD_RPATH "$ORIGIN;${EXECUTORCH_RUNTIME_LIBRARY_DIR};${HEADRACE_GGML_LIB_DIR}")

# In the wheel, beside the package executorch_ggml: headrace and ExecuTorch are its neighbours.
set(neighbours "$ORIGIN/../headrace/${CMAKE_INSTALL_LIBDIR}" "$ORIGIN/../executorch/lib")
set(component python)
if(HEADRACE_PORTABLE)
  target_compile_definitions(executorch_ggml_runtime PRIVATE HEADRACE_PORTABLE)
  list(APPEND neighbours "$ORIGIN/../headrace/${CMAKE_INSTALL_LIBDIR}/headrace")  # the C++ library
  set(component delegate)  # of a wheel of its own
endif()
if(SKBUILD OR HEADRACE_PORTABLE)
  set_target_properties(executorch_ggml_runtime PROPERTIES INSTALL_RPATH "${neighbours}")
  install(TARGETS executorch_ggml_runtime LIBRARY DESTINATION ../executorch_ggml COMPONENT ${component})
endif()
