# What a build for other machines takes in place of this machine's packages: headers alone, which tools/wheels links into
# HEADRACE_HEADERS, and Highway and fmt from the sources in HEADRACE_HIGHWAY and HEADRACE_FMT.
find_package(Threads REQUIRED)
foreach(package flatbuffers::flatbuffers nlohmann_json::nlohmann_json CLI11::CLI11)
  add_library(${package} INTERFACE IMPORTED)
  target_include_directories(${package} SYSTEM INTERFACE ${HEADRACE_HEADERS})
endforeach()
set(HEADRACE_XXHASH_INCLUDE_DIR ${HEADRACE_HEADERS})
find_program(HEADRACE_FLATC flatc REQUIRED)
add_executable(flatbuffers::flatc IMPORTED)
set_property(TARGET flatbuffers::flatc PROPERTY IMPORTED_LOCATION ${HEADRACE_FLATC})

# headrace_static(<name> <include folder> <source>...): the target <name>::<name>, which shows nothing of itself.
function(headrace_static name folder)
  add_library(${name} STATIC ${ARGN})
  add_library(${name}::${name} ALIAS ${name})
  target_include_directories(${name} SYSTEM PUBLIC ${folder})
  target_compile_options(${name} PRIVATE -w)
endfunction()
headrace_static(fmt ${HEADRACE_FMT}/include ${HEADRACE_FMT}/src/format.cc ${HEADRACE_FMT}/src/os.cc)
headrace_static(hwy ${HEADRACE_HIGHWAY}
  ${HEADRACE_HIGHWAY}/hwy/aligned_allocator.cc ${HEADRACE_HIGHWAY}/hwy/per_target.cc ${HEADRACE_HIGHWAY}/hwy/print.cc
  ${HEADRACE_HIGHWAY}/hwy/targets.cc)

# Zig's linker does not know the option, and finds what our libraries need by the run paths that they have.
set(CMAKE_SHARED_LIBRARY_RPATH_LINK_C_FLAG "")
set(CMAKE_SHARED_LIBRARY_RPATH_LINK_CXX_FLAG "")
