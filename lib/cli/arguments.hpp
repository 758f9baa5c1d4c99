// SPDX-License-Identifier: BSL-1.0
//
// Exit statuses, and reading arguments with messages that name the option.
#pragma once

#include "collectives/registry.hpp"
#include "lib/base/join.hpp"
#include "lib/base/usage_error.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::cli {

/// The statuses every verb ends with: wrong_use after a usage_error, failed after every other
/// error.
enum exit_status : int { succeeded = 0, failed = 1, wrong_use = 2 };

/// The words of a list separated by commas; throws usage_error if there is none or one is empty.
std::vector<std::string> split_list(std::string_view option, std::string_view text);

/// "64KiB,1MiB" in bytes, none above `largest`; "1KiB..1MiB" stands for 1KiB times the powers of
/// two up to there. Throws usage_error.
std::vector<std::int64_t> parse_sizes(std::string_view option, std::string_view text,
                                      std::int64_t largest);
std::int64_t parse_size(std::string_view option, std::string_view text, std::int64_t largest);

/// "20s", "500ms", "2min", "2m" or seconds as a plain number; positive. Throws usage_error.
double parse_duration_s(std::string_view option, std::string_view text);

/// The collective of this name. Throws usage_error that lists the names.
collective parse_collective(std::string_view option, std::string_view name);

/// A list of them, each once; "all" stands for all. Throws usage_error.
std::vector<collective> parse_collectives(std::string_view option, std::string_view list);

/// parse_arm for the command line: a wrong arm is wrong use.
arm arm_of_option(std::string_view option, collective op, std::string_view text);

/// Throws usage_error unless 0 <= root < num_ranks.
void check_root(int root, int num_ranks);

/// Largest message the verbs take: what MPI's int counts can say.
inline constexpr std::int64_t largest_message_bytes = 2147483647;
/// Most ranks the verbs that work on paper take.
inline constexpr int most_ranks = 1 << 20;

}  // namespace railpass::internal::cli
