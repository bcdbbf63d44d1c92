# What an installation holds: the library with its headers, the program, and how builds find them.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/palmshed)

install(TARGETS palmshed_engine EXPORT palmshedTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/engine/include/palmshed
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(PROGRAMS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/palmshed DESTINATION ${CMAKE_INSTALL_BINDIR})

# Boost.JSON and libarchive are linked statically but no part of the library, so users resolve them
# as well.
install(EXPORT palmshedTargets NAMESPACE palmshed:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/palmshedConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/palmshedConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/palmshedConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/package/palmshedConfig.cmake
  ${PROJECT_BINARY_DIR}/package/palmshedConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/libarchive.cmake
  DESTINATION ${package_dir})

# From the .pc file's own place to the prefix, so that an installation can be moved.
file(RELATIVE_PATH pc_to_prefix
  /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/palmshed.pc.in
  ${PROJECT_BINARY_DIR}/package/palmshed.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/palmshed.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
