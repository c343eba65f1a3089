# Node's addon as WebAssembly, for a browser's workers: node/src on Node-API as node/src/web has it in JavaScript. Four modules
# of the same objects: with threads, for pages that are cross-origin isolated, and without; each once more with products by
# relaxed SIMD, which not every browser compiles.
set(web_folder ${PROJECT_SOURCE_DIR}/node/native/web)
set(library ${PROJECT_SOURCE_DIR}/node/src/web/node_api_library.js)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/node/src/*.cpp)
add_library(web_addon OBJECT EXCLUDE_FROM_ALL ${sources})
target_compile_features(web_addon PRIVATE cxx_std_20)
# Its functions are those of the library, not a host's.
target_compile_definitions(web_addon PRIVATE NAPI_VERSION=8 NAPI_EXTERN=)
target_include_directories(web_addon SYSTEM PRIVATE ${HEADRACE_NODE_HEADERS})
target_link_libraries(web_addon PUBLIC headrace_all)
headrace_unity(web_addon)

# Above 2 GiB pointers are negative to JavaScript, which Emscripten then knows.
set(link_options -fwasm-exceptions -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sINITIAL_MEMORY=32MB -sSTACK_SIZE=1MB)

function(headrace_web_module name)
  add_executable(${name} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:web_addon>)
  target_link_libraries(${name} PRIVATE headrace_all)
  target_link_options(${name} PRIVATE ${link_options} ${ARGN} --no-entry --js-library ${library}
    -sMODULARIZE -sEXPORT_ES6 -sENVIRONMENT=web,worker,node -sINCOMING_MODULE_JS_API=instantiateWasm,onAbort,print,printErr
    -sEXPORTED_FUNCTIONS=_malloc,_free,_napi_register_wasm_v1 -sEXPORTED_RUNTIME_METHODS=napi,FS -sFORCE_FILESYSTEM
    -sABORTING_MALLOC=0 -sEXIT_RUNTIME=0)
  set_target_properties(${name} PROPERTIES SUFFIX .mjs RUNTIME_OUTPUT_DIRECTORY ${web_folder} LINK_DEPENDS ${library})
endfunction()
set(threads -pthread "-sPTHREAD_POOL_SIZE=Module['threads']" -sPTHREAD_POOL_SIZE_STRICT=2)
headrace_web_module(headrace-threads ${threads})
headrace_web_module(headrace-single -no-pthread)
headrace_web_module(headrace-threads-relaxed ${threads} -mrelaxed-simd)
headrace_web_module(headrace-single-relaxed -no-pthread -mrelaxed-simd)
foreach(name headrace-threads-relaxed headrace-single-relaxed)
  # What these define is not taken from the library of kernels.
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:headrace_kernels_relaxed>)
endforeach()
add_custom_target(web_modules
  DEPENDS headrace-threads headrace-single headrace-threads-relaxed headrace-single-relaxed)

# Tests of C++ that run in Node.
add_custom_target(web_tests)
function(headrace_web_test name)
  add_executable(web_${name} EXCLUDE_FROM_ALL ${ARGN})
  target_link_libraries(web_${name} PRIVATE headrace_all gtest)
  target_include_directories(web_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_options(web_${name} PRIVATE ${link_options} -pthread -sPTHREAD_POOL_SIZE=8 -sEXIT_RUNTIME -sENVIRONMENT=node)
  set_target_properties(web_${name} PROPERTIES SUFFIX .cjs RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_dependencies(web_tests web_${name})
endfunction()
if(HEADRACE_GOOGLETEST)
  add_library(gtest STATIC EXCLUDE_FROM_ALL ${HEADRACE_GOOGLETEST}/googletest/src/gtest-all.cc
    ${HEADRACE_GOOGLETEST}/googlemock/src/gmock-all.cc ${HEADRACE_GOOGLETEST}/googlemock/src/gmock_main.cc)
  foreach(kit googletest googlemock)
    target_include_directories(gtest SYSTEM PUBLIC ${HEADRACE_GOOGLETEST}/${kit}/include PRIVATE ${HEADRACE_GOOGLETEST}/${kit})
  endforeach()
  headrace_web_test(op_samples ${PROJECT_SOURCE_DIR}/tests/engine/op_samples_test.cpp)
  file(GLOB pass_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/passes/*_test.cpp)
  headrace_web_test(passes ${pass_tests})
endif()
