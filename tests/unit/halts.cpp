// SPDX-License-Identifier: BSL-1.0
//
// Hangs: which arm or which rank is to blame, by the records of a run; and the files of records.
#include "railpass/knowledge/halts.hpp"

#include "lib/files/files.hpp"
#include "lib/store/folder.hpp"
#include "lib/store/halts.hpp"
#include "lib/store/quarantine.hpp"
#include "railpass/base/error.hpp"
#include "support/catch.hpp"
#include "support/scratch_directory.hpp"
#include "support/seed.hpp"

#include <algorithm>
#include <fcntl.h>
#include <random>
#include <string>
#include <sys/file.h>
#include <vector>

using namespace railpass;
using namespace railpass::internal;
using namespace railpass::knowledge;
namespace fs = std::filesystem;

namespace {

constexpr int ranks = 3;

// Each rank has waited for two minutes inside the same call.
std::vector<halted_rank> hung_run(const std::string& id = "0123") {
  std::vector<halted_rank> run;
  for (int rank = 0; rank < ranks; ++rank)
    run.push_back({.mpi_library = "Some MPI 1.0",
                   .railpass_version = "0.2.0",
                   .host = rank == 0 ? "n0" : "n1",
                   .written_at = "2026-01-31T12:00:00Z",
                   .period_s = 60,
                   .calls = {{.communicator = id,
                              .name = "world",
                              .rank = rank,
                              .num_ranks = ranks,
                              .call = 812,
                              .collective = "all_reduce",
                              .arm = "segmented_ring+segment_bytes=8KiB",
                              .bytes = 4096,
                              .unchanged_s = 180}}});
  return run;
}

std::string only_text(const std::vector<hang>& hangs) {
  REQUIRE(hangs.size() == 1);
  CHECK(!hangs[0].culprit);
  return hangs[0].text;
}

void check_contains(const std::string& text, const std::vector<std::string>& words) {
  CAPTURE(text);
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(text.find(word) != text.npos);
  }
}

}  // namespace

TEST_CASE("an arm hung if all ranks were inside") {
  const std::vector<hang> found = hangs_of(hung_run(), {});
  REQUIRE(found.size() == 1);
  check_contains(found[0].text,
                 {"all 3 ranks of communicator 'world'",
                  "call 812 (all_reduce of 4096 bytes, arm segmented_ring+segment_bytes=8KiB)",
                  "n0, n1", "no later run uses segmented_ring for all_reduce"});
  REQUIRE(found[0].culprit);
  CHECK(*found[0].culprit == quarantined{.mpi_library = "Some MPI 1.0",
                                         .railpass_version = "0.2.0",
                                         .found_at = "2026-01-31T12:00:00Z",
                                         .collective = "all_reduce",
                                         .algorithm = "segmented_ring",
                                         .variant = "segmented_ring+segment_bytes=8KiB",
                                         .num_ranks = ranks,
                                         .ranks_per_node = 2,
                                         .bytes = 4096,
                                         .difference = found[0].culprit->difference,
                                         .hung_on = {"n0", "n1"}});
}

TEST_CASE("no arm hung if the time is short, or a slow network needs it") {
  std::vector<halted_rank> run = hung_run();
  run[1].calls[0].unchanged_s = 60;
  CHECK(hangs_of(run, {}).empty());
  run = hung_run();
  for (halted_rank& r : run) r.calls[0].bytes = 100'000'000;
  CHECK(hangs_of(run, {}).empty());
  for (halted_rank& r : run) r.calls[0].unchanged_s = 220;
  CHECK(hangs_of(run, {}).size() == 1);
}

TEST_CASE("a rank that is not inside the call is named, and no arm is to blame") {
  std::vector<halted_rank> run = hung_run();
  SECTION("it has no record") {
    run.pop_back();
    check_contains(only_text(hangs_of(run, {})),
                   {"2 of 3 ranks", "waited inside call 812", "rank 2 left no record"});
  }
  SECTION("it is outside") {
    run[2].calls[0] = {.communicator = "0123",
                       .name = "world",
                       .rank = 2,
                       .num_ranks = ranks,
                       .call = 811,
                       .collective = "broadcast",
                       .unchanged_s = 180};
    check_contains(only_text(hangs_of(run, {})), {"rank 2 on host n1 began call 811 (broadcast)"});
    run[2].calls[0].call = 0;
    check_contains(only_text(hangs_of(run, {})), {"rank 2 on host n1 had begun no call"});
  }
  SECTION("it is inside an earlier call, for which the others wait") {
    run[2].calls[0].call = 811;
    check_contains(only_text(hangs_of(run, {})), {"1 of 3 ranks", "waited inside call 811",
                                                  "rank 0 on host n0 was inside call 812"});
  }
  SECTION("it makes another call") {
    run[2].calls[0].collective = "all_gather";
    check_contains(only_text(hangs_of(run, {})),
                   {"rank 2 on host n1 was inside call 812 (all_gather"});
  }
  SECTION("it is in a call of another communicator") {
    run[2].calls[0].communicator = "4567";
    const std::vector<hang> found = hangs_of(run, {});
    REQUIRE(found.size() == 2);
    CHECK(std::ranges::none_of(found, [](const hang& h) { return h.culprit.has_value(); }));
  }
}

