// SPDX-License-Identifier: BSL-1.0
#include "lib/store/database.hpp"

#include <algorithm>
#include <limits>
#include <sqlite3.h>

namespace railpass::store {

namespace {

constexpr const char* schema =
    "CREATE TABLE head(what TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE context(place INTEGER PRIMARY KEY, problem INTEGER NOT NULL,"
    " known BLOB NOT NULL, earlier BLOB);"
    "CREATE INDEX context_problem ON context(problem);"
    "CREATE TABLE run(place INTEGER PRIMARY KEY, record BLOB NOT NULL);";

[[noreturn]] void fail(const std::string& name, sqlite3* file) {
  throw error(name + ": it is damaged (SQLite: " + ::sqlite3_errmsg(file) + "); it was left out");
}

[[noreturn]] void fail(const std::string& name) {
  throw error(name + ": it is damaged: what belongs together in it does not fit; it was left out");
}

std::shared_ptr<sqlite3> opened(const std::string& path, int flags, const std::string& name) {
  sqlite3* file = nullptr;
  const int code = ::sqlite3_open_v2(path.c_str(), &file, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  const std::shared_ptr<sqlite3> owner(file, [](sqlite3* f) { ::sqlite3_close(f); });
  if (!file) throw std::bad_alloc();
  if (code != SQLITE_OK) fail(name, file);
  return owner;
}

// A statement of one database; `name` stands for its file.
class statement {
 public:
  statement(sqlite3* file, const char* text, const std::string& name) : file_(file), name_(name) {
    sqlite3_stmt* made = nullptr;
    if (::sqlite3_prepare_v2(file, text, -1, &made, nullptr) != SQLITE_OK) fail(name, file);
    made_.reset(made);
  }
  statement& bind(int place, std::int64_t value) {
    if (::sqlite3_bind_int64(made_.get(), place, value) != SQLITE_OK) fail(name_, file_);
    return *this;
  }
  statement& bind(int place, const std::string& text) {
    if (::sqlite3_bind_text64(made_.get(), place, text.data(), text.size(), SQLITE_TRANSIENT,
                              SQLITE_UTF8) != SQLITE_OK)
      fail(name_, file_);
    return *this;
  }
  statement& bind_bytes(int place, const std::string& bytes) {
    if (::sqlite3_bind_blob64(made_.get(), place, bytes.data(), bytes.size(), SQLITE_TRANSIENT) !=
        SQLITE_OK)
      fail(name_, file_);
    return *this;
  }
  /// Whether there is another row.
  bool next() {
    const int code = ::sqlite3_step(made_.get());
    if (code != SQLITE_ROW && code != SQLITE_DONE) fail(name_, file_);
    return code == SQLITE_ROW;
  }
  void run() {
    if (next()) fail(name_);
    ::sqlite3_reset(made_.get());
  }
  std::int64_t integer(int column) const { return ::sqlite3_column_int64(made_.get(), column); }
  bool is_null(int column) const {
    return ::sqlite3_column_type(made_.get(), column) == SQLITE_NULL;
  }
  std::string_view bytes(int column) const {
    const void* const data = ::sqlite3_column_blob(made_.get(), column);
    const int size = ::sqlite3_column_bytes(made_.get(), column);
    return data ? std::string_view(static_cast<const char*>(data), std::size_t(size))
                : std::string_view();
  }

 private:
  struct finalizer {
    void operator()(sqlite3_stmt* s) const { ::sqlite3_finalize(s); }
  };
  sqlite3* file_;
  const std::string& name_;
  std::unique_ptr<sqlite3_stmt, finalizer> made_;
};

void execute(sqlite3* file, const char* text, const std::string& name) {
  if (::sqlite3_exec(file, text, nullptr, nullptr, nullptr) != SQLITE_OK) fail(name, file);
}

// What a file may not make SQLite do, whatever is in it.
void distrust(sqlite3* file, const std::string& name) {
  execute(file, "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;", name);
}

std::int64_t number_of(const knowledge::problem& p) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : key_of(p)) hash = (hash ^ std::uint8_t(c)) * 1099511628211u;
  return std::int64_t(hash);
}

std::string head_record(sqlite3* file, const char* what, const std::string& name) {
  statement row(file, "SELECT record FROM head WHERE what = ?", name);
  row.bind(1, std::string(what));
  if (!row.next()) fail(name);
  return std::string(unsealed(row.bytes(0), name));
}

knowledge::experience experience_in(const statement& row, int column, const std::string& name) {
  return unpacked_experience(unsealed(row.bytes(column), name), name);
}

}  // namespace

std::string key_of(const knowledge::problem& p) {
  return p.collective + '\n' + p.operation + '\n' + std::to_string(p.num_ranks) + '\n' +
         std::to_string(p.ranks_per_node) + '\n' + p.kind + '\n' + p.rails + '\n' +
         std::to_string(p.bytes);
}

