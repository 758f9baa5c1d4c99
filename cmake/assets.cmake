# What the pages of lib/report carry is compiled into the program, so that they need no network and
# no other file: assets.cpp from lib/report/assets.cpp.in.
find_file(RAILPASS_CHART_JS NAMES chart.min.js chart.umd.js
  PATHS /usr/share/javascript /usr/local/share/javascript PATH_SUFFIXES chart.js share/javascript/chart.js
  DOC "Chart.js 3 or 4, minified")
if(NOT RAILPASS_CHART_JS)
  message(FATAL_ERROR "Chart.js, which draws the charts of railpass' pages, was not found. Install "
    "libjs-chart.js (Debian, Ubuntu), or say -DRAILPASS_CHART_JS=FILE: chart.min.js of version 3, or "
    "chart.umd.js of version 4, from dist/ of the npm package chart.js.")
endif()
file(STRINGS ${RAILPASS_CHART_JS} railpass_chart_js_version REGEX "Chart\\.js v[34]\\." LIMIT_COUNT 1)
if(NOT railpass_chart_js_version)
  message(FATAL_ERROR "RAILPASS_CHART_JS=${RAILPASS_CHART_JS}: expected Chart.js 3 or 4, minified")
endif()

file(READ ${RAILPASS_CHART_JS} RAILPASS_CHART_JS_TEXT)
file(READ ${PROJECT_SOURCE_DIR}/lib/report/page.js RAILPASS_PAGE_JS_TEXT)
file(READ ${PROJECT_SOURCE_DIR}/lib/report/page.css RAILPASS_PAGE_CSS_TEXT)
configure_file(${PROJECT_SOURCE_DIR}/lib/report/assets.cpp.in ${PROJECT_BINARY_DIR}/lib/report/assets.cpp @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${RAILPASS_CHART_JS}
  ${PROJECT_SOURCE_DIR}/lib/report/page.js ${PROJECT_SOURCE_DIR}/lib/report/page.css)
