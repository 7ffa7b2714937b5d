# SPDX-License-Identifier: MIT
# One Debian package of everything, made by `cpack` in the build folder (`make deb`); deb_layout.cmake moves what Debian
# keeps elsewhere than a prefix does.
set(MGX_MAINTAINER "The MIGraphX-in-C authors <migraphx@localhost>" CACHE STRING "of packages: Name <address>")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME migraphx)
set(CPACK_PACKAGE_VENDOR "The MIGraphX-in-C authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "graph compiler and inference engine")
set(CPACK_PACKAGE_DESCRIPTION "Reads trained models (ONNX), optimises them for this machine and runs them, with the
C, C++, Python and command line interfaces of MIGraphX.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/deb_layout.cmake)
set(CPACK_MGX_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_MGX_PYTHON_DIR ${MGX_PYTHON_DIR})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${MGX_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.17)")
if(NOT MGX_OLD_GLIBC_WORKS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3 (>= 3.9), python3-numpy")
file(WRITE ${CMAKE_BINARY_DIR}/deb/triggers "activate-noawait ldconfig\n")
file(WRITE ${CMAKE_BINARY_DIR}/deb/shlibs "libmigraphx_c 3 migraphx (>= ${PROJECT_VERSION})\n")
# what Python wrote beside the package's files
file(WRITE ${CMAKE_BINARY_DIR}/deb/prerm
     "#!/bin/sh\nset -e\nrm -rf /usr/lib/python3/dist-packages/onnx_migraphx/__pycache__ /usr/lib/python3/dist-packages/migraphx_modules/__pycache__\n")
file(CHMOD ${CMAKE_BINARY_DIR}/deb/prerm PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
     WORLD_READ WORLD_EXECUTE)
set(control ${CMAKE_BINARY_DIR}/deb)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${control}/triggers ${control}/shlibs ${control}/prerm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
