# Programs of make test-mlx; like the backend, no part of "all" unless HEADRACE_MLX=ON. They are run by
# tests/backends/mlx/test_native.py, not by ctest, which could not tell one that was not built from one that fails.
set(mlx_programs "")
function(mlx_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE checkout)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests EXCLUDE_FROM_ALL ON)
  set(mlx_programs ${mlx_programs} ${name} PARENT_SCOPE)
endfunction()

set(sources "")
foreach(folder . host memory ops)
  file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/backends/mlx/${folder}/*_test.cpp)
  list(APPEND sources ${found})
endforeach()
mlx_program(backends_mlx_test ${sources})
target_link_libraries(backends_mlx_test PRIVATE headrace_backends_mlx ggml::ggml GTest::gmock_main)

# The backend without one of its rules, which the tests of whole models have to notice: a definition of the test's is
# linked ahead of the backend's own.
foreach(control outputs_alone ordinary_stream)
  add_library(mlx_${control} MODULE EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/backends/mlx/controls/${control}.cpp)
  target_link_options(mlx_${control} PRIVATE -Wl,-u,ggml_backend_init)
  target_link_libraries(mlx_${control} PRIVATE headrace_backends_mlx)
endforeach()

if(TARGET headrace_llama_cpp)
  set(models ${PROJECT_SOURCE_DIR}/tests/backends/mlx/models)
  mlx_program(mlx_models_test ${models}/models_test.cpp ${models}/controls_test.cpp ${models}/generated_model.cpp)
  target_compile_definitions(mlx_models_test PRIVATE
    HEADRACE_MLX_LIBRARY="$<TARGET_FILE:ggml-mlx>"
    HEADRACE_MLX_OUTPUTS_ALONE="$<TARGET_FILE:mlx_outputs_alone>"
    HEADRACE_MLX_ORDINARY_STREAM="$<TARGET_FILE:mlx_ordinary_stream>")
  target_include_directories(mlx_models_test SYSTEM PRIVATE ${HEADRACE_LLAMA_SOURCE}/ggml/src)
  target_link_libraries(mlx_models_test PRIVATE headrace_llama_cpp GTest::gmock_main)
  add_dependencies(mlx_models_test ggml-mlx mlx_outputs_alone mlx_ordinary_stream)
  # llama.cpp's own program, for which tools/setup.py has no use elsewhere.
  mlx_program(llama-perplexity ${HEADRACE_LLAMA_SOURCE}/tools/perplexity/main.cpp
    ${HEADRACE_LLAMA_SOURCE}/tools/perplexity/perplexity.cpp)
  target_compile_options(llama-perplexity PRIVATE -w)
  target_include_directories(llama-perplexity PRIVATE ${HEADRACE_LLAMA_DIR}/include/common)
  target_link_libraries(llama-perplexity PRIVATE headrace_llama_cpp)
endif()

mlx_program(mlx_graphs_test ${PROJECT_SOURCE_DIR}/tests/backends/mlx/graphs/graphs_test.cpp)
target_compile_definitions(mlx_graphs_test PRIVATE HEADRACE_MLX_LIBRARY="$<TARGET_FILE:ggml-mlx>")
target_include_directories(mlx_graphs_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/engine)
target_link_libraries(mlx_graphs_test PRIVATE headrace_all GTest::gmock_main)
add_dependencies(mlx_graphs_test ggml-mlx)

# ggml's own test of a backend, op by op against its CPU.
mlx_program(test-backend-ops ${HEADRACE_LLAMA_SOURCE}/tests/test-backend-ops.cpp)
target_compile_options(test-backend-ops PRIVATE -O1 -w)  # compiling it takes a third of the time of -O3
target_link_libraries(test-backend-ops PRIVATE ggml::ggml)

add_custom_target(mlx_tests DEPENDS mlx_backend ${mlx_programs})
