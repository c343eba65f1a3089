# libggml-mlx.so, a ggml backend on Apple's MLX: against the wheels mlx and mlx-cpu (make mlx installs them into .venv),
# or the MLX that MLX_DIR names. Part of "all" only with HEADRACE_MLX=ON; the target mlx_backend always builds it.
set(HEADRACE_MLX "AUTO" CACHE STRING "ON: the MLX backend must be built; AUTO: where MLX is found, by the target mlx_backend; OFF: never")
set_property(CACHE HEADRACE_MLX PROPERTY STRINGS AUTO ON OFF)
set(MLX_DIR "" CACHE PATH "The prefix of an installed MLX, or the package folder of its wheel; empty: the wheel in .venv")
if(HEADRACE_MLX STREQUAL "OFF")
  return()
endif()

set(mlx_config share/cmake/MLX/MLXConfig.cmake)
set(package ${MLX_DIR})
if(NOT package)
  # Noticed by the next build when make mlx installs it.
  file(GLOB package CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/.venv/lib/python*/site-packages/mlx/${mlx_config})
  string(REPLACE "/${mlx_config}" "" package "${package}")
endif()
find_path(mlx_config_dir MLXConfig.cmake PATHS ${package} NO_DEFAULT_PATH NO_CACHE
  PATH_SUFFIXES share/cmake/MLX lib/cmake/MLX lib64/cmake/MLX .)
if(NOT package OR NOT mlx_config_dir OR NOT HEADRACE_LLAMA_SOURCE)
  if(NOT HEADRACE_LLAMA_SOURCE)
    set(problem "The MLX backend needs ggml's own headers, which only the source tree has that tools/setup.py fetches")
  elseif(MLX_DIR)
    set(problem "MLX_DIR=${MLX_DIR} has no MLXConfig.cmake: it should be the prefix MLX was installed to, or the folder mlx "
      "of its wheel, in site-packages")
  else()
    set(problem "MLX is not installed (make mlx installs it)")
  endif()
  if(HEADRACE_MLX STREQUAL "ON" OR MLX_DIR)
    message(FATAL_ERROR ${problem})
  endif()
  message(STATUS ${problem} ": no MLX backend")
  return()
endif()
# The name MLX_DIR is find_package's own for the folder of the file.
set(mlx_prefix ${MLX_DIR})
set(MLX_DIR ${mlx_config_dir})
unset(CUDAToolkit_FOUND)  # what an MLX for CUDA, and no other, looks for
find_package(MLX 0.32.4 CONFIG REQUIRED)
set(MLX_DIR ${mlx_prefix})
message(STATUS "MLX from ${package}")

