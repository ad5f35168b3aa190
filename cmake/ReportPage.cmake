# The page of `wafersim report`: report/web/ with Apache ECharts, bundled by esbuild into one script and one style sheet that are
# embedded into the library. Packages come from npm as package-lock.json pins them, into the build directory. Sets
# WAFERSIM_PAGE_SOURCE, the source file that has the page or says that there is none.
set(page_web ${CMAKE_CURRENT_SOURCE_DIR}/web)
set(page_build ${CMAKE_BINARY_DIR}/report_page)
set(WAFERSIM_PAGE_SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/page_assets_none.cpp)

if(WAFERSIM_REPORT_PAGE STREQUAL "OFF")
  return()
endif()
find_program(NPM_PROGRAM npm)
# esbuild is a program of its own in a package for each kind of machine.
string(TOLOWER "${CMAKE_HOST_SYSTEM_PROCESSOR}" page_machine)
if(page_machine MATCHES "^(x86_64|amd64)$")
  set(page_machine linux-x64)
elseif(page_machine MATCHES "^(aarch64|arm64)$")
  set(page_machine linux-arm64)
else()
  set(page_machine "")
endif()
if(NOT NPM_PROGRAM OR NOT page_machine)
  if(WAFERSIM_REPORT_PAGE STREQUAL "ON")
    message(FATAL_ERROR "The page of `wafersim report` needs npm, which scripts/install-dependencies installs, and a machine that "
                        "esbuild has a package for. -DWAFERSIM_REPORT_PAGE=OFF builds without the page.")
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
  breakdown.js charts.js compare.js data.js dom.js energy.js format.js gantt.js groups.js header.js licenses.js main.js measures.js memory.js network.js path.js roofline.js study.js style.css
  theme.js timeline.js wafer.js wafer_map.js)
list(TRANSFORM page_files PREPEND ${page_web}/)
add_custom_command(
  OUTPUT ${page_build}/main.js ${page_build}/main.css
  COMMAND ${CMAKE_COMMAND} -E env NODE_PATH=${page_build}/node_modules
          ${page_build}/node_modules/@esbuild/${page_machine}/bin/esbuild ${page_web}/main.js --bundle --minify --format=esm
          --target=es2022 --charset=utf8 --legal-comments=eof --log-level=warning --outdir=${page_build}
  DEPENDS ${page_build}/packages.stamp ${page_files}
  COMMENT "Bundling the report page"
  VERBATIM)

set(WAFERSIM_PAGE_SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/page_assets.cpp)
set(WAFERSIM_HAS_PAGE ON PARENT_SCOPE)
set_source_files_properties(${WAFERSIM_PAGE_SOURCE} PROPERTIES
  COMPILE_DEFINITIONS "WAFERSIM_PAGE_WEB=\"${page_web}\";WAFERSIM_PAGE_BUILD=\"${page_build}\""
  OBJECT_DEPENDS "${page_web}/page.html;${page_build}/main.js;${page_build}/main.css")