std::string database_of(const database_contents& c) {
  const std::string name = "a database of knowledge";
  const auto owner = opened(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, name);
  sqlite3* const file = owner.get();
  execute(file, schema, name);
  execute(file, "BEGIN", name);
  {
    statement head(file, "INSERT INTO head VALUES (?, ?)", name);
    const database_head h{.machine = c.machine,
                          .num_contexts = std::int64_t(c.contexts.size()),
                          .num_runs = std::int64_t(c.runs.size()),
                          .recent = c.recent};
    head.bind(1, std::string("store")).bind_bytes(2, sealed(packed(h))).run();
    head.bind(1, std::string("earlier")).bind_bytes(2, sealed(packed(c.earlier_ids))).run();
    std::int64_t place = 0;
    for (const database_contents::context& each : c.contexts) {
      statement context(file, "INSERT INTO context VALUES (?, ?, ?, ?)", name);
      context.bind(1, ++place)
          .bind(2, number_of(each.known.of))
          .bind_bytes(3, sealed(packed(each.known)));
      // Mostly they are the same.
      if (each.earlier)
        context.bind_bytes(4, *each.earlier == each.known ? "" : sealed(packed(*each.earlier)));
      context.run();
    }
    statement run(file, "INSERT INTO run VALUES (?, ?)", name);
    place = 0;
    for (const knowledge::stored_run& r : c.runs)
      run.bind(1, ++place).bind_bytes(2, sealed(packed(r))).run();
  }
  execute(file, "COMMIT", name);
  sqlite3_int64 size = 0;
  unsigned char* const bytes = ::sqlite3_serialize(file, "main", &size, 0);
  if (!bytes) throw std::bad_alloc();
  const std::unique_ptr<unsigned char, decltype(&::sqlite3_free)> freed(bytes, &::sqlite3_free);
  return {reinterpret_cast<const char*>(bytes), std::size_t(size)};
}

database_contents contents_of_database(std::string_view bytes, const std::string& name) {
  std::string copy(bytes);  // which SQLite does not write to, but takes as such
  const auto owner = opened(":memory:", SQLITE_OPEN_READWRITE, name);
  sqlite3* const file = owner.get();
  if (::sqlite3_deserialize(file, "main", reinterpret_cast<unsigned char*>(copy.data()),
                            sqlite3_int64(copy.size()), sqlite3_int64(copy.size()),
                            SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
    fail(name, file);
  distrust(file, name);
  const database_head head = unpacked_head(head_record(file, "store", name), name);
  {
    statement check(file, "PRAGMA integrity_check(1)", name);
    if (!check.next() || check.bytes(0) != "ok") fail(name);
  }
  database_contents c{.machine = head.machine,
                      .recent = head.recent,
                      .earlier_ids = unpacked_ids(head_record(file, "earlier", name), name)};
  statement context(file, "SELECT place, problem, known, earlier FROM context ORDER BY place",
                    name);
  while (context.next()) {
    database_contents::context& each = c.contexts.emplace_back();
    each.known = experience_in(context, 2, name);
    if (context.integer(0) != std::int64_t(c.contexts.size()) ||
        context.integer(1) != number_of(each.known.of))
      fail(name);
    if (context.is_null(3)) continue;
    each.earlier = context.bytes(3).empty() ? each.known : experience_in(context, 3, name);
    if (!(each.earlier->of == each.known.of)) fail(name);
  }
  statement run(file, "SELECT place, record FROM run ORDER BY place", name);
  while (run.next()) {
    c.runs.push_back(unpacked_run(unsealed(run.bytes(1), name), name));
    if (run.integer(0) != std::int64_t(c.runs.size())) fail(name);
  }
  if (std::int64_t(c.contexts.size()) != head.num_contexts ||
      std::int64_t(c.runs.size()) != head.num_runs)
    fail(name);
  return c;
}

database::database(const std::filesystem::path& path) : name_(path.string()) {
  std::string address = "file://";
  std::error_code failure;
  const std::string whole = std::filesystem::absolute(path, failure).string();
  if (failure) throw error(name_ + ": cannot be found: " + failure.message());
  for (const char c : whole)
    address += c == '?' ? "%3f" : c == '#' ? "%23" : c == '%' ? "%25" : std::string(1, c);
  // No lock, no journal and no look at whether it changes: it does not.
  file_ = opened(address + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, name_);
  distrust(file_.get(), name_);
  head_ = unpacked_head(head_record(file_.get(), "store", name_), name_);
}

std::vector<knowledge::experience> database::best(std::size_t most) const {
  const std::int64_t expected =
      std::min(head_.num_contexts,
               std::int64_t(std::min<std::size_t>(most, std::numeric_limits<int>::max())));
  statement row(file_.get(), "SELECT place, known FROM context WHERE place <= ? ORDER BY place",
                name_);
  row.bind(1, expected);
  std::vector<knowledge::experience> contexts;
  while (row.next()) {
    contexts.push_back(experience_in(row, 1, name_));
    if (row.integer(0) != std::int64_t(contexts.size())) fail(name_);
  }
  if (std::int64_t(contexts.size()) != expected) fail(name_);
  return contexts;
}

std::optional<knowledge::experience> database::find(const knowledge::problem& p) const {
  statement row(file_.get(), "SELECT known FROM context WHERE problem = ?", name_);
  row.bind(1, number_of(p));
  while (row.next())
    if (knowledge::experience e = experience_in(row, 0, name_); e.of == p) return e;
  return std::nullopt;
}

}  // namespace railpass::store
