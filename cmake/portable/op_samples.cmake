# The tests of every op's samples, for systems where no other test is built: GoogleTest from the sources in
# HEADRACE_GOOGLETEST.
add_executable(op_samples ${PROJECT_SOURCE_DIR}/tests/engine/op_samples_test.cpp
  ${HEADRACE_GOOGLETEST}/googletest/src/gtest-all.cc ${HEADRACE_GOOGLETEST}/googlemock/src/gmock-all.cc
  ${HEADRACE_GOOGLETEST}/googlemock/src/gmock_main.cc)
foreach(kit googletest googlemock)
  target_include_directories(op_samples SYSTEM PRIVATE ${HEADRACE_GOOGLETEST}/${kit}/include ${HEADRACE_GOOGLETEST}/${kit})
endforeach()
target_include_directories(op_samples PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(op_samples PRIVATE headrace_all)
