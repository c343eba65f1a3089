# Compiler settings and output folders that every target shares.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(NOT EMSCRIPTEN)  # a module of WebAssembly is linked whole
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
# The static folder libraries are intermediates: build/lib holds only what users load.
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/archive)

# Designated initializers leave fields at their defaults on purpose, and g++ warns about each.
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-restrict)  # false alarms about std::string in g++ 12 (GCC bug 105651)
endif()

# What goes into a library from archives stays inside. Zig's linker has no such option, and its archives hide theirs by
# themselves.
if(NOT HEADRACE_PORTABLE)
  set(HEADRACE_HIDE_ARCHIVES -Wl,--exclude-libs,ALL)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

if(HEADRACE_COVERAGE)
  # Optimised enough for the tests to be quick. Atomic counters: kernels run in several threads.
  add_compile_options(--coverage -O1 -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

if(HEADRACE_ASAN AND HEADRACE_TSAN)
  message(FATAL_ERROR "HEADRACE_ASAN and HEADRACE_TSAN exclude each other: the compiler supports one at a time.")
elseif(HEADRACE_ASAN)
  set(sanitizers address,undefined)
elseif(HEADRACE_TSAN)
  set(sanitizers thread)
endif()
if(sanitizers)
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${sanitizers})
endif()

option(HEADRACE_QUICK "Optimise the kernels alone: half the time to compile" OFF)
if(HEADRACE_QUICK)
  add_compile_options(-Og -Wno-maybe-uninitialized)  # a sixth less to compile than -O1; g++ 12 warns of more there
endif()

option(HEADRACE_SMALL "Optimise the kernels for speed and all else for size: what pages fetch" OFF)
if(HEADRACE_SMALL)
  add_compile_options(-Os)
endif()

option(HEADRACE_UNITY "Compile a folder's sources several at a time: half the time from nothing, more after a change" ON)
