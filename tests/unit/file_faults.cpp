// SPDX-License-Identifier: BSL-1.0
//
// Every call of the system that a file needs fails in turn, in every way that it can: there is an
// error that names the file, or none and all is done; never a half-written file or one left over.
#include "lib/base/descriptor.hpp"
#include "lib/files/files.hpp"
#include "lib/store/quarantine.hpp"
#include "lib/store/store.hpp"
#include "lib/tune/journal.hpp"
#include "railpass/base/error.hpp"
#include "support/catch.hpp"
#include "support/failing_calls.hpp"
#include "support/scratch_directory.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

const std::vector<int> all_ways = {failing_calls::transfers_less, EINTR, ENOSPC, EMFILE, EIO};

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// `work` throws or not with each of the calls failing in each way; then `check` is told whether it
/// has. How often something failed.
int with_each_fault(const std::vector<std::string>& calls, const std::string& path,
                    const std::function<void()>& prepare, const std::function<void()>& work,
                    const std::function<void(bool done)>& check) {
  int faults = 0;
  for (const std::string& call : calls)
    for (const int how : all_ways) {
      if (how == failing_calls::transfers_less && call != "read" && call != "write") continue;
      if (how == EINTR && call == "rename") continue;  // which it never says
      for (int which = 1;; ++which) {
        CAPTURE(call, how, which);
        prepare();
        const std::size_t open_before = names_in("/proc/self/fd").size();
        bool done = true;
        failing_calls::now = {.call = call, .how = how, .which = which};
        try {
          work();
        } catch (const error& problem) {
          done = false;
          CHECK_THAT(problem.what(), ContainsSubstring(path + ": "));
          // Says why, as the system does.
          if (how > 0) CHECK_THAT(problem.what(), ContainsSubstring(std::strerror(how)));
        }
        const bool failed = failing_calls::now.failed;
        failing_calls::now = {};
        if (!failed || how == EINTR || how == failing_calls::transfers_less)
          CHECK(done);
        else if (call != "close")
          CHECK(!done);
        CHECK(names_in("/proc/self/fd").size() == open_before);
        check(done);
        if (!failed) break;
        ++faults;
        REQUIRE(which < 1000);
      }
    }
  return faults;
}

}  // namespace

TEST_CASE("a file is written as a whole or stays as it was, and nothing else is left") {
  const scratch_directory folder;
  const std::string path = folder.file("file");
  const std::string was = "what was there", text(200000, 'x');
  for (const bool exists : {true, false}) {
    const int faults = with_each_fault(
        {"open", "write", "fsync", "rename", "close"}, path,
        [&] {
          std::filesystem::remove(path);
          if (exists) std::ofstream(path) << was;
        },
        [&] { files::write_text(path, text); },
        [&](bool done) {
          if (done || exists) {
            CHECK(names_in(folder.path()) == std::set<std::string>{"file"});
            CHECK(content(path) == (done ? text : was));
          } else {
            CHECK(names_in(folder.path()).empty());
          }
        });
    CHECK(faults >= 4 + 5 + 4 + 3 + 4);
  }
}

TEST_CASE("what is written to a link is in the file behind it") {
  const scratch_directory folder;
  const std::string link = folder.file("link"), next = folder.file("next"),
                    file = folder.file("file");
  std::filesystem::create_symlink("next", link);
  std::filesystem::create_symlink(file, next);
  for (const std::string text : {"created", "replaced"}) {
    files::write_text(link, text);
    CHECK(content(file) == text);
    CHECK(std::filesystem::is_symlink(link));
    CHECK(std::filesystem::is_symlink(next));
  }
}

