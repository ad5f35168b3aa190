# The page of `wafersim report`: report/web/ with Apache ECharts, bundled by esbuild into one script and one style sheet that are
# embedded into the library. Packages come from npm as package-lock.json pins them, into the build directory. Sets
# WAFERSIM_PAGE_SOURCE, the source file that has the page or says that there is none.
set(page_web ${CMAKE_CURRENT_SOURCE_DIR}/web)
set(page_build ${CMAKE_BINARY_DIR}/report_page)
set(WAFERSIM_PAGE_SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/page_assets_none.cpp)

find_program(NODE_PROGRAM node)
find_program(NPM_PROGRAM npm)
if(WAFERSIM_REPORT_PAGE STREQUAL "OFF")
  return()
elseif(NOT NODE_PROGRAM OR NOT NPM_PROGRAM)
  if(WAFERSIM_REPORT_PAGE STREQUAL "ON")
    message(FATAL_ERROR "The page of `wafersim report` needs node and npm (scripts/install-dependencies installs them). "
                        "-DWAFERSIM_REPORT_PAGE=OFF builds without it.")
  endif()
  message(STATUS "No npm: built without the page of `wafersim report`")
  return()
endif()

# The tests drive a browser with a package that the page itself does not need.
set(page_omit --omit=dev)
if(WAFERSIM_BUILD_TESTS)
  set(page_omit "")
endif()
add_custom_command(
  OUTPUT ${page_build}/packages.stamp
  COMMAND ${CMAKE_COMMAND} -E copy ${page_web}/package.json ${page_web}/package-lock.json ${page_build}
  COMMAND ${NPM_PROGRAM} ci --silent --ignore-scripts --no-audit --no-fund ${page_omit}
  COMMAND ${CMAKE_COMMAND} -E touch ${page_build}/packages.stamp
  DEPENDS ${page_web}/package.json ${page_web}/package-lock.json
  WORKING_DIRECTORY ${page_build}
  COMMENT "Installing the packages of the report page (npm ci); -DWAFERSIM_REPORT_PAGE=OFF builds without it"
  VERBATIM)
file(MAKE_DIRECTORY ${page_build})

set(page_files
  breakdown.js charts.js data.js dom.js format.js gantt.js header.js main.js measures.js memory.js network.js roofline.js style.css
  theme.js timeline.js wafer.js wafer_map.js)
list(TRANSFORM page_files PREPEND ${page_web}/)
add_custom_command(
  OUTPUT ${page_build}/main.js ${page_build}/main.css
  COMMAND ${CMAKE_COMMAND} -E env NODE_PATH=${page_build}/node_modules
          ${NODE_PROGRAM} ${page_build}/node_modules/esbuild/bin/esbuild ${page_web}/main.js --bundle --minify --format=iife
          --target=es2021 --charset=utf8 --legal-comments=none --log-level=warning --outdir=${page_build}
  DEPENDS ${page_build}/packages.stamp ${page_files}
  COMMENT "Bundling the report page"
  VERBATIM)

set(WAFERSIM_PAGE_SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/page_assets.cpp)
set_source_files_properties(${WAFERSIM_PAGE_SOURCE} PROPERTIES
  COMPILE_DEFINITIONS "WAFERSIM_PAGE_WEB=\"${page_web}\";WAFERSIM_PAGE_BUILD=\"${page_build}\""
  OBJECT_DEPENDS "${page_web}/page.html;${page_build}/main.js;${page_build}/main.css")
