# libheadrace_llm.so, the engine with llama.cpp inside behind headrace/language_model.h. Installed it is the target
# headrace::llm.
add_library(headrace_llm_shared SHARED $<TARGET_OBJECTS:headrace_llm>)
headrace_take_base(headrace_llm_shared)
headrace_lane(headrace_llm_shared)
if(HEADRACE_RUNTIME)
  # What headrace_llm links but the folders, of which libheadrace.so has one each; and the functions that llama.cpp calls,
  # which have ggml's names and are shown to nobody.
  target_link_libraries(headrace_llm_shared PRIVATE headrace_llama_cpp $<TARGET_NAME_IF_EXISTS:headrace_mtmd> ggml::ggml fmt::fmt)
  target_sources(headrace_llm_shared PRIVATE ${PROJECT_SOURCE_DIR}/src/loading/cpu_functions.cpp)
  target_compile_definitions(headrace_llm_shared PRIVATE HEADRACE_PORTABLE)
  target_include_directories(headrace_llm_shared PRIVATE ${PROJECT_SOURCE_DIR}/src)
else()
  target_link_libraries(headrace_llm_shared PRIVATE headrace_llm)
endif()
target_include_directories(headrace_llm_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_features(headrace_llm_shared INTERFACE cxx_std_20)
add_library(headrace::llm ALIAS headrace_llm_shared)
set_target_properties(headrace_llm_shared PROPERTIES OUTPUT_NAME headrace_llm EXPORT_NAME llm BUILD_RPATH "$ORIGIN;${HEADRACE_GGML_LIB_DIR}")
# Hosts bring llama.cpp or ggml of their own: what is inside stays inside.
target_link_options(headrace_llm_shared PRIVATE ${HEADRACE_HIDE_ARCHIVES})

# The libraries that hosts load, on the two lanes' libraries: one engine serves all of them in a process.
file(GLOB door_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/doors/wasi_nn/*.cpp)
list(FILTER door_sources EXCLUDE REGEX "_abi.cpp$")
add_library(headrace_doors_wasi_nn STATIC ${door_sources})
headrace_unity(headrace_doors_wasi_nn)
target_link_libraries(headrace_doors_wasi_nn PUBLIC headrace_llm headrace_engine headrace_doors_webnn headrace_doors_onnx)

foreach(interface backend llamacpp onnx)
  string(REPLACE onnx llamacpp source ${interface})  # WAMR looks for a library by each encoding's name
  set(abi ${PROJECT_SOURCE_DIR}/src/doors/wasi_nn/${source}_abi.cpp)
  if(source STREQUAL llamacpp)
    list(APPEND abi ${PROJECT_SOURCE_DIR}/src/doors/wasi_nn/guest_calls_abi.cpp
      ${PROJECT_SOURCE_DIR}/src/doors/wasi_nn/components_abi.cpp)
  endif()
  add_library(wasi_nn_${interface} SHARED ${abi} $<TARGET_OBJECTS:headrace_doors_wasi_nn>)
  headrace_take_base(wasi_nn_${interface})
  target_include_directories(wasi_nn_${interface} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(wasi_nn_${interface} PRIVATE headrace headrace_llm_shared $<TARGET_FILE:fmt::fmt> Threads::Threads)
  target_include_directories(wasi_nn_${interface} PRIVATE
    $<TARGET_PROPERTY:headrace_llm,INTERFACE_INCLUDE_DIRECTORIES>)
  # WAMR closes and opens the library again while its threads run.
  target_link_options(wasi_nn_${interface} PRIVATE -Wl,-z,nodelete ${HEADRACE_HIDE_ARCHIVES})
  set_target_properties(wasi_nn_${interface} PROPERTIES LINKER_LANGUAGE CXX
    BUILD_RPATH "$ORIGIN;${HEADRACE_GGML_LIB_DIR}")
endforeach()

# Where users of the backends that came before look for it.
add_custom_command(TARGET wasi_nn_backend POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E create_symlink lib/$<TARGET_FILE_NAME:wasi_nn_backend>
          ${PROJECT_BINARY_DIR}/$<TARGET_FILE_NAME:wasi_nn_backend>)
