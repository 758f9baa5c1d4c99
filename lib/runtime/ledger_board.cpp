// SPDX-License-Identifier: BSL-1.0
#include "lib/runtime/ledger_board.hpp"

#include "railpass/base/clock.hpp"

#include <cerrno>
#include <cmath>
#include <span>
#include <unistd.h>
#include <utility>

namespace railpass::internal {

namespace {

struct entry {
  double posted_at_s = 0;
  std::int64_t pid = 0;
  select::ledger_batch sums{};
  char program[56] = {};
  std::uint64_t checksum = 0;
};
static_assert(sizeof(entry) == 120);

constexpr board_kind ledgers{.prefix = "railpass_ledgers",
                             .shows = "ledgers",
                             .entry_bytes = sizeof(entry),
                             .most_entries = 1};

bool is_sound(const found_entry& found) {
  const auto e = found.as<entry>();
  const select::ledger_batch& s = e.sums;
  const auto is_time = [](double seconds) { return seconds >= 0 && std::isfinite(seconds); };
  return e.pid > 0 && s.calls >= 0 && std::isfinite(s.outside_s) && is_time(s.passed_s) &&
         is_time(s.since_before_s) && is_time(s.starved_s) && is_time(e.posted_at_s);
}

posted_ledger posted_in(const found_entry& found) {
  const auto e = found.as<entry>();
  return {.rank = found.rank,
          .pid = e.pid,
          .program = text_of(e.program),
          .sums = e.sums,
          .posted_at_s = e.posted_at_s};
}

}  // namespace

ledger_board::ledger_board(std::uint64_t id, int num_ranks, int rank, const std::string& folder)
    : file_(ledgers, id, num_ranks, 1, rank, folder) {}

void ledger_board::post(const select::ledger_batch& sums) {
  entry e{.posted_at_s = steady_clock_s(), .pid = getpid(), .sums = sums};
  set_text(e.program, program_invocation_short_name);
  file_.post(std::span<const entry>(&e, 1));
}

found_ledger_boards find_ledger_boards(const std::string& folder) {
  found_files files = find_board_files(ledgers, folder, is_sound);
  found_ledger_boards found{.boards = {}, .skipped = std::move(files.skipped)};
  for (const found_file& f : files.files) {
    found_ledgers& b =
        found.boards.emplace_back(found_ledgers{.num_ranks = f.num_ranks, .ledgers = {}});
    for (const found_entry& e : f.entries) b.ledgers.push_back(posted_in(e));
  }
  return found;
}

}  // namespace railpass::internal
