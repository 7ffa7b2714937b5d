# SPDX-License-Identifier: MIT
# Where things lie in a prefix, and how what is built finds the library: beside itself, in build/ as in a prefix,
# wherever either is moved to.
if(NOT DEFINED CMAKE_INSTALL_LIBDIR)
  set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "libraries, below the prefix") # one layout on every system, as MIGraphX has it
endif()
include(GNUInstallDirs)
set(MGX_PYTHON_DIR lib CACHE PATH "the Python module, below the prefix: what PYTHONPATH has to name")

# mgx_run_path(OUT FROM): the run path of what lies in build/<FROM> and is installed into <FROM>.
function(mgx_run_path out from)
  set(paths "$ORIGIN/../lib")
  get_filename_component(found "/${from}/../lib" ABSOLUTE)
  if(NOT found STREQUAL "/${CMAKE_INSTALL_LIBDIR}")
    file(RELATIVE_PATH way "/${from}" "/${CMAKE_INSTALL_LIBDIR}")
    list(APPEND paths "$ORIGIN/${way}")
  endif()
  set(${out} "${paths}" PARENT_SCOPE)
endfunction()
mgx_run_path(CMAKE_INSTALL_RPATH ${CMAKE_INSTALL_BINDIR})
# Otherwise CMake adds the path of the build folder, and an empty path, which is whatever folder one happens to be in.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON) # the tests are not installed
