# railpass::sqlite: the static library where there is one, as programs that load librailpass may have
# another SQLite of their own.
find_package(SQLite3 3.36 REQUIRED)  # serialize
find_library(RAILPASS_STATIC_SQLITE libsqlite3.a)
mark_as_advanced(RAILPASS_STATIC_SQLITE)
add_library(railpass_sqlite INTERFACE)
add_library(railpass::sqlite ALIAS railpass_sqlite)
if(RAILPASS_STATIC_SQLITE)
  target_include_directories(railpass_sqlite SYSTEM INTERFACE ${SQLite3_INCLUDE_DIRS})
  target_link_libraries(railpass_sqlite INTERFACE ${RAILPASS_STATIC_SQLITE} Threads::Threads
    ${CMAKE_DL_LIBS} m)
  target_link_options(railpass_sqlite INTERFACE -Wl,--exclude-libs,libsqlite3.a)
else()
  target_link_libraries(railpass_sqlite INTERFACE SQLite::SQLite3)
endif()
