# headrace_httplib: the HTTP library that llama.cpp vendors, compiled for programs that serve.
add_library(headrace_httplib STATIC ${HEADRACE_LLAMA_DIR}/include/cpp-httplib/httplib.cpp)
target_compile_options(headrace_httplib PRIVATE -w)
set(httplib_limits CPPHTTPLIB_LISTEN_BACKLOG=1024 CPPHTTPLIB_FORM_URL_ENCODED_PAYLOAD_MAX_LENGTH=16777216
  CPPHTTPLIB_KEEPALIVE_TIMEOUT_CHECK_INTERVAL_USECOND=200000)  # how often a connection that rests looks for the server's end
target_compile_definitions(headrace_httplib PUBLIC ${httplib_limits})
target_include_directories(headrace_httplib SYSTEM PUBLIC ${HEADRACE_LLAMA_DIR}/include)
target_link_libraries(headrace_httplib PUBLIC Threads::Threads)