file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/mlx/*.cpp)
list(FILTER sources EXCLUDE REGEX "/mlx/gpu/")  # one of them, below
# These files of other folders alone: the kernels' library needs all of ggml, which the host brings.
foreach(file kernels/tensor/convert_f32 kernels/gemm/gemv_f32 base/machine_memory base/control_groups
       base/cpu_count)
  list(APPEND sources ${PROJECT_SOURCE_DIR}/src/${file}.cpp)
endforeach()
# What needs a GPU's toolkit: MLX's package tells which GPU it is for.
set(mlx_gpu ${PROJECT_SOURCE_DIR}/src/backends/mlx/gpu)
if(MLX_BUILD_METAL)
  # Metal's language is compiled when a program runs, from the text that the host's tests compile as C++.
  file(READ ${mlx_gpu}/write_unit.h write_unit)
  file(READ ${mlx_gpu}/write_kernels.metal write_kernels)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/mlx/backends/mlx/gpu/write_kernels_text.h @ONLY CONTENT
    "#pragma once\nconstexpr char kWriteKernels[] = R\"metal(@write_unit@@write_kernels@)metal\";\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mlx_gpu}/write_unit.h ${mlx_gpu}/write_kernels.metal)
  list(APPEND sources ${mlx_gpu}/metal.cpp)
elseif(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
  # By hand: CMake older than the toolkit does not know which standards its nvcc has.
  set(kernels ${CMAKE_CURRENT_BINARY_DIR}/mlx_cuda_kernels.o)
  add_custom_command(OUTPUT ${kernels}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -std=c++20 -O3 -arch=all-major -Xcompiler -fPIC -I${PROJECT_SOURCE_DIR}/src
      -c ${mlx_gpu}/cuda_kernels.cu -o ${kernels}
    DEPENDS ${mlx_gpu}/cuda_kernels.cu ${mlx_gpu}/cuda_kernels.h ${mlx_gpu}/write_unit.h VERBATIM)
  list(APPEND sources ${mlx_gpu}/cuda.cpp ${kernels})
  set(mlx_cuda ON)
else()
  if(CUDAToolkit_FOUND)
    message(STATUS "nvcc is not installed: writes in place run on the CPU's stream of MLX, not on the GPU")
  endif()
  list(APPEND sources ${mlx_gpu}/none.cpp)
endif()
# The tests link the static library, and so reach what the shared one hides.
add_library(headrace_backends_mlx STATIC EXCLUDE_FROM_ALL ${sources})
target_include_directories(headrace_backends_mlx PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_include_directories(headrace_backends_mlx SYSTEM PUBLIC ${HEADRACE_LLAMA_SOURCE}/ggml/src)
if(mlx_cuda)
  target_link_libraries(headrace_backends_mlx PUBLIC CUDA::cudart_static)
  target_include_directories(headrace_backends_mlx SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
elseif(MLX_BUILD_METAL)
  target_include_directories(headrace_backends_mlx PRIVATE ${PROJECT_BINARY_DIR}/generated/mlx)
  target_include_directories(headrace_backends_mlx SYSTEM PRIVATE ${MLX_INCLUDE_DIRS})
endif()
target_compile_definitions(headrace_backends_mlx
  PUBLIC GGML_SHARED
  PRIVATE GGML_BACKEND_DL GGML_BACKEND_SHARED GGML_BACKEND_BUILD
    HEADRACE_GGML_VERSION="${ggml_VERSION}" HEADRACE_GGML_COMMIT="${GGML_BUILD_COMMIT}")
# Ahead of libmlx, so that its products are found first: the wheel's own BLAS is the reference one.
find_library(HEADRACE_OPENBLAS openblas)
if(HEADRACE_OPENBLAS AND NOT APPLE)
  target_compile_definitions(headrace_backends_mlx PRIVATE HEADRACE_MLX_OPENBLAS)
  target_link_libraries(headrace_backends_mlx PUBLIC
    -Wl,--push-state,--no-as-needed ${HEADRACE_OPENBLAS} -Wl,--pop-state)
else()
  message(STATUS "OpenBLAS is not installed: the MLX backend multiplies with MLX's own BLAS")
endif()
target_link_libraries(headrace_backends_mlx PUBLIC mlx ggml::ggml-base Threads::Threads PRIVATE hwy::hwy)

add_library(ggml-mlx SHARED $<TARGET_OBJECTS:headrace_backends_mlx>)
if(NOT HEADRACE_MLX STREQUAL "ON")
  set_target_properties(ggml-mlx PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
target_link_libraries(ggml-mlx PRIVATE headrace_backends_mlx)
# What templates of MLX's leave in it is nobody else's business.
if(NOT APPLE)  # whose linker has no version scripts
  target_link_options(ggml-mlx PRIVATE -Wl,--exclude-libs,ALL
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/ggml-mlx.map)
endif()
# No path to our ggml: it takes the host's, which it compares with what it was built for.
get_target_property(mlx_location mlx IMPORTED_LOCATION_RELEASE)
if(NOT mlx_location)
  get_target_property(mlx_location mlx LOCATION)
endif()
get_filename_component(mlx_lib_dir ${mlx_location} DIRECTORY)
set_target_properties(ggml-mlx PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH ${mlx_lib_dir})
add_custom_target(mlx_backend DEPENDS ggml-mlx)

add_executable(bench_mlx EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/mlx_backend_graphs/graph_cost.cpp)
target_include_directories(bench_mlx PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(bench_mlx PRIVATE headrace_backends_mlx ggml::ggml ${CMAKE_DL_LIBS})
set_target_properties(bench_mlx PROPERTIES
  OUTPUT_NAME mlx_graph_cost RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/bench)