TEST_CASE("nothing is said of a run whose ranks were in no arm, or not for long") {
  std::vector<halted_rank> run = hung_run();
  for (halted_rank& r : run) r.calls[0].arm.clear();
  CHECK(hangs_of(run, {}).empty());
  run = hung_run();
  run.pop_back();
  for (halted_rank& r : run) r.calls[0].unchanged_s = 1;
  CHECK(hangs_of(run, {}).empty());
  CHECK(hangs_of({}, {}).empty());
}

TEST_CASE("hangs of two arms on one host accuse the host") {
  const std::vector<halted_rank> run = hung_run();
  quarantined before{
      .collective = "all_reduce", .algorithm = "bine", .variant = "bine", .hung_on = {"n1", "n2"}};
  check_contains(only_text(hangs_of(run, std::vector{before})),
                 {"bine of all_reduce hung there, too", "nothing more"});
  before.hung_on = {"n2"};
  CHECK(hangs_of(run, std::vector{before})[0].culprit);
  before.hung_on = {"n1"};
  before.algorithm = "segmented_ring";
  CHECK(hangs_of(run, std::vector{before})[0].culprit);
  before.algorithm = "bine";
  before.hung_on = {};  // its result was wrong
  CHECK(hangs_of(run, std::vector{before})[0].culprit);
}