TEST_CASE("what is written to a descriptor follows what its other writers wrote") {
  const scratch_directory folder;
  const std::string file = folder.file("log"), link = folder.file("stream");
  file_descriptor log(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(log.is_open());
  const std::string number = std::to_string(log.get());
  std::filesystem::create_symlink("/proc/self/fd/" + number, link);
  REQUIRE(write_all(log.get(), "before, "));
  files::write_text(link, "this, ");
  files::write_text("/dev/fd/" + number, "and this, ");
  REQUIRE(write_all(log.get(), "after"));
  CHECK(content(file) == "before, this, and this, after");
}

TEST_CASE("a file that is longer than ulimit -f allows is an error, and no signal") {
  const scratch_directory folder;
  const std::string path = folder.file("file"), log = folder.file("log");
  std::ofstream(log) << std::string(4000, 'x');
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit most{.rlim_cur = 4096, .rlim_max = 4096};
    ::setrlimit(RLIMIT_FSIZE, &most);
    int unexpected = 0;
    try {
      files::write_text(path, std::string(4096, 'x'));
      files::write_text(path, std::string(4097, 'x'));
      ++unexpected;
    } catch (const error& problem) {
      unexpected += std::string(problem.what()) != path + ": cannot be written: File too large";
    }
    const file_descriptor at_end(::open(log.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    unexpected += !write_all(at_end.get(), std::string(96, 'x'));
    unexpected += write_all(at_end.get(), "x");
    ::_exit(unexpected);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(content(path).size() == 4096);
  CHECK(names_in(folder.path()) == std::set<std::string>{"file", "log"});
}

TEST_CASE("a file that is written again keeps its access rights") {
  const scratch_directory folder;
  const std::string path = folder.file("file");
  for (const auto mode : {0600U, 0664U, 0400U}) {
    std::ofstream(path) << "before";
    std::filesystem::permissions(path, std::filesystem::perms(mode));
    files::write_text(path, "after");
    CHECK(content(path) == "after");
    CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms(mode));
    std::filesystem::remove(path);
  }
}

TEST_CASE(
    "a file is written beside the old one under a name that nobody has, and through no link") {
  const scratch_directory folder;
  const std::string path = folder.file("file");
  failing_calls::now = {.call = "open", .how = EEXIST, .which = 1};
  files::write_text(path, "");
  CHECK(failing_calls::now.failed);
  CHECK(failing_calls::now.seen == 2);
  failing_calls::now = {};
  CHECK((failing_calls::last_creation_flags & O_EXCL) != 0);
  // Many at once, as processes of the same number in two containers.
  const std::string texts[] = {std::string(5000, 'a'), std::string(70000, 'b'), "c", ""};
  std::vector<std::thread> writers;
  std::atomic<int> failed = 0;
  for (const std::string& text : texts)
    writers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) try {
          files::write_text(path, text);
        } catch (const error&) {
          ++failed;
        }
    });
  int whole = 0;
  for (int i = 0; i < 100; ++i) whole += int(std::ranges::count(texts, files::read_text(path)));
  for (std::thread& w : writers) w.join();
  CHECK(whole == 100);
  CHECK(failed == 0);
  CHECK(names_in(folder.path()) == std::set<std::string>{"file"});
}

TEST_CASE("what is read is all of the file, or it is an error") {
  const scratch_directory folder;
  const std::string path = folder.file("file"), text(200000, 'x');
  std::ofstream(path) << text;
  std::string read;
  const int faults = with_each_fault(
      {"open", "read"}, path, [&] { read.clear(); }, [&] { read = files::read_text(path); },
      [&](bool done) { CHECK(read == (done ? text : "")); });
  CHECK(faults >= 4 + 5 * 4);
}

TEST_CASE("a journal keeps what had ended before something failed") {
  const scratch_directory folder;
  const std::string path = folder.file("journal");
  const tune::journal_entry first{tune::purpose::search, {1}, {{1.5}, "", 1}},
      second{tune::purpose::search, {2}, {{}, "it broke", 1}};
  const auto run_one = [&](const tune::journal_entry& e) {
    tune::journal kept(path, "me", 1);
    kept.began(e.why, e.what);
    kept.ended(e);
  };
  std::string before;
  const int faults = with_each_fault(
      {"open", "flock", "read", "ftruncate", "write", "fdatasync", "close"}, path,
      [&] {
        std::filesystem::remove(path);
        run_one(first);
        before = content(path);
        std::ofstream(path, std::ios::app) << "{\"cut";
      },
      [&] { run_one(second); },
      [&](bool done) {
        CHECK(names_in(folder.path()) == std::set<std::string>{"journal"});
        CHECK(content(path).starts_with(before));
        const tune::journal again(path, "me", 1);
        REQUIRE(again.earlier().size() >= (done ? 2 : 1));
        CHECK(again.earlier()[0].found.values == std::vector{1.5});
        if (done) CHECK(again.earlier()[1].found.failure == "it broke");
      });
  CHECK(faults >= 2 * 4 + 4 + 2 * 5 + 4 + 2 * 5 + 2 * 4);
}

namespace {

knowledge::run_record run_of(std::int64_t bytes) {
  const std::string at = "2026-01-31T12:00:00Z";
  return {
      .machine = {.num_hosts = 2, .cores_per_host = 4, .cpu_model = "A", .mpi_library = "B"},
      .was = {},
      .ended_at = at,
      .contexts = {{.of = {.collective = "broadcast", .bytes = bytes},
                    .arms = {{.arm = "native",
                              .calls = 2,
                              .times = {.samples = 2,
                                        .mean_s = 1,
                                        .quantiles = {.low_s = 1, .median_s = 1, .high_s = 1}}}},
                    .first_at = at,
                    .last_at = at}}};
}

store::known known_in(const std::filesystem::path& own) {
  return store::read({.own = own, .others = {}}, run_of(0).machine, 100);
}

// How many contexts, each of one run.
std::size_t contexts_in(const std::filesystem::path& own) {
  const store::known found = known_in(own);
  CHECK(found.problems.empty());
  for (const knowledge::experience& e : found.contexts) CHECK(e.runs == 1);
  return found.contexts.size();
}

}  // namespace

