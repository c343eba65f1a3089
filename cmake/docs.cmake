# The pages that follow a table are written by the program that knows the table. A failed run must not leave an empty page
# that looks up to date.
set(pages)
function(headrace_page name)
  set(page ${PROJECT_SOURCE_DIR}/docs/${name})
  add_custom_command(OUTPUT ${page}
    COMMAND headrace_cli ${ARGN} > ${PROJECT_BINARY_DIR}/${name}
    COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_BINARY_DIR}/${name} ${page}
    DEPENDS headrace_cli
    COMMENT "docs/${name}" VERBATIM)
  set(pages ${pages} ${page} PARENT_SCOPE)
endfunction()
headrace_page(implementation-status.md ops --webnn)
if(TARGET headrace_llm)
  headrace_page(parameters.md parameters)
endif()
add_custom_target(docs ALL DEPENDS ${pages})
