// SPDX-License-Identifier: BSL-1.0
#include "lib/store/store.hpp"

#include "lib/files/files.hpp"
#include "lib/store/database.hpp"
#include "lib/store/folder.hpp"
#include "lib/store/record.hpp"
#include "lib/store/sources.hpp"
#include "railpass/knowledge/joined.hpp"
#include "support/catch.hpp"
#include "support/scratch_directory.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <ctime>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace railpass;
using namespace railpass::internal;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t all_contexts = 100000;

const fingerprint machine{.num_hosts = 4,
                          .cores_per_host = 8,
                          .cpu_model = "Imaginary 3000",
                          .mpi_library = "Some MPI 1.0"};

// Times are powers of two (or multiples), which single precision represents exactly.
knowledge::arm_experience arm(const std::string& name, std::int64_t samples, double mean_s) {
  return {
      .arm = name,
      .calls = 2 * samples,
      .times = {.samples = samples,
                .mean_s = mean_s,
                .spread = 0.25,
                .quantiles = {.low_s = mean_s * 0.5, .median_s = mean_s, .high_s = mean_s * 2}}};
}

knowledge::experience context(std::int64_t bytes, std::int64_t samples = 8,
                              const std::string& at = "2026-01-31T12:00:00Z") {
  knowledge::experience e{.of = {.collective = "all_reduce",
                                 .operation = "builtin",
                                 .num_ranks = 32,
                                 .ranks_per_node = 8,
                                 .bytes = bytes},
                          .arms = {arm("native", samples, std::exp2(-10)),
                                   arm("ring+segment_bytes=8192", samples, std::exp2(-11))},
                          .first_at = at,
                          .last_at = at};
  e.arms[1].prior = {.mean_s = std::exp2(-12), .spread = 0.5};
  e.arms[1].pairs = {.pairs = samples, .wins = samples / 2, .gain = 0.5, .deviation = 0.125};
  return e;
}

knowledge::run_record run(std::vector<knowledge::experience> contexts,
                          const std::string& at = "2026-01-31T12:00:00Z") {
  for (knowledge::experience& e : contexts) e.first_at = e.last_at = at;
  return {.machine = machine,
          .was = {.railpass_version = "0.1.0",
                  .governor = "performance",
                  .load = 1.5,
                  .kernel = "6.1.0",
                  .drivers = "xpmem 2.7"},
          .ended_at = at,
          .contexts = std::move(contexts)};
}

// Run n of many: a problem of its own, and a problem that all runs share.
knowledge::run_record numbered(int n) {
  return run({context(1), context(1000 + n)}, "2026-02-01T00:00:00Z");
}

std::vector<knowledge::experience> read(const fs::path& own) {
  store::known found = store::read({.own = own, .others = {}}, machine, all_contexts);
  CHECK(found.problems.empty());
  std::ranges::sort(found.contexts, {}, [](const auto& e) { return e.of.bytes; });
  return found.contexts;
}

