# headrace_unity(<target>): compiles its sources several at a time, if that is wanted. Not for Highway's kernels, which
# include themselves.
function(headrace_unity target)
  set(sources 8)
  if(HEADRACE_QUICK)
    set(sources 40)  # a third less to compile, and more of it after a change
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HEADRACE_UNITY} UNITY_BUILD_BATCH_SIZE ${sources})
endfunction()

# headrace_folder(<name> <dependency>...): the static library headrace_<name> from src/<name>/**.cpp.
# A dependency is another folder's name or any CMake target. A slash in <name> becomes an underscore.
# A folder without sources yields an INTERFACE library, so that its users link either way.
set(HEADRACE_FOLDER_TARGETS "" CACHE INTERNAL "")
function(headrace_folder name)
  string(REPLACE "/" "_" id ${name})
  set(target headrace_${id})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  if(sources)
    add_library(${target} STATIC ${sources})
    headrace_unity(${target})
    if(HEADRACE_RUNTIME)  # the lanes' libraries show it to each other and to the program
      set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET default)
    endif()
    set(scope PUBLIC)
    set(HEADRACE_FOLDER_TARGETS ${HEADRACE_FOLDER_TARGETS} ${target} CACHE INTERNAL "")
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  foreach(dependency IN LISTS ARGN)
    if(TARGET headrace_${dependency})
      set(dependency headrace_${dependency})
    elseif(NOT TARGET ${dependency})
      message(FATAL_ERROR "src/${name}: no folder or target is called ${dependency}")
    endif()
    target_link_libraries(${target} ${scope} ${dependency})
  endforeach()
endfunction()

# A wheel holds each folder once: its program and its libraries take from libheadrace.so, libheadrace_llm.so and
# libheadrace_serve.so what these show. Elsewhere the libraries show the public API alone, and the program holds what it uses.

# headrace_lane(<library>): one of the three. Its calls of itself stay inside, as if it showed nothing.
function(headrace_lane library)
  if(HEADRACE_RUNTIME)
    target_link_options(${library} PRIVATE
      -Wl,-Bsymbolic -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/portable/lane.map)
  endif()
endfunction()

# headrace_take_base(<library>): src/base for a library beside libheadrace.so; in a wheel that one's, so that there is one log.
function(headrace_take_base library)
  if(HEADRACE_RUNTIME)
    target_link_libraries(${library} PRIVATE headrace)
  else()
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:headrace_base>)
  endif()
endfunction()

# headrace_folder_elsewhere(<name> [<dependency>...]): a folder whose target other lines of CMake make. Only
# tools/check_includes.py reads what it may include.
function(headrace_folder_elsewhere)
endfunction()

# headrace_rooms(<name> <subfolder>...): the order of a folder's subfolders, and of its own files, which are ".": each
# includes only what stands before it. Only tools/check_includes.py reads it.
function(headrace_rooms)
endfunction()
