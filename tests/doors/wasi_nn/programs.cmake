# The WASI-NN libraries as hosts meet them: opened with dlopen, and as C programs link them. Without language models
# the tests are there and say why they are skipped.
set(wasi_nn_dir ${CMAKE_CURRENT_LIST_DIR})
file(GLOB wasi_nn_tests CONFIGURE_DEPENDS ${wasi_nn_dir}/*_test.cpp)
list(FILTER wasi_nn_tests EXCLUDE REGEX "/(context|metadata)_[a-z_]*_test.cpp$")
add_executable(doors_wasi_nn_test ${wasi_nn_tests} ${wasi_nn_dir}/library.cpp)
target_link_libraries(doors_wasi_nn_test PRIVATE checkout GTest::gmock_main Threads::Threads ${CMAKE_DL_LIBS})
headrace_precompiled(doors_wasi_nn_test)
if(TARGET wasi_nn_backend)
  foreach(interface backend llamacpp)
    add_executable(wasi_nn_${interface}_header ${wasi_nn_dir}/${interface}_header.c)
    target_include_directories(wasi_nn_${interface}_header PRIVATE ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(wasi_nn_${interface}_header PRIVATE wasi_nn_${interface})
    target_compile_options(wasi_nn_${interface}_header PRIVATE -Wpedantic)
    set_target_properties(wasi_nn_${interface}_header PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
    add_dependencies(doors_wasi_nn_test wasi_nn_${interface}_header)
  endforeach()
  foreach(host wamr_host upstream_host upstream_cases)
    add_executable(wasi_nn_${host} ${wasi_nn_dir}/${host}.c)
    target_link_libraries(wasi_nn_${host} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
    set_target_properties(wasi_nn_${host} PROPERTIES C_STANDARD 11
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
    add_dependencies(doors_wasi_nn_test wasi_nn_${host})
  endforeach()
endif()
set_target_properties(doors_wasi_nn_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
gtest_discover_tests(doors_wasi_nn_test TEST_PREFIX doors/wasi_nn/ DISCOVERY_MODE PRE_TEST NO_PRETTY_TYPES
  NO_PRETTY_VALUES PROPERTIES TIMEOUT 120)

# What is behind the libraries' functions. A program of its own: the libraries have their own llama.cpp inside.
if(TARGET headrace_doors_wasi_nn)
  file(GLOB context_tests CONFIGURE_DEPENDS ${wasi_nn_dir}/context_*_test.cpp ${wasi_nn_dir}/metadata_*_test.cpp)
  set(stress ${wasi_nn_dir}/near_tie.cpp ${wasi_nn_dir}/context_stress.cpp)
  add_executable(wasi_nn_contexts_test ${context_tests} ${stress})
  target_link_libraries(wasi_nn_contexts_test PRIVATE headrace_doors_wasi_nn checkout GTest::gmock_main)
  headrace_precompiled(wasi_nn_contexts_test)
  set_target_properties(wasi_nn_contexts_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  gtest_discover_tests(wasi_nn_contexts_test TEST_PREFIX doors/wasi_nn/ DISCOVERY_MODE PRE_TEST NO_PRETTY_TYPES
    NO_PRETTY_VALUES PROPERTIES TIMEOUT 300)
  add_executable(llm_stress ${stress} ${wasi_nn_dir}/stress_main.cpp)
  target_link_libraries(llm_stress PRIVATE headrace_doors_wasi_nn checkout CLI11::CLI11 GTest::gtest)
  set_target_properties(llm_stress PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
endif()
