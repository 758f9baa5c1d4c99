// SPDX-License-Identifier: BSL-1.0
//
// Files that somebody else made so that who reads them waits, computes or takes memory for ever:
// they are refused at once with a sentence that names them.
#include "lib/files/files.hpp"
#include "lib/files/json_reader.hpp"
#include "lib/store/folder.hpp"
#include "lib/store/store.hpp"
#include "lib/store/untrusted.hpp"
#include "railpass/base/error.hpp"
#include "support/catch.hpp"
#include "support/scratch_directory.hpp"

#include <array>
#include <fstream>
#include <functional>
#include <sqlite3.h>
#include <sys/stat.h>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
namespace fs = std::filesystem;

namespace {

const fingerprint machine{.num_hosts = 1,
                          .cores_per_host = 8,
                          .cpu_model = "Imaginary 3000",
                          .mpi_library = "Some MPI 1.0"};

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const error& problem) {
    return problem.what();
  }
  return "";
}

void make_database(const fs::path& path, const std::string& sql) {
  sqlite3* file = nullptr;
  REQUIRE(::sqlite3_open(path.c_str(), &file) == SQLITE_OK);
  const int code = ::sqlite3_exec(file, sql.c_str(), nullptr, nullptr, nullptr);
  INFO(::sqlite3_errmsg(file));
  CHECK(code == SQLITE_OK);
  ::sqlite3_close(file);
}

std::string content(const fs::path& path) { return files::read_text(path.string()); }

// A store of one run that is in a database.
fs::path database_in(const fs::path& store) {
  const std::string at = "2026-01-31T12:00:00Z";
  knowledge::experience e{
      .of = {.collective = "broadcast", .num_ranks = 8, .ranks_per_node = 8, .bytes = 8},
      .arms = {{.arm = "native",
                .calls = 8,
                .times = {.samples = 8,
                          .mean_s = 1,
                          .spread = 0.25,
                          .quantiles = {.low_s = 1, .median_s = 1, .high_s = 1}}}},
      .first_at = at,
      .last_at = at};
  store::add(store, {.machine = machine, .ended_at = at, .contexts = {e}});
  CHECK(store::compact(store).files == 1);
  return store::database_file(store::folder_of(store, machine), 1);
}

// All that reads a store leaves the file out, says so and lets it be.
void check_left_out(const fs::path& own, const fs::path& file) {
  const bool is_regular = fs::is_regular_file(file);
  const std::string before = is_regular ? content(file) : "";
  const auto check_said = [&](const std::vector<std::string>& problems) {
    REQUIRE(problems.size() == 1);
    CHECK_THAT(problems[0], ContainsSubstring(file.string() + ": "));
  };
  const store::known found = store::read({.own = own, .others = {}}, machine, 100);
  CHECK(found.contexts.empty());
  check_said(found.problems);
  check_said(store::contents(own).problems);
  check_said(store::compact(own).problems);
  CHECK(fs::exists(file));
  if (is_regular) CHECK(content(file) == before);
}

void put(std::string& page, std::size_t at, std::uint32_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) page[at + i] = char(value >> 8 * (bytes - 1 - i));
}

}  // namespace

TEST_CASE("what is no regular file is refused, and nobody waits for who might write to it") {
  const scratch_directory folder;
  const std::string pipe = folder.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(message_of([&] { files::read_text(pipe); }) ==
        pipe + ": cannot be read: expected a regular file, found a pipe");
  const std::string path = folder.path().string();
  CHECK(message_of([&] { files::read_text(path); }) ==
        path + ": cannot be read: expected a regular file, found a folder");
  CHECK_THAT(message_of([] { files::read_text("/dev/zero"); }), ContainsSubstring("a device"));
  fs::create_symlink("/dev/zero", folder.file("link"));
  CHECK_THAT(message_of([&] { files::read_text(folder.file("link")); }),
             ContainsSubstring("a device"));
}

