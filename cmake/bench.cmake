# Every bench/*.cpp is a program of its own, build/bin/bench/<stem>. The target "benchmarks" builds them all; they are
# no part of "all".
add_custom_target(benchmarks)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cpp)
foreach(source IN LISTS sources)
  get_filename_component(stem ${source} NAME_WE)
  add_executable(bench_${stem} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(bench_${stem} PRIVATE headrace_all)
  set_target_properties(bench_${stem} PROPERTIES
    OUTPUT_NAME ${stem} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/bench)
  add_dependencies(benchmarks bench_${stem})
endforeach()
