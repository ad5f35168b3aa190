# For find modules of libraries that Debian ships with a pkg-config file only: defines the imported target `target` from a header
# and a library. A macro, as the result belongs to the module.
include(FindPackageHandleStandardArgs)

macro(wafersim_plain_library name target header library)
  find_path(${name}_INCLUDE_DIR NAMES ${header})
  find_library(${name}_LIBRARY NAMES ${library})
  find_package_handle_standard_args(${name} REQUIRED_VARS ${name}_LIBRARY ${name}_INCLUDE_DIR)
  if(${name}_FOUND AND NOT TARGET ${target})
    add_library(${target} UNKNOWN IMPORTED)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION ${${name}_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE_DIR})
  endif()
  mark_as_advanced(${name}_INCLUDE_DIR ${name}_LIBRARY)
endmacro()
