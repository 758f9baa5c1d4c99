# railpass_header_layer(NAME DEPENDS layers...): an interface target railpass_NAME (railpass::NAME
# outside) with the allowed dependencies. Headers are found as "railpass/...", "models/..." and
# "collectives/...", in the source tree as in an installed one.
function(railpass_header_layer name)
  cmake_parse_arguments(layer "" "" "DEPENDS" ${ARGN})
  add_library(railpass_${name} INTERFACE)
  add_library(railpass::${name} ALIAS railpass_${name})
  set_target_properties(railpass_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(railpass_${name} INTERFACE cxx_std_20)
  target_include_directories(railpass_${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/railpass>)
  foreach(dependency IN LISTS layer_DEPENDS)
    target_link_libraries(railpass_${name} INTERFACE railpass_${dependency})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY RAILPASS_HEADER_LAYERS railpass_${name})
  railpass_record_layer(${name} ${layer_DEPENDS})
endfunction()

# railpass_compiled_layer(NAME SOURCES files... DEPENDS layers or targets...): an object library;
# those that calls need are the one library users link, librailpass.
function(railpass_compiled_layer name)
  cmake_parse_arguments(layer "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(railpass_${name} OBJECT ${layer_SOURCES})
  target_include_directories(railpass_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(railpass_${name} PUBLIC ${layer_DEPENDS})
  # Calls inside librailpass are plain calls, not ones that another library might replace.
  # What headers define each program has itself: the library exports none of it.
  target_compile_options(railpass_${name} PRIVATE -fno-semantic-interposition -fvisibility-inlines-hidden)
  railpass_warnings(railpass_${name})
  railpass_record_layer(${name} ${layer_DEPENDS})
endfunction()

# Code in which no call of a program waits for computing: optimised less, for shorter builds.
function(railpass_optimise_less target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# What the test of the includes goes by: RAILPASS_LAYERS holds "name=layer,layer" for each layer.
function(railpass_record_layer name)
  set(allowed ${ARGN})
  list(FILTER allowed EXCLUDE REGEX "::")
  list(TRANSFORM allowed REPLACE "^railpass_" "")
  list(JOIN allowed "," allowed)
  set_property(GLOBAL APPEND PROPERTY RAILPASS_LAYERS "${name}=${allowed}")
endfunction()

function(railpass_warnings target)
  if(RAILPASS_DEVELOPER)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow
      # False alarms: for std::string, GCC bug 105651; for any function that returns a reference and
      # takes a temporary, from GCC 13 on.
      $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:GNU>:-Wno-dangling-reference>)
  endif()
endfunction()
