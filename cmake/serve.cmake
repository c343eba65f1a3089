# headrace_doors_serve: language models and encoders of texts behind HTTP, for the program. It stands on their public
# headers alone.
target_compile_definitions(headrace_doors_serve PRIVATE HEADRACE_VERSION="${PROJECT_VERSION}")
target_link_libraries(headrace_doors_serve PRIVATE headrace_llm headrace_encoder)

# The page to chat with, as a text of the program.
set(page ${PROJECT_SOURCE_DIR}/src/doors/serve/api/page.html)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
file(READ ${page} HEADRACE_PAGE)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/serve/doors/serve/api/page_text.h @ONLY
  CONTENT "#pragma once\n#include <string_view>\n\nconstexpr std::string_view kPage = R\"page(@HEADRACE_PAGE@)page\";\n")
target_include_directories(headrace_doors_serve PRIVATE ${PROJECT_BINARY_DIR}/generated/serve)
