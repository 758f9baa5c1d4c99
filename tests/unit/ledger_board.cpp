// SPDX-License-Identifier: BSL-1.0
//
// Ledgers on a board. unit.board tests the files of boards.
#include "lib/runtime/ledger_board.hpp"

#include "lib/rails/board.hpp"
#include "support/catch.hpp"
#include "support/scratch_directory.hpp"

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>
#include <unistd.h>

using namespace railpass;
using namespace railpass::internal;

namespace {

const select::ledger_batch some_sums{
    .calls = 12, .outside_s = 0.5, .passed_s = 1.5, .since_before_s = 2, .starved_s = 0.25};

bool has_no_file(const std::string& folder) {
  return std::filesystem::directory_iterator(folder) == std::filesystem::directory_iterator();
}

}  // namespace

TEST_CASE("the sums that ranks of a host post last are found until the ranks end") {
  const scratch_directory folder;
  {
    ledger_board first(7, 5, 0, folder.path()), fourth(7, 5, 3, folder.path());
    CHECK(
        find_ledger_boards(folder.path()).boards.at(0).ledgers.empty());  // nothing was posted yet
    first.post({.calls = 1});
    first.post(some_sums);
    fourth.post({.calls = 2});
    const found_ledger_boards found = find_ledger_boards(folder.path());
    CHECK(found.skipped.empty());
    REQUIRE(found.boards.size() == 1);
    CHECK(found.boards[0].num_ranks == 5);
    const std::vector<posted_ledger>& ledgers = found.boards[0].ledgers;
    REQUIRE(ledgers.size() == 2);
    CHECK(ledgers[0].rank == 0);
    CHECK(ledgers[0].pid == getpid());
    CHECK(ledgers[0].program == program_invocation_short_name);
    CHECK(ledgers[0].sums == some_sums);
    CHECK(ledgers[0].posted_at_s > 0);
    CHECK(ledgers[1].rank == 3);
    CHECK(ledgers[1].sums.calls == 2);
  }
  CHECK(has_no_file(folder.path()));
}

TEST_CASE(
    "a board of rails is no board of ledgers, and each is left alone by readers of the other") {
  const scratch_directory folder;
  ledger_board ledgers(1, 1, 0, folder.path());
  rail_board rails(1, 1, 1, 0, folder.path());
  CHECK(find_ledger_boards(folder.path()).boards.size() == 1);
  CHECK(find_ledger_boards(folder.path()).skipped.empty());
  CHECK(find_boards(folder.path()).boards.size() == 1);
  CHECK(find_boards(folder.path()).skipped.empty());
}

TEST_CASE("sums that cannot be are not shown") {
  const scratch_directory folder;
  ledger_board board(1, 1, 0, folder.path());
  const auto is_shown = [&](const auto& change) {
    select::ledger_batch sums = some_sums;
    change(sums);
    board.post(sums);
    const found_ledger_boards found = find_ledger_boards(folder.path());
    CHECK(found.boards.size() + found.skipped.size() == 1);
    return found.skipped.empty();
  };
  constexpr double infinite = std::numeric_limits<double>::infinity();
  CHECK(is_shown([](auto& s) { s.outside_s = -1e-9; }));  // a clock that was set back
  CHECK(!is_shown([](auto& s) { s.calls = -1; }));
  CHECK(!is_shown([](auto& s) { s.outside_s = std::nan(""); }));
  CHECK(!is_shown([](auto& s) { s.passed_s = infinite; }));
  CHECK(!is_shown([](auto& s) { s.since_before_s = -1; }));
  CHECK(!is_shown([](auto& s) { s.starved_s = -1; }));
}
