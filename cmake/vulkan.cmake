# libggml-vulkan.so beside the libraries that load it, where tools/setup.py has built it (HEADRACE_VULKAN=ON). It is
# linked here, so that a build without it is the same but for this file.
set(vulkan_link ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libggml-vulkan.so)
if(HEADRACE_VULKAN_LIBRARY)
  file(MAKE_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
  file(CREATE_LINK ${HEADRACE_VULKAN_LIBRARY} ${vulkan_link} SYMBOLIC)
  message(STATUS "ggml's Vulkan backend: ${HEADRACE_VULKAN_LIBRARY}")
else()
  file(REMOVE ${vulkan_link})
endif()