TEST_CASE("a file that is too long is refused before it is read") {
  const scratch_directory folder;
  const std::string path = folder.file("long");
  std::ofstream(path) << 'x';
  fs::resize_file(path, files::largest_input_bytes + 1);  // it takes no space
  CHECK(message_of([&] { files::read_text(path); }) ==
        path + ": cannot be read: expected at most 256 MiB");
  fs::resize_file(path, (std::uint64_t{1} << 20) + 1);
  CHECK(message_of([&] { files::read_text(path, std::uint64_t{1} << 20); }) ==
        path + ": cannot be read: expected at most 1 MiB");
  CHECK(content(path).size() == (1 << 20) + 1);
}

TEST_CASE("files that say what they are, and JSON that is nested too deeply") {
  CHECK(files::format_of("{\"format\": \"railpass samples\"}", "file") == "railpass samples");
  for (const std::string none : {"", "text", "[1]", "{\"format\": 1}", "{}"})
    CHECK(files::format_of(none, "file").empty());
  CHECK(files::format_of(std::string(4 << 20, '['), "file").empty());
  std::string deep;
  for (int i = 0; i < 1 << 20; ++i) deep += "{\"a\":";
  CHECK_THAT(message_of([&] { files::format_of(deep, "file"); }),
             ContainsSubstring("nested at most 64 deep"));
}

TEST_CASE("a pipe in place of a run, a database or a lease holds nobody up") {
  for (const std::string name : {"20260131T120000Z-0123456789abcdef.run",
                                 "20260131T120000Z-0123456789abcdef.running", "7.db"}) {
    CAPTURE(name);
    const scratch_directory own;
    const fs::path folder = store::folder_of(own.path(), machine);
    fs::create_directories(folder);
    REQUIRE(::mkfifo((folder / name).c_str(), 0600) == 0);
    check_left_out(own.path(), folder / name);
  }
  const scratch_directory own;
  database_in(own.path());
  const fs::path folder = store::folder_of(own.path(), machine);
  REQUIRE(::mkfifo((folder / "lease-0123456789abcdef").c_str(), 0600) == 0);
  const store::compacted report = store::compact(own.path());
  REQUIRE(report.problems.size() == 1);  // as long as it is new, like one that is cut short
  CHECK_THAT(report.problems[0], ContainsSubstring("another process"));
}

TEST_CASE("a database with another schema than ours is left out before anything in it runs") {
  for (const std::string sql :
       {"CREATE VIEW head AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n)"
        " SELECT 'store' AS what, x AS record FROM n WHERE x<0",
        "CREATE VIEW head AS SELECT 'store' AS what, hex(zeroblob(450000000)) AS record",
        "CREATE TABLE head(what TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID",
        "CREATE TABLE a(b)", "PRAGMA user_version=1"}) {
    CAPTURE(sql);
    const scratch_directory own;
    const fs::path folder = store::folder_of(own.path(), machine);
    fs::create_directories(folder);
    make_database(folder / "7.db", sql);
    check_left_out(own.path(), folder / "7.db");
  }
}

TEST_CASE("a database of ours that somebody added to is left out") {
  for (const std::string sql :
       {"CREATE TABLE more(a)", "CREATE INDEX more ON run(record)",
        "CREATE VIEW more AS SELECT * FROM run",
        "CREATE TRIGGER more AFTER INSERT ON run BEGIN DELETE FROM run; END",
        "PRAGMA writable_schema=ON; INSERT INTO sqlite_master VALUES"
        " ('table', 'more', 'more', 0, 'CREATE VIRTUAL TABLE more USING anything(a)')",
        "DROP INDEX context_problem",
        "DROP INDEX context_problem; CREATE INDEX context_problem ON context(problem, place)",
        "DROP TABLE run; CREATE TABLE run(place INTEGER PRIMARY KEY, record BLOB NOT NULL"
        " CHECK(record <> hex(zeroblob(450000000))))",
        "DROP TABLE run; CREATE VIEW run AS SELECT place, known AS record FROM context",
        "ANALYZE"}) {
    CAPTURE(sql);
    const scratch_directory own;
    const fs::path file = database_in(own.path());
    make_database(file, sql);
    check_left_out(own.path(), file);
  }
}

