# pip builds a wheel without the makefile: what that sets up in a checkout is set up here.
if(SKBUILD)
  execute_process(
    COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/setup.py --wheel ${PROJECT_BINARY_DIR}
    COMMAND_ERROR_IS_FATAL ANY)
endif()

if(HEADRACE_PORTABLE)
  include(${PROJECT_SOURCE_DIR}/cmake/portable/packages.cmake)
else()
  find_package(Threads REQUIRED)
  find_package(fmt REQUIRED)
  find_package(FlatBuffers CONFIG REQUIRED NAMES FlatBuffers flatbuffers)  # the name changed in 23.x
  find_package(hwy CONFIG REQUIRED)
  find_path(HEADRACE_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
  find_package(nlohmann_json CONFIG REQUIRED)
endif()

# A llama.cpp tree that is named here: its ggml is built, once per user, and used by this build folder.
set(LLAMA_CPP_DIR "" CACHE PATH "A llama.cpp tree to build ggml from; empty: what tools/setup.py has set up")
if(LLAMA_CPP_DIR)
  if(NOT EXISTS "${LLAMA_CPP_DIR}/ggml/CMakeLists.txt")
    message(FATAL_ERROR "LLAMA_CPP_DIR=${LLAMA_CPP_DIR} has no ggml/CMakeLists.txt: it should be a llama.cpp tree.")
  endif()
  find_program(HEADRACE_PYTHON3 python3 REQUIRED)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env --unset=GGML_DIR --unset=HEADRACE_GGML --unset=CMAKE_PREFIX_PATH LLAMA_CPP_DIR=${LLAMA_CPP_DIR}
            ${HEADRACE_PYTHON3} ${PROJECT_SOURCE_DIR}/tools/setup.py --ggml ${PROJECT_BINARY_DIR}
    COMMAND_ERROR_IS_FATAL ANY)
endif()

# ggml: the targets ggml::ggml, ggml::ggml-base and one per backend, such as ggml::ggml-cpu and ggml::ggml-rpc.
# tools/setup.py writes setup.cmake; a build folder of its own (build/tsan) goes before the common one.
include(${PROJECT_BINARY_DIR}/setup.cmake OPTIONAL RESULT_VARIABLE setup)
if(NOT setup)
  include(${PROJECT_SOURCE_DIR}/build/setup.cmake OPTIONAL RESULT_VARIABLE setup)
endif()
option(HEADRACE_CUDA "Build ggml's CUDA backend, too, as a library that is loaded; needs the CUDA toolkit" OFF)
option(HEADRACE_VULKAN "Build ggml's Vulkan backend, too; needs Vulkan's headers and loader, SPIR-V's headers and glslc" OFF)
if(HEADRACE_GGML STREQUAL "auto" AND (HEADRACE_CUDA OR HEADRACE_VULKAN OR NOT setup))
  # A plain `cmake ..`: what make sets up is set up here, without PyTorch.
  find_program(HEADRACE_PYTHON3 python3 REQUIRED)
  message(STATUS "Setting up ggml and llama.cpp (minutes the first time)")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env EXECUTORCH=0 HEADRACE_CUDA=${HEADRACE_CUDA} HEADRACE_VULKAN=${HEADRACE_VULKAN}
            ${HEADRACE_PYTHON3} ${PROJECT_SOURCE_DIR}/tools/setup.py
    COMMAND_ERROR_IS_FATAL ANY)
  include(${PROJECT_SOURCE_DIR}/build/setup.cmake)
endif()
# find_package keeps its first answer in the cache, so another choice has to forget it.
if(DEFINED HEADRACE_GGML_CHOICE AND NOT HEADRACE_GGML_CHOICE STREQUAL "${HEADRACE_GGML} ${HEADRACE_GGML_DIR}")
  unset(ggml_DIR CACHE)
endif()
set(HEADRACE_GGML_CHOICE "${HEADRACE_GGML} ${HEADRACE_GGML_DIR}" CACHE INTERNAL "")
if(HEADRACE_GGML STREQUAL "system")
  find_package(ggml CONFIG REQUIRED)
elseif(HEADRACE_GGML_DIR)
  find_package(ggml CONFIG REQUIRED PATHS ${HEADRACE_GGML_DIR} NO_DEFAULT_PATH)
else()
  message(FATAL_ERROR "No ggml is set up. Pass -DLLAMA_CPP_DIR=/path/to/llama.cpp to build one, run tools/setup.py, "
    "or pass -DHEADRACE_GGML=system for an installed ggml.")
endif()
get_target_property(HEADRACE_GGML_LIBRARY ggml::ggml LOCATION)
get_filename_component(HEADRACE_GGML_LIB_DIR ${HEADRACE_GGML_LIBRARY} DIRECTORY)
set(CMAKE_BUILD_RPATH ${HEADRACE_GGML_LIB_DIR})
if(UNIX AND NOT APPLE AND NOT EMSCRIPTEN)
  # An installed ggml often has no RPATH of its own: ours must also serve what libggml.so needs, as RUNPATH does not.
  add_link_options(-Wl,--disable-new-dtags)
endif()
message(STATUS "ggml ${ggml_VERSION} from ${HEADRACE_GGML_LIB_DIR}")
