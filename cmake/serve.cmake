# headrace_doors_serve: language models and encoders of texts behind HTTP, for the program; libheadrace_serve.so: the same
# for programs that bring their own HTTP, headrace/http_api.h. Both stand on the lanes' public headers alone.
target_compile_definitions(headrace_doors_serve PRIVATE HEADRACE_VERSION="${PROJECT_VERSION}")
target_link_libraries(headrace_doors_serve PRIVATE headrace_llm headrace_encoder)

# The page to chat with, as a text of the program.
set(page ${PROJECT_SOURCE_DIR}/src/doors/serve/api/page.html)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
file(READ ${page} HEADRACE_PAGE)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/serve/doors/serve/api/page_text.h @ONLY
  CONTENT "#pragma once\n#include <string_view>\n\nconstexpr std::string_view kPage = R\"page(@HEADRACE_PAGE@)page\";\n")
target_include_directories(headrace_doors_serve PRIVATE ${PROJECT_BINARY_DIR}/generated/serve)

add_library(headrace_serve SHARED $<TARGET_OBJECTS:headrace_doors_serve>)
headrace_take_base(headrace_serve)
headrace_lane(headrace_serve)
# fmt by file, as libheadrace.so has it: users of the installed package would need fmt's, too.
target_link_libraries(headrace_serve PUBLIC headrace headrace_llm_shared
  PRIVATE headrace_httplib $<TARGET_FILE:fmt::fmt> Threads::Threads)
target_link_options(headrace_serve PRIVATE ${HEADRACE_HIDE_ARCHIVES})
add_library(headrace::serve ALIAS headrace_serve)
set_target_properties(headrace_serve PROPERTIES EXPORT_NAME serve LINKER_LANGUAGE CXX
  BUILD_RPATH "$ORIGIN;${HEADRACE_GGML_LIB_DIR}")
