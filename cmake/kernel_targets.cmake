# Which instruction sets headrace_kernels is compiled for; src/kernels/simd/targets.h reads it.
set(HEADRACE_KERNEL_TARGETS all CACHE STRING
  "Instruction sets that the CPU kernels are compiled for. native: this machine's, which takes half the time")
set_property(CACHE HEADRACE_KERNEL_TARGETS PROPERTY STRINGS all native)
if(HEADRACE_KERNEL_TARGETS STREQUAL "native")
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -march=native)
  check_cxx_source_compiles("#if !defined(__AVX512BW__) || !defined(__AVX512DQ__) || !defined(__AVX512VL__)
    #error
    #endif
    int main() {}" HEADRACE_HAS_AVX512)
  check_cxx_source_compiles("#if !defined(__AVX2__) || !defined(__FMA__)
    #error
    #endif
    int main() {}" HEADRACE_HAS_AVX2)
  unset(CMAKE_REQUIRED_FLAGS)
  if(HEADRACE_HAS_AVX512)
    target_compile_definitions(headrace_kernels PRIVATE HEADRACE_NATIVE_AVX512)
  elseif(HEADRACE_HAS_AVX2)
    target_compile_definitions(headrace_kernels PRIVATE HEADRACE_NATIVE_AVX2)
  endif()
elseif(NOT HEADRACE_KERNEL_TARGETS STREQUAL "all")
  message(FATAL_ERROR "HEADRACE_KERNEL_TARGETS=${HEADRACE_KERNEL_TARGETS}: it is all or native")
endif()
