# wafersim_library(<folder> SOURCES ... DEPENDS ...)
# One folder = one static library with the alias wafersim::<folder>. DEPENDS names libraries whose headers appear in
# this folder's public headers or sources; the layering of docs/architecture.md is what may stand there.
add_library(wafersim_options INTERFACE)
target_compile_features(wafersim_options INTERFACE cxx_std_20)
target_compile_options(wafersim_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  # Results are the same on every machine: no fused multiply-add where the source has two operations.
  -ffp-contract=off)
if(WAFERSIM_WERROR)
  target_compile_options(wafersim_options INTERFACE -Werror)
endif()

function(wafersim_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(wafersim_${name} STATIC ${ARG_SOURCES})
  add_library(wafersim::${name} ALIAS wafersim_${name})
  set_target_properties(wafersim_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(wafersim_${name} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/wafersim>)
  target_link_libraries(wafersim_${name} PUBLIC ${ARG_DEPENDS} PRIVATE $<BUILD_INTERFACE:wafersim_options>)
endfunction()

# wafersim_test(<name> LABELS ... SOURCES ... DEPENDS ...)
# One executable; every test case runs in a process of its own (SystemC supports one simulation per process).
function(wafersim_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} wafersim_test_main wafersim_options)
  # Test code itself need not be fast, but it is much of the build.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_compile_definitions(${name} PRIVATE WAFERSIM_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  set(timeout 300)
  if("slow" IN_LIST ARG_LABELS)
    set(timeout 3600)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${timeout})
endfunction()
