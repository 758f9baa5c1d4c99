// SPDX-License-Identifier: BSL-1.0
//
// Reads SQLite databases that other programs may have made, by SQLite's guidance for such files.
// The schema must equal railpass' schema exactly. SQLite may only read the tables of that schema,
// and lengths and steps are bounded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace railpass::internal::store {

/// A table or an index: its name, and the statement that makes it.
struct schema_entry {
  std::string_view name;
  std::string_view sql;
};

/// A new database in memory. `name` stands for it in errors.
std::shared_ptr<sqlite3> new_database(const std::string& name);

/// The database in a file, which must not change. Throws error, with the name, if anything is wrong
/// with it.
std::shared_ptr<sqlite3> untrusted_file(const std::filesystem::path& path,
                                        std::span<const schema_entry> schema);
/// The database in these bytes, which must live as long; also looks at the whole of its structure.
std::shared_ptr<sqlite3> untrusted_bytes(std::span<char> bytes, const std::string& name,
                                         std::span<const schema_entry> schema);

[[noreturn]] void fail_as_damaged(const std::string& name);
[[noreturn]] void fail_as_damaged(const std::string& name, sqlite3* file);

/// A statement of one database; `name`, which must live as long, stands for its file.
class statement {
 public:
  statement(sqlite3* file, const std::string& text, const std::string& name);
  statement& bind(int index, std::int64_t value);
  statement& bind(int index, const std::string& text);
  statement& bind_bytes(int index, const std::string& bytes);
  /// Whether there is another row.
  bool next();
  void run();
  std::int64_t integer(int column) const;
  bool is_null(int column) const;
  /// Until the next row.
  std::string_view bytes(int column) const;

 private:
  struct finalizer {
    void operator()(sqlite3_stmt* s) const;
  };
  sqlite3* file_;
  const std::string& name_;
  std::unique_ptr<sqlite3_stmt, finalizer> made_;
};

}  // namespace railpass::internal::store
