# Debian ships Accellera SystemC with a pkg-config file only. Defines the target SystemC::systemc.
find_path(SystemC_INCLUDE_DIR NAMES systemc PATHS ENV SYSTEMC_HOME PATH_SUFFIXES include)
find_library(SystemC_LIBRARY NAMES systemc PATHS ENV SYSTEMC_HOME PATH_SUFFIXES lib lib-linux64)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SystemC REQUIRED_VARS SystemC_LIBRARY SystemC_INCLUDE_DIR)
if(SystemC_FOUND AND NOT TARGET SystemC::systemc)
  find_package(Threads REQUIRED)
  add_library(SystemC::systemc UNKNOWN IMPORTED)
  set_target_properties(SystemC::systemc PROPERTIES
    IMPORTED_LOCATION ${SystemC_LIBRARY}
    # A system include directory: its headers do not pass this project's warnings.
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${SystemC_INCLUDE_DIR}
    # The packaged library is compiled as C++17 and checks that at link time.
    INTERFACE_COMPILE_DEFINITIONS SC_CPLUSPLUS=201703L
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
mark_as_advanced(SystemC_INCLUDE_DIR SystemC_LIBRARY)
