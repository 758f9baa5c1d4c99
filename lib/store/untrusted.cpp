// SPDX-License-Identifier: BSL-1.0
#include "lib/store/untrusted.hpp"

#include "lib/files/input.hpp"
#include "railpass/base/error.hpp"

#include <algorithm>
#include <array>
#include <sqlite3.h>
#include <unistd.h>

namespace railpass::internal::store {

namespace {

// A row is a record: mostly a run of at most 1 MiB, or several runs that were merged elsewhere.
constexpr int longest_row_bytes = 16 << 20;
// Limits for steps of SQLite's machine. A row of railpass takes about 30 steps, and at least as
// many bytes. A corrupt tree of pages may have endless rows.
constexpr int steps_at_a_time = 1000;
constexpr std::int64_t steps_of_any_file = 1000000;
constexpr std::size_t first_page_bytes = 108;  // with the head of its tree

[[noreturn]] void fail_as_foreign(const std::string& name) {
  throw error(name + ": corrupt, or not a database of railpass (unexpected tables); ignored");
}

std::shared_ptr<sqlite3> opened(const std::string& address, int flags, const std::string& name) {
  sqlite3* file = nullptr;
  const int code = ::sqlite3_open_v2(address.c_str(), &file, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  std::shared_ptr<sqlite3> owner(file, [](sqlite3* f) { ::sqlite3_close(f); });
  if (!file) throw std::bad_alloc();
  if (code != SQLITE_OK) fail_as_damaged(name, file);
  return owner;
}

// No lock, no journal and no check for changes, because the file never changes.
std::string address_of(const std::filesystem::path& path) {
  std::string address = "file://";
  std::error_code failure;
  const std::string whole = std::filesystem::absolute(path, failure).string();
  if (failure) throw error(path.string() + ": cannot be found: " + failure.message());
  for (const char c : whole)
    address += c == '?' ? "%3f" : c == '#' ? "%23" : c == '%' ? "%25" : std::string(1, c);
  return address + "?immutable=1";
}

// The schema starts on page 1. Railpass' schema is a leaf with a cell per entry. So SQLite never
// parses a longer schema or keeps it in memory.
void check_first_page(std::string_view page, const std::string& name, std::size_t entries) {
  constexpr std::size_t kind = 100, cells = 103;
  constexpr char leaf_of_a_table = 13;
  const auto byte = [&](std::size_t at) {
    return std::size_t(static_cast<unsigned char>(page[at]));
  };
  if (page.size() < first_page_bytes || !page.starts_with("SQLite format 3") ||
      page[kind] != leaf_of_a_table || byte(cells) * 256 + byte(cells + 1) != entries)
    fail_as_foreign(name);
}

std::string first_page_of(const file_descriptor& file) {
  std::array<char, first_page_bytes> page;
  const ::ssize_t n =
      uninterrupted([&] { return ::pread(file.get(), page.data(), page.size(), 0); });
  return {page.data(), std::size_t(std::max<::ssize_t>(n, 0))};
}

// Limits of a connection, for its whole life.
struct bounds_of_reading {
  std::span<const schema_entry> schema;
  std::int64_t steps_left;
};

// The limit grows with the file. Unlike a time limit, it is equal on a busy machine.
int spend_steps(void* bounds) {
  return (static_cast<bounds_of_reading*>(bounds)->steps_left -= steps_at_a_time) < 0 ? 1 : 0;
}

int may(void* bounds, int action, const char* first, const char*, const char* database,
        const char*) {
  const std::string_view what = first ? first : "";
  const auto& schema = static_cast<const bounds_of_reading*>(bounds)->schema;
  const bool is_here = !database || std::string_view(database) == "main";  // null: of no column
  const bool reads_ours = action == SQLITE_READ && is_here &&
                          (what == "sqlite_master" ||
                           std::ranges::find(schema, what, &schema_entry::name) != schema.end());
  return reads_ours || action == SQLITE_SELECT ||
                 (action == SQLITE_PRAGMA && what == "integrity_check")
             ? SQLITE_OK
             : SQLITE_DENY;
}

void check_schema(sqlite3* file, const std::string& name, std::span<const schema_entry> schema) {
  statement entry(file, "SELECT name, sql FROM sqlite_master ORDER BY rowid", name);
  for (const schema_entry& expected : schema)
    if (!entry.next() || entry.bytes(0) != expected.name || entry.bytes(1) != expected.sql)
      fail_as_foreign(name);
  if (entry.next()) fail_as_foreign(name);
}

// Restricts the connection.
std::shared_ptr<sqlite3> restricted(const std::shared_ptr<sqlite3>& file, std::uint64_t file_bytes,
                                    const std::string& name, std::span<const schema_entry> schema) {
  static constexpr std::array<std::pair<int, int>, 4> switches{
      {{SQLITE_DBCONFIG_DEFENSIVE, 1},
       {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
       {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
       {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}}};
  static constexpr std::array<std::pair<int, int>, 8> limits{
      {{SQLITE_LIMIT_LENGTH, longest_row_bytes},
       {SQLITE_LIMIT_SQL_LENGTH, 1024},
       {SQLITE_LIMIT_COLUMN, 16},
       {SQLITE_LIMIT_EXPR_DEPTH, 16},
       {SQLITE_LIMIT_COMPOUND_SELECT, 2},
       {SQLITE_LIMIT_ATTACHED, 0},
       {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
       {SQLITE_LIMIT_WORKER_THREADS, 0}}};
  sqlite3* const f = file.get();
  for (const auto& [which, value] : switches)
    if (::sqlite3_db_config(f, which, value, nullptr) != SQLITE_OK) fail_as_damaged(name, f);
  for (const auto& [which, most] : limits) ::sqlite3_limit(f, which, most);
  statement(f, "PRAGMA cell_size_check=ON", name).next();
  statement(f, "PRAGMA mmap_size=0", name).next();
  const auto bounds = std::make_shared<bounds_of_reading>(
      bounds_of_reading{schema, steps_of_any_file + std::int64_t(file_bytes)});
  ::sqlite3_progress_handler(f, steps_at_a_time, spend_steps, bounds.get());
  ::sqlite3_set_authorizer(f, may, bounds.get());
  check_schema(f, name, schema);
  return {f, [file, bounds](sqlite3*) {}};
}

}  // namespace

void fail_as_damaged(const std::string& name, sqlite3* file) {
  throw error(name + ": corrupt (SQLite: " + ::sqlite3_errmsg(file) + "); ignored");
}

void fail_as_damaged(const std::string& name) {
  throw error(name + ": corrupt (inconsistent records); ignored");
}

std::shared_ptr<sqlite3> new_database(const std::string& name) {
  return opened(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, name);
}

std::shared_ptr<sqlite3> untrusted_file(const std::filesystem::path& path,
                                        std::span<const schema_entry> schema) {
  const std::string name = path.string();
  std::error_code gone;
  const file_descriptor file = files::open_input(name);
  check_first_page(first_page_of(file), name, schema.size());
  return restricted(opened(address_of(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, name),
                    std::filesystem::file_size(path, gone), name, schema);
}

std::shared_ptr<sqlite3> untrusted_bytes(std::span<char> bytes, const std::string& name,
                                         std::span<const schema_entry> schema) {
  check_first_page({bytes.data(), bytes.size()}, name, schema.size());
  const auto file = opened(":memory:", SQLITE_OPEN_READWRITE, name);
  const auto size = sqlite3_int64(bytes.size());
  // The cast is safe, because SQLite does not write to the bytes.
  if (::sqlite3_deserialize(file.get(), "main", reinterpret_cast<unsigned char*>(bytes.data()),
                            size, size, SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
    fail_as_damaged(name, file.get());
  auto result = restricted(file, bytes.size(), name, schema);
  statement check(result.get(), "PRAGMA integrity_check(1)", name);
  if (!check.next() || check.bytes(0) != "ok") fail_as_damaged(name);
  return result;
}

statement::statement(sqlite3* file, const std::string& text, const std::string& name)
    : file_(file), name_(name) {
  sqlite3_stmt* made = nullptr;
  if (::sqlite3_prepare_v2(file, text.c_str(), -1, &made, nullptr) != SQLITE_OK)
    fail_as_damaged(name, file);
  made_.reset(made);
}

statement& statement::bind(int index, std::int64_t value) {
  if (::sqlite3_bind_int64(made_.get(), index, value) != SQLITE_OK) fail_as_damaged(name_, file_);
  return *this;
}

statement& statement::bind(int index, const std::string& text) {
  if (::sqlite3_bind_text64(made_.get(), index, text.data(), text.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8) != SQLITE_OK)
    fail_as_damaged(name_, file_);
  return *this;
}

statement& statement::bind_bytes(int index, const std::string& bytes) {
  if (::sqlite3_bind_blob64(made_.get(), index, bytes.data(), bytes.size(), SQLITE_TRANSIENT) !=
      SQLITE_OK)
    fail_as_damaged(name_, file_);
  return *this;
}

bool statement::next() {
  const int code = ::sqlite3_step(made_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail_as_damaged(name_, file_);
  return code == SQLITE_ROW;
}

void statement::run() {
  if (next()) fail_as_damaged(name_);
  ::sqlite3_reset(made_.get());
}

std::int64_t statement::integer(int column) const {
  return ::sqlite3_column_int64(made_.get(), column);
}

bool statement::is_null(int column) const {
  return ::sqlite3_column_type(made_.get(), column) == SQLITE_NULL;
}

std::string_view statement::bytes(int column) const {
  const void* const data = ::sqlite3_column_blob(made_.get(), column);
  const int size = ::sqlite3_column_bytes(made_.get(), column);
  return data ? std::string_view(static_cast<const char*>(data), std::size_t(size))
              : std::string_view();
}

void statement::finalizer::operator()(sqlite3_stmt* s) const { ::sqlite3_finalize(s); }

}  // namespace railpass::internal::store
