// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/board.hpp"

#include "railpass/transport/split.hpp"

#include <cerrno>
#include <cmath>
#include <limits>
#include <optional>
#include <unistd.h>
#include <utility>

namespace railpass::internal {

namespace {

// Entry of one rank and rail.
struct entry {
  double posted_at_s = 0;
  std::int64_t pid = 0;
  std::int64_t sent_bytes = 0;
  std::int64_t backlog_bytes = 0;
  double bytes_per_s = 0;
  double prediction_error = 0;  // not a number: unknown
  char rail[80] = {};
  char program[56] = {};
  std::uint64_t checksum = 0;
};
static_assert(sizeof(entry) == 192);

constexpr board_kind rail_loads{.prefix = "railpass",
                                .shows = "rail loads",
                                .entry_bytes = sizeof(entry),
                                .most_entries = transport::most_rails};

bool is_sound(const found_entry& e) {
  const auto p = e.as<entry>();
  return p.posted_at_s > 0 && std::isfinite(p.posted_at_s) && p.pid > 0 && p.sent_bytes >= 0 &&
         p.backlog_bytes >= 0 && p.bytes_per_s >= 0 && std::isfinite(p.bytes_per_s) &&
         !(p.prediction_error < 0) && !std::isinf(p.prediction_error);
}

posted_rail posted_in(const found_entry& e) {
  const auto p = e.as<entry>();
  return {.rank = e.rank,
          .pid = p.pid,
          .program = text_of(p.program),
          .rail = text_of(p.rail),
          .sent_bytes = p.sent_bytes,
          .bytes_per_s = p.bytes_per_s,
          .prediction_error =
              std::isnan(p.prediction_error) ? std::nullopt : std::optional(p.prediction_error),
          .backlog_bytes = p.backlog_bytes,
          .posted_at_s = p.posted_at_s};
}

}  // namespace

rail_board::rail_board(std::uint64_t id, int num_ranks, int num_rails, int rank,
                       const std::string& folder)
    : file_(rail_loads, id, num_ranks, num_rails, rank, folder) {}

void rail_board::post(std::span<const posted_rail> rails) {
  std::vector<entry> entries(rails.size());
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const posted_rail& r = rails[i];
    entry& p = entries[i];
    p.posted_at_s = r.posted_at_s;
    p.pid = getpid();
    p.sent_bytes = r.sent_bytes;
    p.backlog_bytes = r.backlog_bytes;
    p.bytes_per_s = r.bytes_per_s;
    p.prediction_error = r.prediction_error.value_or(std::numeric_limits<double>::quiet_NaN());
    set_text(p.rail, r.rail);
    set_text(p.program, program_invocation_short_name);
  }
  file_.post(std::span<const entry>(entries));
}

found_boards find_boards(const std::string& folder) {
  found_files files = find_board_files(rail_loads, folder, is_sound);
  found_boards found{.boards = {}, .skipped = std::move(files.skipped)};
  for (const found_file& f : files.files) {
    found_board& b =
        found.boards.emplace_back(found_board{.id = f.id, .num_ranks = f.num_ranks, .rails = {}});
    for (const found_entry& e : f.entries) b.rails.push_back(posted_in(e));
  }
  return found;
}

}  // namespace railpass::internal