std::vector<fs::path> files_in(const fs::path& own, const std::string& part) {
  std::vector<fs::path> found;
  if (!fs::exists(own)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(own))
    if (entry.is_regular_file() && entry.path().filename().string().find(part) != std::string::npos)
      found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

std::string content(const fs::path& path) { return files::read_text(path.string()); }

pid_t in_process(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    work();
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

int status_of(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

// Checks that each of the runs is there exactly once.
void check_numbered(const fs::path& own, int num_runs) {
  const auto contexts = read(own);
  REQUIRE(contexts.size() == std::size_t(num_runs) + 1);
  CHECK(contexts[0].runs == num_runs);
  CHECK(contexts[0].arms[0].times.samples == 8 * num_runs);
  for (int n = 0; n < num_runs; ++n) {
    CHECK(contexts[std::size_t(n) + 1].of.bytes == 1000 + n);
    CHECK(contexts[std::size_t(n) + 1].runs == 1);
  }
}

}  // namespace

TEST_CASE(
    "what a run adds is what the next one reads, before and after files are brought together") {
  const scratch_directory folder;
  CHECK(read(folder.path() / "none").empty());
  const std::vector contexts = {context(8), context(1024, 16), context(65536)};
  store::add(folder.path(), run(contexts));
  CHECK(read(folder.path()) == contexts);
  CHECK(files_in(folder.path(), "").size() == 1);
  const store::compacted report = store::compact(folder.path());
  CHECK(report.files == 1);
  CHECK(report.contexts == 3);
  CHECK(report.problems.empty());
  CHECK(read(folder.path()) == contexts);
  CHECK(files_in(folder.path(), "").size() == 1);
  // Compacting again changes nothing except the names of the files, which are gone.
  store::compact(folder.path());
  const auto files = files_in(folder.path(), "");
  store::compact(folder.path());
  CHECK(files_in(folder.path(), "") == files);
  CHECK(read(folder.path()) == contexts);
  const store::store_contents all = store::contents(folder.path());
  REQUIRE(all.machines.size() == 1);
  REQUIRE(all.machines[0].runs.size() == 1);
  CHECK(all.machines[0].runs[0].run.was == run({}).was);
  CHECK(all.machines[0].machine == machine);
}

TEST_CASE("knowledge is of machines with the same marks, however many hosts beyond one") {
  const scratch_directory folder;
  store::add(folder.path(), run({context(8)}));
  const auto known_on = [&](fingerprint here) {
    return store::read({.own = folder.path(), .others = {}}, here, 10).contexts.size();
  };
  for (const bool together : {false, true}) {
    if (together) store::compact(folder.path());
    fingerprint here = machine;
    CHECK(known_on(here) == 1);
    here.num_hosts = 100;
    CHECK(known_on(here) == 1);
    here.num_hosts = 1;
    CHECK(known_on(here) == 1);
    here.cpu_model.clear();
    CHECK(known_on(here) == 1);
    here.mpi_library = "Some MPI 1.1";
    CHECK(known_on(here) == 0);
    here = machine;
    here.rails = "eth1";
    CHECK(known_on(here) == 0);
  }
  knowledge::run_record alone = run({context(16)});
  alone.machine.num_hosts = 1;
  store::add(folder.path(), alone);
  CHECK(known_on(alone.machine) == 2);
  CHECK(known_on(machine) == 1);
}

TEST_CASE("at most so many contexts are read, the most useful ones, also beside the database") {
  const scratch_directory folder;
  std::vector<knowledge::experience> contexts;
  for (int i = 1; i <= 50; ++i) contexts.push_back(context(i, i));
  store::add(folder.path(), run(contexts));
  for (const bool together : {false, true}) {
    if (together) store::compact(folder.path());
    const auto best = store::read({.own = folder.path(), .others = {}}, machine, 3).contexts;
    REQUIRE(best.size() == 3);
    for (int i = 0; i < 3; ++i) CHECK(best[std::size_t(i)].of.bytes == 50 - i);
  }
  // The least useful problem is now used a lot: runs in the database count, too.
  store::add(folder.path(), run({context(1, 1000)}));
  const auto best = store::read({.own = folder.path(), .others = {}}, machine, 1).contexts;
  REQUIRE(best.size() == 1);
  CHECK(best[0].of.bytes == 1);
  CHECK(best[0].runs == 2);
  CHECK(best[0].arms[0].times.samples == 1001);
}

TEST_CASE("what several places know comes from the one with the most samples") {
  const scratch_directory own, site;
  store::add(own.path(), run({context(1, 10), context(2, 100)}));
  store::add(site.path(), run({context(1, 50), context(2, 50), context(3, 50)}));
  const auto found = store::read({.own = own.path(), .others = {site.path()}}, machine, 10);
  REQUIRE(found.contexts.size() == 3);
  for (const knowledge::experience& e : found.contexts) {
    CHECK(e.runs == 1);
    CHECK(e.arms[0].times.samples == (e.of.bytes == 2 ? 100 : 50));
  }
}

TEST_CASE("places") {
  const auto of = store::locations_of("/a:/b c:/d");
  CHECK(of.own == "/a");
  CHECK(of.others == std::vector<fs::path>{"/b c", "/d"});
  CHECK(of.site == "/var/lib/railpass");
  CHECK_THROWS_WITH(store::locations_of("/a::/b"),
                    ContainsSubstring("RAILPASS_KNOWLEDGE '/a::/b'"));
  CHECK_THROWS_AS(store::locations_of(""), error);
  CHECK(store::locations_of("off").own.empty());
  CHECK(store::locations_of("off").others.empty());
  CHECK(store::locations_of("off").site == "/var/lib/railpass");
  const scratch_directory site;
  ::setenv("RAILPASS_SITE", site.path().c_str(), 1);
  ::setenv("XDG_STATE_HOME", "/state", 1);
  CHECK(store::locations_of("on").others == std::vector<fs::path>{site.path()});
  CHECK(store::locations_of("on").site == site.path());
  ::setenv("RAILPASS_SITE", "", 1);
  CHECK(store::locations_of("on").others.empty());
  CHECK(store::locations_of("off").site.empty());
  CHECK(store::locations_of("on").own == "/state/railpass");
  ::setenv("XDG_STATE_HOME", "not/absolute", 1);
  ::setenv("HOME", "/home/somebody", 1);
  CHECK(store::locations_of("on").own == "/home/somebody/.local/state/railpass");
  ::unsetenv("XDG_STATE_HOME");
  ::unsetenv("HOME");
  CHECK_THROWS_WITH(store::locations_of("on"), ContainsSubstring("HOME"));
}

TEST_CASE("older runs do not drown newer ones, and few samples do not outweigh many") {
  using knowledge::joined;
  knowledge::experience known = context(8, 1000000);
  known.arms.resize(1);
  known.arms[0].pairs = {.pairs = 1000000, .wins = 1000000, .gain = 1, .deviation = 0.01};
  const knowledge::experience old = known;
  // The machine has become four times slower.
  for (int n = 1; n <= 12; ++n) {
    knowledge::experience slow =
        context(8, 100, "2026-03-0" + std::to_string(n % 9 + 1) + "T00:00:00Z");
    slow.arms = {arm("native", 100, std::exp2(-8))};
    slow.arms[0].pairs = {.pairs = 100, .wins = 0, .gain = -1, .deviation = 0.01};
    slow.last_at = "2026-03-01T00:00:" + std::to_string(10 + n) + "Z";
    known = joined(known, slow);
    CHECK(known.runs == n + 1);
  }
  CHECK(known.arms[0].times.samples == 1001200);
  CHECK(known.arms[0].calls == 2 * 1001200);
  CHECK(known.arms[0].times.mean_s > 0.9 * std::exp2(-8));
  CHECK(known.arms[0].times.quantiles.median_s > 0.9 * std::exp2(-8));
  CHECK(known.arms[0].pairs->gain < -0.8);
  CHECK(known.arms[0].pairs->pairs == 1001200);
  CHECK(known.first_at == old.first_at);
  CHECK(known.last_at == "2026-03-01T00:00:22Z");
  // One sample against a million makes hardly a difference.
  knowledge::experience one = context(8, 1, "2026-03-01T00:00:00Z");
  one.arms = {arm("native", 1, std::exp2(-8))};
  CHECK(joined(old, one).arms[0].times.mean_s < 1.1 * old.arms[0].times.mean_s);
  // The order does not matter.
  CHECK(joined(old, one) == joined(one, old));
  // The joint spread consists of the single spreads and the distance of the means.
  knowledge::experience a = context(8, 10), b = context(8, 10, "2026-03-01T00:00:00Z");
  a.arms = {arm("native", 10, 1)};
  b.arms = {arm("native", 10, 2), arm("ring", 3, 1)};
  const knowledge::experience both = joined(a, b);
  REQUIRE(both.arms.size() == 2);
  CHECK(both.arms[0].times.mean_s == Approx(1.5));
  CHECK(both.arms[0].times.spread ==
        Approx(std::sqrt(0.25 * 0.25 + 0.25 * std::log(2) * std::log(2))));
  CHECK(both.arms[1] == b.arms[1]);
}

TEST_CASE("contexts are handed out in as many bytes as there are, the first ones first") {
  std::vector<knowledge::experience> contexts;
  for (int i = 1; i <= 300; ++i) contexts.push_back(context(i));
  CHECK(store::decode(store::encode(contexts, 1 << 20)) == contexts);
  std::size_t before = 0;
  for (const std::size_t most : {std::size_t(10), std::size_t(1000), std::size_t(10000)}) {
    const std::string bytes = store::encode(contexts, most);
    CHECK(bytes.size() <= most);
    const auto some = store::decode(bytes);
    CHECK(std::equal(some.begin(), some.end(), contexts.begin()));
    CHECK(some.size() >= before);
    before = some.size();
  }
  CHECK(before > 20);
  const std::string bytes = store::encode(std::span(contexts).first(3), 1 << 16);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    CHECK_THROWS_AS(store::decode(bytes.substr(0, cut)), error);
  CHECK_THROWS_AS(store::decode(bytes + 'x'), error);
  // Nested deeply enough to overflow the stack of a recursive parser.
  CHECK_THROWS_AS(store::decode(std::string(1 << 20, '\x81')), error);
  CHECK_THROWS_AS(store::decode(std::string(1 << 20, '\xa1')), error);
  CHECK_THROWS_AS(store::decode(std::string(1 << 20, '\xc1')), error);
}

TEST_CASE("a byte that has changed in a run's file is noticed, and the file is left alone") {
  const scratch_directory folder;
  store::add(folder.path(), run({context(8)}));
  const fs::path path = files_in(folder.path(), ".run").at(0);
  const std::string intact = content(path);
  const auto check_noticed = [&](const std::string& damaged) {
    write_anew(path, damaged);
    const store::known found = store::read({.own = folder.path(), .others = {}}, machine, 10);
    CHECK(found.contexts.empty());
    REQUIRE(found.problems.size() == 1);
    CHECK_THAT(found.problems[0], ContainsSubstring(path.string()));
  };
  for (std::size_t i = 0; i < intact.size(); ++i)
    for (const int bit : {0, 1, 5, 7}) {
      CAPTURE(i, bit);
      std::string damaged = intact;
      damaged[i] = char(damaged[i] ^ (1 << bit));
      check_noticed(damaged);
    }
  for (std::size_t cut = 0; cut < intact.size(); cut += 7) check_noticed(intact.substr(0, cut));
  // compact() leaves the damaged file in place, too.
  std::string damaged = intact;
  damaged[intact.size() / 2] ^= 1;
  write_anew(path, damaged);
  const store::compacted report = store::compact(folder.path());
  REQUIRE(report.problems.size() == 1);
  CHECK(content(path) == damaged);
  CHECK(files_in(folder.path(), "").size() == 1);
}

TEST_CASE("a byte that has changed in a database is noticed, or makes no difference") {
  const scratch_directory folder;
  store::add(folder.path(), run({context(8), context(16), context(32)}));
  store::add(folder.path(), run({context(8)}, "2026-02-01T12:00:00Z"));
  store::compact(folder.path());
  const auto intact_contexts = read(folder.path());
  const store::store_contents intact_all = store::contents(folder.path());
  const fs::path path = files_in(folder.path(), ".db").at(0);
  const std::string intact = content(path);
  std::mt19937_64 random(1);
  std::size_t noticed = 0;
  for (std::size_t i = 0; i < intact.size(); ++i) {
    // Most of the file is empty space.
    if (intact[i] == 0 && random() % 16 != 0) continue;
    CAPTURE(i);
    std::string damaged = intact;
    damaged[i] = char(damaged[i] ^ (1 << random() % 8));
    write_anew(path, damaged);
    store::known found = store::read({.own = folder.path(), .others = {}}, machine, 10);
    std::ranges::sort(found.contexts, {}, [](const auto& e) { return e.of.bytes; });
    if (found.problems.empty())
      CHECK(found.contexts == intact_contexts);
    else
      CHECK(found.contexts.empty());
    noticed += found.problems.empty() ? 0 : 1;
    const store::store_contents all = store::contents(folder.path());
    if (all.problems.empty()) {
      CHECK(all.machines[0].contexts == intact_all.machines[0].contexts);
      CHECK(all.machines[0].runs == intact_all.machines[0].runs);
    }
  }
  CHECK(noticed > 500);
}

TEST_CASE("a damaged database stays, and a new one begins beside it") {
  const scratch_directory folder;
  store::add(folder.path(), run({context(8)}));
  store::compact(folder.path());
  const fs::path path = files_in(folder.path(), ".db").at(0);
  std::string damaged = content(path);
  const std::size_t at = damaged.find("all_reduce");
  REQUIRE(at != std::string::npos);
  damaged[at] = 'A';
  write_anew(path, damaged);
  store::add(folder.path(), run({context(16)}));
  const auto look = store::read({.own = folder.path(), .others = {}}, machine, 10);
  REQUIRE(look.contexts.size() == 1);
  CHECK(look.contexts[0].of.bytes == 16);
  CHECK(look.problems.size() == 1);
  const store::compacted report = store::compact(folder.path());
  CHECK(report.problems.size() == 1);
  CHECK(content(path) == damaged);
  CHECK(read(folder.path()).size() == 1);
  store::add(folder.path(), run({context(32)}));
  store::compact(folder.path());
  CHECK(content(path) == damaged);
  CHECK(read(folder.path()).size() == 2);
}

TEST_CASE("what a newer railpass wrote is left out and left alone") {
  const scratch_directory folder;
  const auto make_newer = [](const fs::path& path) {
    std::string text = content(path);
    const std::string line = "railpass knowledge 1 ";
    for (std::size_t at; (at = text.find(line)) != std::string::npos;)
      text[at + line.size() - 2] = '7';
    write_anew(path, text);
  };
  store::add(folder.path(), run({context(8)}));
  const fs::path newer_run = files_in(folder.path(), ".run").at(0);
  make_newer(newer_run);
  store::add(folder.path(), run({context(16)}));
  const auto check_said = [](const std::vector<std::string>& problems) {
    REQUIRE(problems.size() == 1);
    CHECK_THAT(problems[0], ContainsSubstring("version 7 is newer"));
  };
  store::known found = store::read({.own = folder.path(), .others = {}}, machine, 10);
  CHECK(found.contexts.size() == 1);
  check_said(found.problems);
  check_said(store::compact(folder.path()).problems);
  CHECK(fs::exists(newer_run));
  fs::remove(newer_run);
  CHECK(read(folder.path()).size() == 1);
  // The same with a database: runs still add files, and compact() does nothing.
  const fs::path newer_database = files_in(folder.path(), ".db").at(0);
  make_newer(newer_database);
  const std::string kept = content(newer_database);
  store::add(folder.path(), run({context(32)}));
  check_said(store::compact(folder.path()).problems);
  CHECK(content(newer_database) == kept);
  found = store::read({.own = folder.path(), .others = {}}, machine, 10);
  CHECK(found.contexts.size() == 1);
  check_said(found.problems);
}

TEST_CASE("200 runs that end in the same second, from several processes") {
  const scratch_directory folder;
  std::vector<pid_t> children;
  for (int process = 0; process < 8; ++process)
    children.push_back(in_process([&] {
      for (int i = 0; i < 25; ++i) store::add(folder.path(), numbered(process * 25 + i));
    }));
  for (const pid_t child : children) CHECK(status_of(child) == 0);
  CHECK(files_in(folder.path(), "").size() == 200);
  CHECK(read(folder.path()).size() == 65);  // more files than a run reads at its start
  store::compact(folder.path());
  check_numbered(folder.path(), 200);
}

TEST_CASE(
    "files are brought together by several at once while runs add more: none lost, none twice") {
  const scratch_directory folder;
  constexpr int runs = 120;
  std::vector<pid_t> writers, others;
  for (int process = 0; process < 3; ++process)
    writers.push_back(in_process([&] {
      for (int i = 0; i < runs / 3; ++i)
        store::add(folder.path(), numbered(process * (runs / 3) + i));
    }));
  // A process without a lease stands for a process whose clock is wrong.
  for (int process = 0; process < 4; ++process)
    others.push_back(in_process([&] {
      for (;;) {
        store::compact(folder.path());
        if (process == 0)
          for (const fs::path& lease : files_in(folder.path(), "lease")) ::unlink(lease.c_str());
      }
    }));
  // Concurrent reads never contain a run twice, nor fewer runs than before.
  std::int64_t before = 0;
  for (int i = 0; i < 30; ++i) {
    for (const knowledge::experience& e :
         store::read({.own = folder.path(), .others = {}}, machine, all_contexts).contexts)
      if (e.of.bytes == 1) {
        CHECK(e.arms[0].times.samples == 8 * e.runs);
        CHECK(e.runs <= runs);
        CHECK(e.runs >= std::min<std::int64_t>(before, 64));
        before = std::max(before, e.runs);
      } else {
        CHECK(e.runs == 1);
      }
  }
  for (const pid_t child : writers) CHECK(status_of(child) == 0);
  for (const pid_t child : others) {
    ::kill(child, SIGKILL);
    status_of(child);
  }
  for (const fs::path& lease : files_in(folder.path(), "lease")) fs::remove(lease);
  store::compact(folder.path());
  store::compact(folder.path());
  check_numbered(folder.path(), runs);
}

TEST_CASE(
    "a process that is killed while it adds or brings together leaves a store that is whole") {
  const scratch_directory folder;
  int written = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = in_process([&] {
      for (int n = 0;; ++n) {
        store::add(folder.path(), numbered(i * 1000 + n));
        if (n % 5 == 4) store::compact(folder.path());
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(3 + 2 * i));
    ::kill(child, SIGKILL);
    status_of(child);
    const store::store_contents all = store::contents(folder.path());
    CHECK(all.problems.empty());
    if (all.machines.empty() || all.machines[0].contexts.empty()) continue;
    std::int64_t shared = 0;
    for (const knowledge::experience& e : all.machines[0].contexts)
      if (e.of.bytes == 1) shared = e.runs;
    CHECK(std::size_t(shared) + 1 == all.machines[0].contexts.size());
    CHECK(shared >= written);
    written = int(shared);
    for (const fs::path& lease : files_in(folder.path(), "lease")) fs::remove(lease);
  }
  CHECK(written > 0);
  // Old leftovers are removed.
  const fs::path machine_folder = files_in(folder.path(), "").at(0).parent_path();
  write_anew(machine_folder / "20260131T120000Z-0123456789abcdef.run.tmp0123456789abcdef", "half");
  write_anew(machine_folder / "7.db.tmp0123456789abcdef", "");
  store::compact(folder.path());
  CHECK(files_in(folder.path(), ".tmp").size() >= 2);
  for (const fs::path& path : files_in(folder.path(), ".tmp"))
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
  store::compact(folder.path());
  CHECK(files_in(folder.path(), ".tmp").empty());
  CHECK(read(folder.path()).size() == std::size_t(written) + 1);
}

TEST_CASE("a lease keeps others out until it expires, and then one takes it over") {
  const scratch_directory folder;
  store::add(folder.path(), run({context(8)}));
  const fs::path where = files_in(folder.path(), ".run").at(0).parent_path(),
                 other = where / "lease-0123456789abcdef";
  {
    const auto mine = store::lease::take(where);
    REQUIRE(mine);
    CHECK(!store::lease::take(where));
    const store::compacted report = store::compact(folder.path());
    REQUIRE(report.problems.size() == 1);
    CHECK_THAT(report.problems[0], ContainsSubstring("another process"));
    CHECK(files_in(folder.path(), ".run").size() == 1);
  }
  CHECK(files_in(folder.path(), "lease").empty());
  // A lease of a dead process of this host, and of a living one.
  CHECK(status_of(in_process([&] {
          const auto its = store::lease::take(where);
          ::_exit(its ? 0 : 1);
        })) == 0);
  CHECK(files_in(folder.path(), "lease").size() == 1);
  CHECK(store::lease::take(where));
  CHECK(files_in(folder.path(), "lease").empty());
  const std::int64_t now_s = std::time(nullptr);
  const std::string soon = std::to_string(now_s + 600);
  for (const std::string owner : {" 1 somewhere else\n", " text\n", " -1\n", " 99999999\n"}) {
    write_anew(other, soon + owner);
    CHECK(!store::lease::take(where));
  }
  // A lease in use, and leases of dead processes: of a host whose clock was ahead, cut short now,
  // cut short long ago.
  write_anew(other, soon + "\n");
  CHECK(!store::lease::take(where));
  for (const std::string& until : {std::to_string(now_s + 86400), std::string("9000000000"),
                                   std::string("9223372036854775807")}) {
    write_anew(other, until + " 1 somewhere else\n");
    CHECK(store::lease::take(where));
    CHECK(!fs::exists(other));
  }
  write_anew(other, "");
  CHECK(!store::lease::take(where));
  fs::last_write_time(other, fs::file_time_type::clock::now() - std::chrono::hours(1));
  CHECK(store::lease::take(where));
  CHECK(!fs::exists(other));
  // Of many processes that find an expired lease, at most one takes it.
  int taken_in_all = 0;
  for (int round = 0; round < 50; ++round) {
    write_anew(other, "1000000000\n");
    std::vector<std::optional<store::lease>> taken(4);
    std::vector<std::thread> takers;
    for (auto& one : taken)
      takers.emplace_back([&] {
        if (auto t = store::lease::take(where)) one.emplace(std::move(*t));
      });
    for (std::thread& t : takers) t.join();
    const auto num = std::ranges::count_if(taken, [](const auto& t) { return t.has_value(); });
    CHECK(num <= 1);
    taken_in_all += int(num);
  }
  CHECK(taken_in_all > 0);
  store::compact(folder.path());
  CHECK(read(folder.path()).size() == 1);
  CHECK(files_in(folder.path(), ".run").empty());
}

TEST_CASE("a run whose file is still there after it came into the database counts once") {
  const scratch_directory folder;
  store::add(folder.path(), run({context(8)}));
  const fs::path path = files_in(folder.path(), ".run").at(0);
  const std::string text = content(path);
  store::compact(folder.path());
  write_anew(path, text);  // as after a crash between the two
  CHECK(read(folder.path()).at(0).runs == 1);
  store::compact(folder.path());
  CHECK(!fs::exists(path));
  CHECK(read(folder.path()).at(0).runs == 1);
}

TEST_CASE("stores and exports are merged each run once, however often they come") {
  const scratch_directory mine, theirs;
  for (int n = 0; n < 5; ++n) store::add(theirs.path(), numbered(n));
  store::compact(theirs.path());
  for (int n = 5; n < 8; ++n) store::add(theirs.path(), numbered(n));
  const auto runs_of = [](const fs::path& place) {
    knowledge::collection all{.written_at = "2026-02-01T00:00:00Z"};
    for (const store::machine_contents& m : store::contents(place).machines)
      all.runs.insert(all.runs.end(), m.runs.begin(), m.runs.end());
    return files::parse_knowledge(files::to_json(all), "export").runs;
  };
  store::added report = store::merge(mine.path(), runs_of(theirs.path()));
  CHECK(report.runs == 8);
  check_numbered(mine.path(), 8);
  for (const bool together : {false, true, true}) {
    if (together) store::compact(mine.path());
    report = store::merge(mine.path(), runs_of(theirs.path()));
    CHECK(report.runs == 0);
    CHECK(report.present == 8);
    check_numbered(mine.path(), 8);
  }
  // Runs that are no longer kept one by one are joined if none of them is in the database.
  store::compact(theirs.path(), {.most_bytes = 3000, .not_before = {}});
  const auto merged = runs_of(theirs.path());
  REQUIRE(merged.size() < 8);
  const scratch_directory fresh;
  store::merge(fresh.path(), merged);
  check_numbered(fresh.path(), 8);
  store::merge(fresh.path(), merged);
  store::compact(fresh.path());
  store::merge(fresh.path(), merged);
  check_numbered(fresh.path(), 8);
  const scratch_directory partly;
  store::add(theirs.path(), numbered(8));
  const auto mine_runs = runs_of(mine.path());
  store::merge(partly.path(), std::span(mine_runs).first(1));
  report = store::merge(partly.path(), runs_of(theirs.path()));
  CHECK(report.runs >= 1);
  REQUIRE(report.problems.size() == 1);
  CHECK_THAT(report.problems[0], ContainsSubstring("cannot be split by run"));
}

TEST_CASE(
    "the database keeps within its bounds: the least useful goes first, and what is too old") {
  const scratch_directory folder;
  for (int day = 10; day < 28; ++day)
    store::add(folder.path(), run({context(day), context(100, 50)},
                                  "2026-01-" + std::to_string(day) + "T12:00:00Z"));
  constexpr std::uint64_t most = 20000;
  const store::compacted report =
      store::compact(folder.path(), {.most_bytes = most, .not_before = {}});
  CHECK(report.contexts == 19);
  CHECK(read(folder.path()).back().runs == 18);
  store::compact(folder.path(), {.most_bytes = most, .not_before = "2026-01-20T00:00:00Z"});
  auto left = read(folder.path());
  REQUIRE(left.size() == 9);
  CHECK(left.front().of.bytes == 20);
  CHECK(left.back().runs >= 8);
  store::compact(folder.path(), {.most_bytes = 2200, .not_before = {}});
  left = read(folder.path());
  CHECK(left.size() < 9);
  CHECK(left.back().of.bytes == 100);
}

TEST_CASE("a large joined run leaves small runs separate") {
  const scratch_directory mine, theirs;
  for (int n = 0; n < 2; ++n) store::add(theirs.path(), numbered(n));
  knowledge::stored_run joined = store::contents(theirs.path()).machines.at(0).runs.at(0);
  joined.ids.push_back(store::contents(theirs.path()).machines.at(0).runs.at(1).ids.at(0));
  std::vector<knowledge::experience> many;
  for (int i = 0; i < 300; ++i) many.push_back(context(5000 + i));
  joined.run = run(std::move(many), "2026-03-01T00:00:00Z");
  for (int n = 2; n < 7; ++n) store::add(mine.path(), numbered(n));
  store::merge(mine.path(), std::vector{joined});
  store::compact(mine.path(), {.most_bytes = 100000, .not_before = {}});
  const auto runs = store::contents(mine.path()).machines.at(0).runs;
  CHECK(std::ranges::count_if(runs, [](const auto& r) { return r.ids.size() == 1; }) == 5);
}

TEST_CASE("a run counts once for a plan, in however many sources it is") {
  const scratch_directory one, other, exported;
  store::add(one.path(), run({context(8)}));
  store::run_under_way going(one.path());
  going.keep(run({context(8)}));
  store::merge(other.path(), store::contents(one.path()).machines.at(0).runs);
  store::add(other.path(), run({context(8)}));
  const std::string file = exported.file("runs.json");
  files::write_text(file, files::to_json(knowledge::collection{
                              .runs = store::contents(one.path()).machines.at(0).runs}));
  std::vector<std::string> problems;
  for (std::vector<std::string> paths :
       {std::vector{one.path().string(), other.path().string(), file, file},
        std::vector{file, other.path().string(), one.path().string(), one.path().string()}}) {
    const auto known = store::latest_machine_of(paths, problems);
    REQUIRE(known.contexts.size() == 1);
    CHECK(known.contexts[0].runs == 3);
  }
  CHECK(problems.empty());
  knowledge::stored_run joined = store::contents(one.path()).machines.at(0).runs.at(0);
  joined.ids.push_back(store::new_id("2026-02-01T12:00:00Z"));
  files::write_text(file, files::to_json(knowledge::collection{.runs = {joined}}));
  std::vector<std::string> overlapping{one.path().string(), file};
  CHECK(store::latest_machine_of(overlapping, problems).contexts[0].runs == 2);
  CHECK(problems.empty());
  joined.ids.back() = store::new_id("2026-02-02T12:00:00Z");
  overlapping.push_back(exported.file("more.json"));
  files::write_text(overlapping.back(), files::to_json(knowledge::collection{.runs = {joined}}));
  CHECK(store::latest_machine_of(overlapping, problems).contexts[0].runs == 2);
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], ContainsSubstring(overlapping.back() + ": 1 of 2 joined runs"));
}

TEST_CASE("a stop request ends the reading and the writing of a database") {
  const scratch_directory folder;
  store::add(folder.path(), run({context(8)}));
  store::compact(folder.path());
  const fs::path path = files_in(folder.path(), ".db").at(0);
  std::stop_source stop;
  const auto read = [&](std::string_view bytes) {
    return store::contents_of_database(bytes, path.string(), stop.get_token());
  };
  const store::database_contents whole = read(content(path));
  CHECK(whole.contexts.size() == 1);
  CHECK(whole.runs.size() == 1);
  CHECK(store::database_of(whole, stop.get_token()) == content(path));
  stop.request_stop();
  CHECK(read(content(path)).contexts.empty());
  CHECK(read(content(path)).runs.empty());
  CHECK_THROWS_AS(store::contents_of_database(store::database_of(whole, stop.get_token()), "it"),
                  error);
}

TEST_CASE("a database of 10000 contexts is read from its beginning") {
  const scratch_directory folder;
  store::database_contents all{.machine = machine};
  for (int i = 0; i < 10000; ++i) all.contexts.push_back({.known = context(i + 1), .earlier = {}});
  const fs::path path = store::database_file(store::folder_of(folder.path(), machine), 1);
  fs::create_directories(path.parent_path());
  REQUIRE(store::write_new(path, store::database_of(all)));
  CHECK(!store::write_new(path, ""));
  CHECK(store::contents_of_database(content(path), "database").contexts.size() == 10000);
  const store::database file(path);
  CHECK(file.best(100).size() == 100);
  CHECK(file.find(context(9999).of) == context(9999));
  CHECK(!file.find(context(10001).of));
  CHECK(read(folder.path()).size() == 10000);
  // Unneeded parts of the file are not read.
  std::string damaged = content(path);
  damaged[damaged.rfind("ring+segment_bytes")] = 'R';
  write_anew(path, damaged);
  CHECK(store::database(path).best(5000).size() == 5000);
  CHECK_THROWS_AS(store::database(path).best(10000), error);
}

TEST_CASE("of a run that learnt more than a file takes the most useful part is kept") {
  const scratch_directory folder;
  std::vector<knowledge::experience> contexts;
  for (int i = 1; i <= 8000; ++i) contexts.push_back(context(i, i));
  store::add(folder.path(), run(contexts));
  CHECK(fs::file_size(files_in(folder.path(), ".run").at(0)) <= 1 << 20);
  const auto found = read(folder.path());
  CHECK(found.size() > 1000);
  CHECK(found.front().of.bytes == 8001 - std::int64_t(found.size()));
}

TEST_CASE("what is no time, no number or no name is not added") {
  const scratch_directory folder;
  const auto refused = [&](const std::function<void(knowledge::run_record&)>& change) {
    knowledge::run_record r = run({context(8)});
    change(r);
    CHECK_THROWS_AS(store::add(folder.path(), r), error);
    CHECK(files_in(folder.path(), "").empty());
  };
  refused([](auto& r) { r.ended_at = "yesterday"; });
  refused([](auto& r) { r.ended_at = "2026-02-30T00:00:00Z"; });
  refused([](auto& r) { r.contexts[0].arms[0].times.mean_s = 0; });
  refused([](auto& r) { r.contexts[0].arms[0].times.samples = 0; });
  refused([](auto& r) { r.contexts[0].arms[0].times.quantiles.low_s = 1; });
  refused([](auto& r) { r.contexts[0].arms[1].arm = "native"; });
  refused([](auto& r) { r.contexts[0].arms[0].times.spread = std::nan(""); });
  refused([](auto& r) { r.contexts[0].of.collective = ""; });
  refused([](auto& r) { r.contexts[0].of.rails = std::string(1000, 'x'); });
}

TEST_CASE("a run that goes on is read as it is so far, and counts once when it has ended") {
  const scratch_directory folder;
  store::add(folder.path(), run({context(8)}));
  store::run_under_way going(folder.path());
  going.keep(run({context(8), context(16)}));
  going.keep(run({context(8), context(16, 24)}));
  auto contexts = read(folder.path());
  REQUIRE(contexts.size() == 2);
  CHECK(contexts[0].runs == 2);
  CHECK(contexts[1].arms[0].times.samples == 24);

  // compact() leaves the file of a running process in place, and readers do not mistake it for a
  // finished run.
  store::compact(folder.path());
  CHECK(files_in(folder.path(), ".running").size() == 1);
  CHECK(files_in(folder.path(), ".run").size() == 1);  // the same one
  store::store_contents all = store::contents(folder.path());
  REQUIRE(all.machines.size() == 1);
  CHECK(all.machines[0].under_way.size() == 1);
  CHECK(all.machines[0].runs.size() == 1);
  CHECK(all.machines[0].contexts.size() == 2);

  going.end(run({context(8), context(16, 32), context(32)}));
  CHECK(files_in(folder.path(), ".running").empty());
  for (int look = 0; look < 2; ++look) {
    contexts = read(folder.path());
    REQUIRE(contexts.size() == 3);
    CHECK(contexts[0].runs == 2);
    CHECK(contexts[1].arms[0].times.samples == 32);
    store::compact(folder.path());
  }
}

TEST_CASE("what is left of a killed run is used at once, and brought together after a day") {
  const scratch_directory folder;
  store::run_under_way(folder.path()).keep(run({context(8)}));
  REQUIRE(read(folder.path()).size() == 1);
  const auto left = files_in(folder.path(), ".running");
  REQUIRE(left.size() == 1);
  const auto now = fs::last_write_time(left[0]);
  fs::last_write_time(left[0], now - std::chrono::hours(23));
  store::compact(folder.path());
  CHECK(files_in(folder.path(), ".running") == left);
  fs::last_write_time(left[0], now - std::chrono::hours(25));
  store::compact(folder.path());
  CHECK(files_in(folder.path(), ".running").empty());
  CHECK(files_in(folder.path(), ".db").size() == 1);
  CHECK(read(folder.path()).size() == 1);
  CHECK(store::contents(folder.path()).machines[0].runs.size() == 1);
}

TEST_CASE("a run that could not remove what it had kept counts once") {
  const scratch_directory folder;
  store::run_under_way going(folder.path());
  going.keep(run({context(8)}));
  const auto left = files_in(folder.path(), ".running");
  REQUIRE(left.size() == 1);
  const std::string before = content(left[0]);
  going.end(run({context(8, 16)}));
  write_anew(left[0], before);
  CHECK(read(folder.path())[0].runs == 1);
  CHECK(read(folder.path())[0].arms[0].times.samples == 16);
  store::compact(folder.path());
  CHECK(files_in(folder.path(), ".running").empty());
  CHECK(read(folder.path())[0].arms[0].times.samples == 16);
}

TEST_CASE("what a run had kept counts as its own even where its end cannot be written") {
  const scratch_directory folder;
  store::run_under_way going(folder.path());
  CHECK_FALSE(going.has_kept());
  going.keep(run({context(8)}));
  CHECK(going.has_kept());
  auto wrong = run({context(8, 16)});
  wrong.was.load = -1;  // refused once it is to be written
  CHECK_THROWS_AS(going.end(wrong), error);
  CHECK(files_in(folder.path(), ".running").empty());
  CHECK(files_in(folder.path(), ".run").size() == 1);
  store::compact(folder.path());  // which leaves runs in progress alone
  CHECK(store::contents(folder.path()).machines.at(0).runs.size() == 1);
  CHECK(read(folder.path()).at(0).arms[0].times.samples == 8);
}

TEST_CASE("files of runs are brought together before they are too many to be read") {
  const scratch_directory folder;
  for (int n = 0; n < 31; ++n) store::add(folder.path(), numbered(n));
  store::tidy(folder.path(), {});
  CHECK(files_in(folder.path(), ".run").size() == 31);
  CHECK(files_in(folder.path(), ".db").empty());
  store::add(folder.path(), numbered(31));
  std::stop_source stop;
  stop.request_stop();
  store::tidy(folder.path(), stop.get_token());
  CHECK(files_in(folder.path(), "").size() == 32);
  store::tidy(folder.path(), {});
  CHECK(files_in(folder.path(), "").size() == 1);
  CHECK(read(folder.path()).size() == 33);
}

TEST_CASE("all runs of a user who never looks after them are known to the next one") {
  const scratch_directory folder;
  for (int n = 0; n < 200; ++n) {
    store::add(folder.path(), numbered(n));
    store::tidy(folder.path(), {});
  }
  const auto contexts = read(folder.path());
  REQUIRE(contexts.size() == 201);
  CHECK(contexts[0].runs == 200);
  CHECK(files_in(folder.path(), "").size() < 40);
}

TEST_CASE("what writers left that died is removed, and old runs that were killed are kept") {
  const scratch_directory folder;
  store::add(folder.path(), run({context(8)}));
  const fs::path one = files_in(folder.path(), ".run").at(0);
  const fs::path left = one.string() + ".tmp0123456789abcdef";
  write_anew(left, "half");
  store::tidy(folder.path(), {});
  CHECK(fs::exists(left));
  fs::last_write_time(left, fs::last_write_time(left) - std::chrono::hours(2));
  store::tidy(folder.path(), {});
  CHECK_FALSE(fs::exists(left));
  CHECK(read(folder.path()).size() == 1);
}

TEST_CASE("an empty file of a run, as machines leave that lose power, is removed after a day") {
  const scratch_directory folder;
  store::add(folder.path(), run({context(8)}));
  store::add(folder.path(), run({context(16)}));
  const fs::path lost = files_in(folder.path(), ".run").at(0);
  write_anew(lost, "");
  CHECK(store::compact(folder.path()).problems.size() == 1);
  CHECK(fs::exists(lost));
  fs::last_write_time(lost, fs::last_write_time(lost) - std::chrono::hours(25));
  CHECK(store::compact(folder.path()).problems.empty());
  CHECK_FALSE(fs::exists(lost));
  CHECK(read(folder.path()).size() == 1);
}

TEST_CASE("as many bytes of files as are asked for are brought together, the oldest first") {
  const scratch_directory folder;
  for (const char* const day : {"2026-02-03", "2026-02-01", "2026-02-02"})
    store::add(folder.path(), run({context(8)}, day + std::string("T12:00:00Z")));
  const std::uint64_t bytes = fs::file_size(files_in(folder.path(), ".run").at(0));
  CHECK(store::compact(folder.path(), {.most_file_bytes = 2 * bytes + bytes / 2}).files == 2);
  const auto rest = files_in(folder.path(), ".run");
  REQUIRE(rest.size() == 1);
  CHECK_THAT(rest[0].filename().string(), ContainsSubstring("20260203"));
  CHECK(read(folder.path()).at(0).runs == 3);
}
