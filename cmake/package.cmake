# A Debian package of what users install: packaging/deb builds it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME railpass)
set(CPACK_PACKAGE_VENDOR railpass)
set(CPACK_PACKAGE_CONTACT "The railpass developers <railpass@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "MPI collectives that learn the machine they run on")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
# What programs need that are built against railpass, not what `railpass run` needs.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libopenmpi-dev, libboost-mpi-dev, libeigen3-dev")
# Beside the build that CPack runs in: the engine for Debian's MPICH.
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${PROJECT_BINARY_DIR};railpass;ALL;/"
  "${PROJECT_SOURCE_DIR}/build/package-mpich;railpass;preload;/")
include(CPack)