TEST_CASE("a run is added as a whole or not at all, and what was there stays") {
  const scratch_directory folder;
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      if (entry.is_regular_file()) names.insert(entry.path().filename().string());
    return names;
  };
  store::add(folder.path(), run_of(1));
  const std::set<std::string> one = files();
  const int faults = with_each_fault(
      {"open", "write", "fsync", "rename", "close"}, "",
      [&] {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
          if (entry.is_regular_file() && !one.contains(entry.path().filename().string()))
            std::filesystem::remove(entry.path());
      },
      [&] { store::add(folder.path(), run_of(2)); },
      [&](bool done) {
        CHECK(contexts_in(folder.path()) == (done ? 2 : 1));
        CHECK(files().size() == (done ? 2 : 1));
      });
  CHECK(faults >= 4 + 5 + 4 + 3 + 4);
}

TEST_CASE("a run does not wait for the disk") {
  const scratch_directory folder;
  store::run_under_way going(folder.path());
  failing_calls::now = {.call = "fsync", .how = EIO, .which = 1};
  going.keep(run_of(1));
  going.end(run_of(1));
  store::add(folder.path(), knowledge::quarantined{.mpi_library = "B",
                                                   .railpass_version = "0.2.0",
                                                   .found_at = "2026-01-31T12:00:00Z",
                                                   .collective = "all_gather",
                                                   .algorithm = "ring",
                                                   .variant = "ring",
                                                   .num_ranks = 4,
                                                   .ranks_per_node = 2});
  CHECK_FALSE(failing_calls::now.failed);
  failing_calls::now = {};
  CHECK(contexts_in(folder.path()) == 1);
}

TEST_CASE("whatever fails while runs are brought together, none is lost and none counts twice") {
  int faults = 0, failures = 0;
  for (const std::string call : {"open", "read", "write", "fsync", "rename", "link", "close"})
    for (const int how : all_ways) {
      if (how == failing_calls::transfers_less && call != "read" && call != "write") continue;
      if (how == EINTR && (call == "rename" || call == "link")) continue;  // which never say it
      for (int which = 1;; ++which) {
        CAPTURE(call, how, which);
        const scratch_directory folder;
        store::add(folder.path(), run_of(1));
        store::compact(folder.path());
        store::add(folder.path(), run_of(2));
        store::add(folder.path(), run_of(3));
        failing_calls::now = {.call = call, .how = how, .which = which};
        try {
          store::compact(folder.path());
        } catch (const error& problem) {
          ++failures;
          CHECK_THAT(problem.what(), ContainsSubstring(folder.path().string()));
        }
        const bool failed = failing_calls::now.failed;
        failing_calls::now = {};
        CHECK(contexts_in(folder.path()) == 3);
        store::compact(folder.path());
        CHECK(contexts_in(folder.path()) == 3);
        if (!failed) break;
        ++faults;
        REQUIRE(which < 1000);
      }
    }
  CHECK(faults > 100);
  CHECK(failures > 20);
}

TEST_CASE("who comes second with a new database removes nothing of what it read") {
  const scratch_directory folder;
  store::add(folder.path(), run_of(1));
  store::compact(folder.path());
  store::add(folder.path(), run_of(2));
  const auto listed = [&] {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      all.insert(entry.path().string());
    return all;
  };
  const std::set<std::string> before = listed();
  failing_calls::now = {.call = "link", .how = EEXIST, .which = 1};
  const store::compacted report = store::compact(folder.path());
  CHECK(failing_calls::now.failed);
  failing_calls::now = {};
  REQUIRE(report.problems.size() == 1);
  CHECK_THAT(report.problems[0], ContainsSubstring("at the same time"));
  CHECK(listed() == before);
  CHECK(contexts_in(folder.path()) == 2);
}

TEST_CASE("runs are brought together where the file system has no links") {
  const scratch_directory folder;
  store::add(folder.path(), run_of(1));
  store::compact(folder.path());
  store::add(folder.path(), run_of(2));
  int runs = 2;
  for (const int how : {EPERM, EOPNOTSUPP, ENOSYS}) {
    store::add(folder.path(), run_of(++runs));
    failing_calls::now = {.call = "link", .how = how, .which = 1};
    const store::compacted report = store::compact(folder.path());
    CHECK(failing_calls::now.failed);
    failing_calls::now = {};
    CHECK(report.problems.empty());
    CHECK(report.files > 0);
    CHECK(contexts_in(folder.path()) == std::size_t(runs));
  }
}

TEST_CASE("whatever fails while a store is read, what was read is right and the rest is said") {
  const scratch_directory folder;
  store::add(folder.path(), run_of(1));
  store::compact(folder.path());
  store::add(folder.path(), run_of(2));
  int faults = 0;
  for (const std::string call : {"open", "read", "close"})
    for (const int how : all_ways) {
      if (how == failing_calls::transfers_less && call != "read") continue;
      for (int which = 1;; ++which) {
        CAPTURE(call, how, which);
        failing_calls::now = {.call = call, .how = how, .which = which};
        const store::known found = known_in(folder.path());
        const bool failed = failing_calls::now.failed;
        failing_calls::now = {};
        CHECK(found.contexts.size() + found.problems.size() == 2);
        for (const knowledge::experience& e : found.contexts) CHECK(e.runs == 1);
        if (!failed) break;
        ++faults;
        REQUIRE(which < 1000);
      }
    }
  CHECK(faults > 10);
}