// An oracle that looks at each rank alone.
TEST_CASE("an arm is to blame only if each rank is stuck in its call") {
  const unsigned seed = test::new_seed();
  INFO("TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const auto one_of = [&](int n) { return int(random() % std::uint64_t(n)); };
  int blamed = 0, named = 0;
  for (int world = 0; world < 4000; ++world) {
    std::vector<halted_rank> run = hung_run();
    for (halted_rank& r : run) {
      halted_call& c = r.calls[0];
      if (one_of(8) == 0) c.call = 810 + one_of(4);
      if (one_of(8) == 0) c.arm = one_of(2) == 0 ? "" : "bine";
      if (one_of(8) == 0) c.collective = "reduce";
      if (one_of(8) == 0) c.unchanged_s = 60 * one_of(4);
    }
    if (one_of(8) == 0) run.erase(run.begin() + one_of(ranks));
    std::ranges::shuffle(run, random);
    const halted_call& first = run[0].calls[0];
    const bool all_stuck =
        run.size() == ranks && std::ranges::all_of(run, [&](const halted_rank& r) {
          const halted_call& c = r.calls[0];
          return !c.arm.empty() && c.call == first.call && c.arm == first.arm &&
                 c.collective == first.collective && c.unchanged_s >= 120 + 4096e-6;
        });
    const std::vector<hang> found = hangs_of(run, {});
    REQUIRE(found.size() <= 1);
    REQUIRE((!found.empty() && found[0].culprit.has_value()) == all_stuck);
    if (!found.empty()) ++(all_stuck ? blamed : named);
  }
  CHECK(blamed > 100);
  CHECK(named > 100);
}

namespace {

constexpr std::int64_t soon_s = 1769860800 + 10;  // after the records' time
constexpr std::int64_t late_s = soon_s + 3 * 60 + 60;

// Files as killed processes leave them.
struct left_store {
  scratch_directory folder;
  fs::path own = folder.path() / "own";

  void leave(const halted_rank& r, const std::string& name) const {
    fs::create_directories(own / "halted");
    write_anew(path_of(name), files::to_json(r));
  }
  void leave(const std::vector<halted_rank>& run, const std::string& prefix = "") const {
    for (std::size_t i = 0; i < run.size(); ++i) leave(run[i], prefix + std::to_string(i));
  }
  fs::path path_of(const std::string& name) const { return own / "halted" / (name + ".json"); }
  std::size_t num_records() const {
    std::size_t n = 0;
    for (const auto& e : fs::directory_iterator(own / "halted"))
      n += e.path().extension() == ".json";
    return n;
  }
  std::size_t num_quarantined() const {
    return store::quarantine({.own = own, .others = {}}, {}).files.size();
  }
};

}  // namespace

TEST_CASE("records of killed processes are judged once") {
  const left_store s;
  CHECK(store::judge_halts(s.own, "n0", soon_s).empty());
  CHECK(!fs::exists(s.own));
  s.leave(hung_run());
  CHECK(store::judge_halts(s.own, "n0", soon_s).size() == 1);
  CHECK(s.num_records() == 0);
  CHECK(s.num_quarantined() == 1);
  CHECK(store::judge_halts(s.own, "n0", soon_s).empty());
}

TEST_CASE("processes judge one at a time, and only where there is something to judge") {
  const left_store s;
  s.leave(hung_run());
  const auto others = store::lease::take(s.own / "halted");
  REQUIRE(others);
  const auto said = store::try_to_judge_halts(s.own, "elsewhere", soon_s);
  REQUIRE(said);
  CHECK(said->empty());
  CHECK_FALSE(store::try_to_judge_halts(s.own, "n0", soon_s));
  CHECK(s.num_records() == ranks);
  write_anew(s.path_of("0"), "corrupt");
  CHECK_FALSE(store::try_to_judge_halts(s.own, "elsewhere", std::int64_t{1} << 40));
  CHECK(s.num_records() == ranks);
}

TEST_CASE("records of other hosts are judged once they are old") {
  const left_store s;
  s.leave(hung_run());
  CHECK(store::judge_halts(s.own, "elsewhere", soon_s).empty());
  CHECK(s.num_records() == ranks);
  CHECK(store::judge_halts(s.own, "elsewhere", late_s).size() == 1);
  CHECK(s.num_quarantined() == 1);
}

TEST_CASE("a run that is alive is not judged, however old its records") {
  const left_store s;
  s.leave(hung_run());
  {
    const file_descriptor alive(::open(s.path_of("1").c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(alive.get(), LOCK_EX | LOCK_NB) == 0);
    s.leave(hung_run("4567"), "other");
    CHECK(store::judge_halts(s.own, "n0", late_s).size() == 1);
    CHECK(s.num_records() == ranks);
  }
  CHECK(store::judge_halts(s.own, "n0", late_s).size() == 1);
  CHECK(s.num_records() == 0);
}

TEST_CASE("records of one run belong together by any communicator") {
  const left_store s;
  std::vector<halted_rank> run = hung_run();
  for (std::size_t i = 0; i < run.size(); ++i) {
    halted_call pair = run[i].calls[0];
    pair.arm.clear();
    pair.num_ranks = 2;
    run[i].calls = {pair, pair};
    run[i].calls[0].communicator = "pair " + std::to_string(i);
    run[i].calls[0].rank = 0;
    run[i].calls[1].communicator = "pair " + std::to_string(i + 1);
    run[i].calls[1].rank = 1;
  }
  s.leave({run[0], run[2], run[1]});
  const file_descriptor alive(::open(s.path_of("1").c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::flock(alive.get(), LOCK_EX | LOCK_NB) == 0);
  CHECK(store::judge_halts(s.own, "n0", late_s).empty());
  CHECK(s.num_records() == ranks);
}

TEST_CASE("corrupt records blame nobody, and are removed once they are old") {
  const left_store s;
  s.leave(hung_run());
  const std::string whole = files::read_text(s.path_of("2").string());
  std::string altered = whole;
  SECTION("cut short") { altered.resize(altered.size() / 2); }
  SECTION("empty") { altered.clear(); }
  SECTION("an arm that does not exist") {
    altered.replace(altered.find("ring+segment"), 4, "rung");
  }
  SECTION("a rank that cannot be") {
    altered.replace(altered.find("\"num_ranks\": 3"), 14, "\"num_ranks\": 2");
  }
  write_anew(s.path_of("2"), altered);
  const std::vector<std::string> said = store::judge_halts(s.own, "n0", soon_s);
  REQUIRE(!said.empty());
  check_contains(said.back(), {"rank 2 left no record"});
  CHECK(s.num_quarantined() == 0);
  for (const std::string& text : store::judge_halts(s.own, "n0", std::int64_t{1} << 40))
    check_contains(text, {s.path_of("2").string(), "railpass removes this record"});
  CHECK(s.num_records() == 0);
}

TEST_CASE("records of a newer railpass stay, however old") {
  const left_store s;
  s.leave(hung_run());
  std::string newer = files::read_text(s.path_of("2").string());
  newer.replace(newer.find("\"version\": 1"), 12, "\"version\": 9");
  write_anew(s.path_of("2"), newer);
  store::judge_halts(s.own, "n0", std::int64_t{1} << 40);
  CHECK(s.num_records() == 1);
  CHECK(files::read_text(s.path_of("2").string()) == newer);
}

TEST_CASE("native is never used less because of a user's record") {
  const left_store s;
  std::vector<halted_rank> run = hung_run();
  for (halted_rank& r : run) r.calls[0].arm = "native";
  s.leave(run);
  CHECK(store::judge_halts(s.own, "n0", soon_s).size() == 1);
  for (const store::quarantine_file& f : store::quarantine({.own = s.own, .others = {}}, {}).files)
    CHECK(!f.counts);
}

TEST_CASE("a process' file holds its last record, is locked, and goes with it") {
  const left_store s;
  std::vector<halted_rank> run = hung_run();
  {
    store::halt_file mine(s.own);
    mine.write(run[0]);
    run[0].calls.clear();  // shorter
    mine.write(run[0]);
    REQUIRE(s.num_records() == 1);
    const std::string path = fs::directory_iterator(s.own / "halted")->path().string();
    CHECK(files::parse_halt(files::read_text(path), path) == run[0]);
    CHECK(store::judge_halts(s.own, "n0", late_s).empty());
    CHECK(s.num_records() == 1);
  }
  CHECK(s.num_records() == 0);
}