TEST_CASE("a database of very many tables takes no memory for them") {
  const scratch_directory own;
  const fs::path file = database_in(own.path());
  std::string sql = "BEGIN;";
  for (int i = 0; i < 2000; ++i) sql += "CREATE TABLE t" + std::to_string(i) + "(a);";
  make_database(file, sql + "COMMIT;");
  check_left_out(own.path(), file);
}

TEST_CASE("statements do nothing but read the tables of the schema") {
  static constexpr std::array<store::schema_entry, 1> schema{
      {{"t", "CREATE TABLE t(a INTEGER PRIMARY KEY, b)"}}};
  const scratch_directory folder;
  const std::string path = folder.file("file.db");
  make_database(path, std::string(schema[0].sql) + "; INSERT INTO t VALUES (1, 2)");
  const auto file = store::untrusted_file(path, schema);
  store::statement row(file.get(), "SELECT b FROM t", path);
  CHECK((row.next() && row.integer(0) == 2 && !row.next()));
  for (const char* const sql :
       {"INSERT INTO t VALUES (2, 3)", "DELETE FROM t", "DROP TABLE t", "CREATE TABLE u(a)",
        "ATTACH ':memory:' AS other", "PRAGMA writable_schema=ON", "PRAGMA trusted_schema=ON",
        "SELECT hex(b) FROM t", "SELECT * FROM pragma_database_list", "VACUUM", "BEGIN",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT x FROM n"})
    CHECK_THAT(message_of([&] { store::statement(file.get(), sql, path).next(); }),
               ContainsSubstring(path + ": "));
}

TEST_CASE("rows without end are read for a bounded number of steps") {
  static constexpr std::array<store::schema_entry, 1> schema{
      {{"t", "CREATE TABLE t(a INTEGER PRIMARY KEY, b)"}}};
  const scratch_directory folder;
  const std::string path = folder.file("file.db");
  make_database(
      path, "PRAGMA page_size=512;" + std::string(schema[0].sql) + "; INSERT INTO t VALUES (1, 2)");
  // Page 2 is the table, a leaf, and goes to the end. Eleven pages refer to the next one 40 times.
  constexpr std::size_t page_bytes = 512, levels = 11, children = 40;
  std::string bytes = content(path);
  REQUIRE(bytes.size() == 2 * page_bytes);
  const std::string leaf = bytes.substr(page_bytes);
  bytes.resize(page_bytes);
  for (std::size_t level = 0; level < levels; ++level) {
    std::string page(page_bytes, '\0');
    const auto next = std::uint32_t(level + 3);
    page[0] = 5;  // a page within a table
    put(page, 3, children, 2);
    put(page, 8, next, 4);
    for (std::size_t i = 0; i < children; ++i) {
      const std::size_t cell = page_bytes - 5 * (i + 1);
      put(page, 12 + 2 * i, std::uint32_t(cell), 2);
      put(page, cell, next, 4);
      page[cell + 4] = char(i + 1);
    }
    put(page, 5, page_bytes - 5 * children, 2);
    bytes += page;
  }
  bytes += leaf;
  put(bytes, 28, std::uint32_t(bytes.size() / page_bytes), 4);
  std::ofstream(path, std::ios::binary) << bytes;
  const auto file = store::untrusted_file(path, schema);
  const std::string problem = message_of([&] {
    store::statement row(file.get(), "SELECT a FROM t", path);
    while (row.next()) {
    }
  });
  CHECK_THAT(problem, ContainsSubstring("interrupted"));
  CHECK_THAT(message_of([&] { store::untrusted_bytes(bytes, path, schema); }),
             ContainsSubstring(path + ": corrupt"));
}
