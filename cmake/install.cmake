# Installation. find_package(railpass) gives railpass::railpass (the calls, compiled) and the header
# layers (railpass::models, railpass::select, ...); with COMPONENTS boost_mpi the facade
# railpass::boost_mpi, with COMPONENTS fit the headers that need Eigen.
include(CMakePackageConfigHelpers)

get_property(railpass_header_layers GLOBAL PROPERTY RAILPASS_HEADER_LAYERS)
list(REMOVE_ITEM railpass_header_layers railpass_knowledge)  # the library's own
set(railpass_targets railpass ${railpass_header_layers})
if(RAILPASS_WITH_BOOST_MPI)
  list(APPEND railpass_targets railpass_boost_mpi)
endif()
set(railpass_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/railpass)

# The component `run` is what users of the program `railpass` need, without headers and documents.
install(TARGETS ${railpass_targets} EXPORT railpassTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT run NAMELINK_COMPONENT Unspecified)
# Beside librailpass, where it looks for that.
install(TARGETS railpass_preload_so LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT run)
# For a prefix whose railpass is of another MPI: what the program `railpass` needs to serve this one, too.
install(TARGETS railpass railpass_preload_so railpass_mpi railpass_first COMPONENT preload EXCLUDE_FROM_ALL
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/railpass/${RAILPASS_MPI_FAMILY} NAMELINK_SKIP
  RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/railpass/${RAILPASS_MPI_FAMILY})
install(TARGETS railpass_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT run)
install(TARGETS railpass_mpi railpass_first
  RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/railpass COMPONENT run)
if(RAILPASS_SELF_CONTAINED)
  # They find an MPI library in the same prefix, such as a wheel's. Helpers are in two depths of folders.
  set_target_properties(railpass_cli PROPERTIES INSTALL_RPATH $ORIGIN/../${CMAKE_INSTALL_LIBDIR})
  set_target_properties(railpass_mpi railpass_first PROPERTIES
    INSTALL_RPATH "$ORIGIN/../../${CMAKE_INSTALL_LIBDIR};$ORIGIN/../../../${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(railpass PROPERTIES INSTALL_RPATH $ORIGIN)
endif()
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/man/ DESTINATION ${CMAKE_INSTALL_MANDIR})
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/bash-completion ${PROJECT_BINARY_DIR}/share/zsh
  DESTINATION ${CMAKE_INSTALL_DATADIR})
file(RELATIVE_PATH railpass_prefix_from_modulefile /p/${CMAKE_INSTALL_DATADIR}/modules/railpass /p)
configure_file(packaging/modulefile.in modulefile @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/modulefile DESTINATION ${CMAKE_INSTALL_DATADIR}/modules/railpass
  RENAME ${PROJECT_VERSION})
install(FILES LICENSE README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md SECURITY.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png" PATTERN "*.json" PATTERN site EXCLUDE)
# What these documents link to.
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN __pycache__ EXCLUDE)
file(GLOB_RECURSE linked CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} bench/*.md bench/*.conf)
file(GLOB interfaces CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} include/railpass/*.h*)
foreach(path IN LISTS linked interfaces)
  cmake_path(GET path PARENT_PATH folder)
  install(FILES ${path} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()

# Headers say "railpass/...", "models/..." and "collectives/...": all below include/railpass.
set(headers FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN "*.def")
install(DIRECTORY include/railpass DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${headers}
  PATTERN knowledge EXCLUDE PATTERN transport EXCLUDE)
install(DIRECTORY models collectives DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/railpass ${headers})

install(EXPORT railpassTargets NAMESPACE railpass:: DESTINATION ${railpass_cmake_dir})
configure_package_config_file(cmake/railpassConfig.cmake.in railpassConfig.cmake
  INSTALL_DESTINATION ${railpass_cmake_dir})
write_basic_package_version_file(railpassConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/railpassConfig.cmake
  ${PROJECT_BINARY_DIR}/railpassConfigVersion.cmake cmake/mpi_family.cmake DESTINATION ${railpass_cmake_dir})

file(RELATIVE_PATH railpass_prefix_from_pkgconfig /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
string(REGEX REPLACE "/$" "" railpass_prefix_from_pkgconfig "${railpass_prefix_from_pkgconfig}")
set(railpass_pkgconfig railpass)
if(RAILPASS_WITH_BOOST_MPI)
  list(APPEND railpass_pkgconfig railpass_boost_mpi)
endif()
foreach(package IN LISTS railpass_pkgconfig)
  configure_file(cmake/${package}.pc.in ${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

if(PROJECT_IS_TOP_LEVEL)
  include(cmake/package.cmake)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND}
    -DBUILD=${PROJECT_BINARY_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake
    VERBATIM)
endif()
