# What nanobind asks of find_package(Python), for a Python that does not run here: HEADRACE_PYTHON_VERSION with the headers
# in HEADRACE_PYTHON_INCLUDE. From 3.12 on the extensions are for every later version (abi3).
set(Python_VERSION ${HEADRACE_PYTHON_VERSION})
set(Python_INTERPRETER_ID Python)
set(Python_INCLUDE_DIRS ${HEADRACE_PYTHON_INCLUDE})
string(REPLACE "." "" digits ${HEADRACE_PYTHON_VERSION})
set(Python_SOABI cpython-${digits}-${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
set(Python_SOSABI abi3)
foreach(part Interpreter Module SABIModule)
  add_library(Python::${part} INTERFACE IMPORTED)
endforeach()
# nanobind prints to stderr, whose header Python's stable ABI leaves out and libc++'s headers do not bring along.
add_compile_options("SHELL:-include cstdio")
