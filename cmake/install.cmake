# cmake --install: libheadrace.so, its headers, the program, and packages for CMake and pkg-config. Libraries that only
# Headrace loads go into a folder of their own, so that they never meet those of an installed llama.cpp.
# Components: libraries (what a program that calls them needs), runtime (the program and what others load), development,
# and the extensions of one language, where a package for it is made: python and node.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

option(HEADRACE_BUNDLE "Install the shared libraries of fmt and Highway, too: a wheel must not expect them" OFF)

set(private_dir ${CMAKE_INSTALL_LIBDIR}/headrace)
set(origin "$ORIGIN")
if(APPLE)
  set(origin "@loader_path")
endif()

# Files are named as the loader asks for them. The links beside them stay behind: a wheel would store each as a copy.
function(headrace_install_private library)
  get_filename_component(file ${library} REALPATH)
  get_filename_component(name ${file} NAME)
  if(CMAKE_READELF)
    execute_process(COMMAND ${CMAKE_READELF} -d ${file} OUTPUT_VARIABLE dynamic ERROR_QUIET)
    if(dynamic MATCHES "\\(SONAME\\)[^[]*\\[([^]]+)\\]")
      set(name ${CMAKE_MATCH_1})
    endif()
  endif()
  install(PROGRAMS ${file} DESTINATION ${private_dir} RENAME ${name} COMPONENT libraries)
endfunction()

set(outside "")
if(NOT HEADRACE_GGML STREQUAL "system")
  # By name and not by target: backends that ggml loads at run time are no targets.
  file(GLOB libraries ${HEADRACE_GGML_LIB_DIR}/${CMAKE_SHARED_LIBRARY_PREFIX}ggml*${CMAKE_SHARED_LIBRARY_SUFFIX})
  foreach(library IN LISTS libraries)
    headrace_install_private(${library})
  endforeach()
elseif(NOT HEADRACE_GGML_LIB_DIR IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
  set(outside ${HEADRACE_GGML_LIB_DIR})
endif()
if(HEADRACE_RUNTIME)
  install(PROGRAMS ${HEADRACE_RUNTIME}/libheadrace-c++.so DESTINATION ${private_dir} COMPONENT libraries)
elseif(HEADRACE_BUNDLE)
  foreach(target fmt::fmt hwy::hwy)
    get_target_property(type ${target} TYPE)
    get_target_property(location ${target} LOCATION)
    if(type STREQUAL "SHARED_LIBRARY" OR location MATCHES "\\.so|\\.dylib")
      headrace_install_private(${location})
    endif()
  endforeach()
endif()

set_target_properties(headrace PROPERTIES INSTALL_RPATH "${origin}/headrace;${outside}")
install(TARGETS headrace EXPORT headraceTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET wasi_nn_backend)
  set_target_properties(headrace_llm_shared headrace_serve wasi_nn_backend wasi_nn_llamacpp wasi_nn_onnx PROPERTIES
    INSTALL_RPATH "${origin};${origin}/headrace;${outside}")
  install(TARGETS headrace_llm_shared EXPORT headraceTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(TARGETS headrace_serve EXPORT headraceTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(TARGETS wasi_nn_backend wasi_nn_llamacpp wasi_nn_onnx LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  if(TARGET ggml-headrace)
    install(TARGETS ggml-headrace LIBRARY DESTINATION ${private_dir} COMPONENT libraries)
  endif()
endif()
if(TARGET headrace_cli)
  file(RELATIVE_PATH up /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(headrace_cli PROPERTIES INSTALL_RPATH "${origin}/${up};${origin}/${up}/headrace;${outside}")
  install(TARGETS headrace_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/headrace)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/headrace
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
install(EXPORT headraceTargets NAMESPACE headrace:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/headraceConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/headraceConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/headraceConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)  # before 1.0 a new minor version may change the API
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/headrace.pc.in ${PROJECT_BINARY_DIR}/package/headrace.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/headraceConfig.cmake
  ${PROJECT_BINARY_DIR}/package/headraceConfigVersion.cmake DESTINATION ${package_dir} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/package/headrace.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
