# Run by tools/test_device.py on the device that it names; built by make test-vulkan alone.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.cpp)
add_executable(device_test EXCLUDE_FROM_ALL ${sources})
target_link_libraries(device_test PRIVATE headrace_all checkout GTest::gmock_main)
headrace_precompiled(device_test)
set_target_properties(device_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
