# libggml-vulkan.so and libggml-cuda.so beside the libraries that load them, where tools/setup.py has built them
# (HEADRACE_VULKAN=ON, HEADRACE_CUDA=ON). They are linked here, so that a build without them is the same but for these
# files.
foreach(backend IN ITEMS vulkan cuda)
  set(backend_link ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libggml-${backend}.so)
  string(TOUPPER ${backend} backend_name)
  if(HEADRACE_${backend_name}_LIBRARY)
    file(MAKE_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
    file(CREATE_LINK ${HEADRACE_${backend_name}_LIBRARY} ${backend_link} SYMBOLIC)
    message(STATUS "ggml's backend for ${backend_name}: ${HEADRACE_${backend_name}_LIBRARY}")
  else()
    file(REMOVE ${backend_link})
  endif()
endforeach()
