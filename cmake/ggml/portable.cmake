# ggml for a wheel. Its libraries have names of our own, so that the loader never takes them for those of an installed
# llama.cpp. The backends keep their files' names, by which ggml finds them, and have no other.
foreach(library ggml ggml-base)
  set_property(TARGET ${library} PROPERTY OUTPUT_NAME headrace-${library})
  # CMake's package of ggml looks for the usual name.
  install(CODE "file(CREATE_LINK libheadrace-${library}.so \${CMAKE_INSTALL_PREFIX}/lib/lib${library}.so SYMBOLIC)")
endforeach()
foreach(backend IN LISTS GGML_AVAILABLE_BACKENDS)
  set_property(TARGET ${backend} PROPERTY NO_SONAME ON)
endforeach()
foreach(library ggml ggml-base ${GGML_AVAILABLE_BACKENDS})
  set_property(TARGET ${library} PROPERTY VERSION)
  set_property(TARGET ${library} PROPERTY SOVERSION)
  # Zig takes features of ARM in the words of LLVM only.
  get_target_property(options ${library} COMPILE_OPTIONS)
  if(options MATCHES "-march=armv")
    string(REGEX REPLACE "-march=armv8-a" "-mcpu=generic" options "${options}")
    string(REGEX REPLACE "-march=armv([89])\\.([0-9])-a" "-mcpu=generic+v\\1_\\2a" options "${options}")
    string(REPLACE "+fp16" "+fullfp16" options "${options}")
    set_property(TARGET ${library} PROPERTY COMPILE_OPTIONS ${options})
  endif()
endforeach()
