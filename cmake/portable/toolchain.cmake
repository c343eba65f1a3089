# Zig's clang for Linux with glibc 2.28 (manylinux_2_28), Windows or macOS (HEADRACE_SYSTEM, as CMake names them), on any
# machine. tools/wheels writes the programs cc, c++, ar and ranlib into HEADRACE_ZIG; HEADRACE_ARCH is x86_64 or aarch64.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HEADRACE_ZIG HEADRACE_SYSTEM HEADRACE_ARCH HEADRACE_RUNTIME)
set(CMAKE_SYSTEM_NAME ${HEADRACE_SYSTEM})
set(CMAKE_SYSTEM_PROCESSOR ${HEADRACE_ARCH})
set(CMAKE_C_COMPILER ${HEADRACE_ZIG}/cc)
set(CMAKE_CXX_COMPILER ${HEADRACE_ZIG}/c++)
set(CMAKE_ASM_COMPILER ${HEADRACE_ZIG}/cc)
set(CMAKE_AR ${HEADRACE_ZIG}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${HEADRACE_ZIG}/ranlib CACHE FILEPATH "")

set(flags "-fno-sanitize=undefined")
if(HEADRACE_ARCH STREQUAL "x86_64")
  # clang 18 split AVX-512, and neither ggml nor Highway 1.0 asks for the half with long vectors.
  string(APPEND flags " -mevex512")
endif()
if(NOT HEADRACE_SYSTEM STREQUAL "Linux")
  # Programs and libraries have a C++ library each there, and nothing passes between two of them.
  set(CMAKE_C_FLAGS_INIT "${flags}")
  set(CMAKE_CXX_FLAGS_INIT "${flags}")
  set(CMAKE_RC_COMPILER ${HEADRACE_ZIG}/rc)
  return()
endif()
# Zig hides all of its C++ library, which it links into each of our libraries: an exception of one would be unknown in
# another. Instead all share the one of cmake/portable/runtime. Names decide whether two types are one, as in GNU's library.
set(runtime "-U_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS -U_LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS")
string(APPEND runtime " -D_LIBCPP_TYPEINFO_COMPARISON_IMPLEMENTATION=2")
# With it a std::variant lies in memory as GNU's library has it, which ExecuTorch's package is made with.
string(APPEND runtime " -D_LIBCPP_ABI_VARIANT_INDEX_TYPE_OPTIMIZATION")
set(CMAKE_C_FLAGS_INIT "${flags}")
set(CMAKE_CXX_FLAGS_INIT "${flags} ${runtime}")
foreach(kind SHARED MODULE EXE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-nostdlib++ -Wl,-s")
endforeach()
if(HEADRACE_RUNTIME)
  set(CMAKE_CXX_STANDARD_LIBRARIES_INIT ${HEADRACE_RUNTIME}/libheadrace-c++.so)
endif()
