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
