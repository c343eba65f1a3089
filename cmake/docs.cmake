# docs/implementation-status.md follows the op catalog, so the program that knows the catalog writes it. A failed run must
# not leave an empty page that looks up to date.
set(page ${PROJECT_SOURCE_DIR}/docs/implementation-status.md)
add_custom_command(OUTPUT ${page}
  COMMAND headrace_cli ops --webnn > ${PROJECT_BINARY_DIR}/implementation-status.md
  COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_BINARY_DIR}/implementation-status.md ${page}
  DEPENDS headrace_cli
  COMMENT "docs/implementation-status.md" VERBATIM)
add_custom_target(docs ALL DEPENDS ${page})
