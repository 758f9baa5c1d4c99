// SPDX-License-Identifier: BSL-1.0
//
// The notes of a bench about arms that it left out of a cell, and which of these arms gave a wrong
// result.
#pragma once

#include "models/samples.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::measure {

/// The reason for which a contestant with a wrong result is left out.
inline constexpr const char* wrong_result = "its result was wrong";

inline constexpr std::string_view left_out_mark = "/left_out/";

/// The name of the note that says why an arm was left out of a cell: "broadcast/64/left_out/chain".
inline std::string left_out_note(const std::string& collective, std::int64_t bytes,
                                 const std::string& arm) {
  return collective + '/' + std::to_string(bytes) + std::string(left_out_mark) + arm;
}

struct wrong_arm {
  std::string collective{};
  std::string bytes{};
  std::string arm{};
};

/// The arms with wrong results in one launch of a bench.
inline std::vector<wrong_arm> wrong_arms(const bench_results& launch) {
  std::vector<wrong_arm> all;
  for (const auto& [name, note] : launch.notes) {
    if (note != wrong_result) continue;
    const std::size_t cell_end = name.find('/'), mark = name.find(left_out_mark);
    if (cell_end < mark && mark != name.npos)
      all.push_back({.collective = name.substr(0, cell_end),
                     .bytes = name.substr(cell_end + 1, mark - cell_end - 1),
                     .arm = name.substr(mark + left_out_mark.size())});
  }
  return all;
}

}  // namespace railpass::internal::measure
