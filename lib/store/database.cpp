// SPDX-License-Identifier: BSL-1.0
#include "lib/store/database.hpp"

#include "lib/store/untrusted.hpp"
#include "railpass/base/hash.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <sqlite3.h>

namespace railpass::internal::store {

namespace {

constexpr std::array<schema_entry, 4> schema{
    {{"head", "CREATE TABLE head(what TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID"},
     {"context",
      "CREATE TABLE context(place INTEGER PRIMARY KEY, problem INTEGER NOT NULL,"
      " known BLOB NOT NULL, earlier BLOB)"},
     {"context_problem", "CREATE INDEX context_problem ON context(problem)"},
     {"run", "CREATE TABLE run(place INTEGER PRIMARY KEY, record BLOB NOT NULL)"}}};

std::int64_t number_of(const knowledge::problem& p) { return std::int64_t(fnv1a(key_of(p))); }

std::string head_record(sqlite3* file, const char* what, const std::string& name) {
  statement row(file, "SELECT record FROM head WHERE what = ?", name);
  row.bind(1, std::string(what));
  if (!row.next()) fail_as_damaged(name);
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

std::string database_of(const database_contents& c, const std::stop_token& stop) {
  const std::string name = "a database of knowledge";
  const auto owner = new_database(name);
  sqlite3* const file = owner.get();
  for (const schema_entry& entry : schema) statement(file, std::string(entry.sql), name).run();
  statement(file, "BEGIN", name).run();
  {
    statement head(file, "INSERT INTO head VALUES (?, ?)", name);
    const database_head h{.machine = c.machine,
                          .num_contexts = std::int64_t(c.contexts.size()),
                          .num_runs = std::int64_t(c.runs.size()),
                          .recent = c.recent};
    head.bind(1, std::string("store")).bind_bytes(2, sealed(packed(h))).run();
    head.bind(1, std::string("earlier")).bind_bytes(2, sealed(packed(c.earlier_ids))).run();
    std::int64_t number = 0;
    for (const database_contents::context& each : c.contexts) {
      if (stop.stop_requested()) break;
      statement context(file, "INSERT INTO context VALUES (?, ?, ?, ?)", name);
      context.bind(1, ++number)
          .bind(2, number_of(each.known.of))
          .bind_bytes(3, sealed(packed(each.known)));
      // Mostly they are the same.
      if (each.earlier)
        context.bind_bytes(4, *each.earlier == each.known ? "" : sealed(packed(*each.earlier)));
      context.run();
    }
    statement run(file, "INSERT INTO run VALUES (?, ?)", name);
    number = 0;
    for (const knowledge::stored_run& r : c.runs) {
      if (stop.stop_requested()) break;
      run.bind(1, ++number).bind_bytes(2, sealed(packed(r))).run();
    }
  }
  statement(file, "COMMIT", name).run();
  sqlite3_int64 size = 0;
  unsigned char* const bytes = ::sqlite3_serialize(file, "main", &size, 0);
  if (!bytes) throw std::bad_alloc();
  const std::unique_ptr<unsigned char, decltype(&::sqlite3_free)> freed(bytes, &::sqlite3_free);
  return {reinterpret_cast<const char*>(bytes), std::size_t(size)};
}

database_contents contents_of_database(std::string_view bytes, const std::string& name,
                                       const std::stop_token& stop) {
  std::string copy(bytes);
  const auto owner = untrusted_bytes(copy, name, schema);
  sqlite3* const file = owner.get();
  const database_head head = unpacked_head(head_record(file, "store", name), name);
  database_contents c{.machine = head.machine,
                      .recent = head.recent,
                      .earlier_ids = unpacked_ids(head_record(file, "earlier", name), name)};
  statement context(file, "SELECT place, problem, known, earlier FROM context ORDER BY place",
                    name);
  while (!stop.stop_requested() && context.next()) {
    database_contents::context& each = c.contexts.emplace_back();
    each.known = experience_in(context, 2, name);
    if (context.integer(0) != std::int64_t(c.contexts.size()) ||
        context.integer(1) != number_of(each.known.of))
      fail_as_damaged(name);
    if (context.is_null(3)) continue;
    each.earlier = context.bytes(3).empty() ? each.known : experience_in(context, 3, name);
    if (!(each.earlier->of == each.known.of)) fail_as_damaged(name);
  }
  statement run(file, "SELECT place, record FROM run ORDER BY place", name);
  while (!stop.stop_requested() && run.next()) {
    c.runs.push_back(unpacked_run(unsealed(run.bytes(1), name), name));
    if (run.integer(0) != std::int64_t(c.runs.size())) fail_as_damaged(name);
  }
  if (!stop.stop_requested() && (std::int64_t(c.contexts.size()) != head.num_contexts ||
                                 std::int64_t(c.runs.size()) != head.num_runs))
    fail_as_damaged(name);
  return c;
}

database::database(const std::filesystem::path& path)
    : name_(path.string()), file_(untrusted_file(path, schema)) {
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
    if (row.integer(0) != std::int64_t(contexts.size())) fail_as_damaged(name_);
  }
  if (std::int64_t(contexts.size()) != expected) fail_as_damaged(name_);
  return contexts;
}

std::optional<knowledge::experience> database::find(const knowledge::problem& p) const {
  statement row(file_.get(), "SELECT known FROM context WHERE problem = ? LIMIT 8", name_);
  row.bind(1, number_of(p));
  while (row.next())
    if (knowledge::experience e = experience_in(row, 0, name_); e.of == p) return e;
  return std::nullopt;
}

}  // namespace railpass::internal::store
