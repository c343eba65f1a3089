# headrace_llama_cpp: llama.cpp's static libraries, which tools/setup.py has built for this ggml.
set(HEADRACE_LLAMA_DIR "${HEADRACE_LLAMA_DIR}" CACHE PATH "The libraries and headers of cmake/llama, installed")
if(NOT HEADRACE_LLAMA_DIR)
  message(STATUS "llama.cpp is not set up: no language models")
  return()
endif()
add_library(headrace_llama_cpp INTERFACE)
target_include_directories(headrace_llama_cpp SYSTEM INTERFACE ${HEADRACE_LLAMA_DIR}/include)
target_link_libraries(headrace_llama_cpp INTERFACE
  ${HEADRACE_LLAMA_DIR}/lib/libllama-common.a ${HEADRACE_LLAMA_DIR}/lib/libllama-common-base.a
  ${HEADRACE_LLAMA_DIR}/lib/libllama.a ggml::ggml Threads::Threads)

# headrace_mtmd: its library that reads images, of cmake/mtmd, where that was built: a demo does without it.
set(HEADRACE_MTMD_DIR "${HEADRACE_MTMD_DIR}" CACHE PATH "The library and headers of cmake/mtmd, installed")
if(HEADRACE_MTMD_DIR)
  add_library(headrace_mtmd INTERFACE)
  target_include_directories(headrace_mtmd SYSTEM INTERFACE ${HEADRACE_MTMD_DIR}/include)
  target_link_libraries(headrace_mtmd INTERFACE
    ${HEADRACE_MTMD_DIR}/lib/libmtmd.a ${HEADRACE_MTMD_DIR}/lib/libvendor-hash.a headrace_llama_cpp)
endif()
