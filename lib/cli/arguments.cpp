// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/arguments.hpp"

#include "railpass/base/names.hpp"
#include "railpass/base/units.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace railpass::internal::cli {

std::vector<std::string> split_list(std::string_view option, std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    if (words.back().empty())
      throw usage_error(std::string(option) + " '" + std::string(text) +
                        "': expected a list such as a,b without empty words");
    begin = end + 1;
  }
  return words;
}

std::int64_t parse_size(std::string_view option, std::string_view text, std::int64_t largest) {
  const auto size = parse_bytes(text);
  if (!size)
    throw usage_error(std::string(option) + " '" + std::string(text) +
                      "': expected a size such as 65536 or 64KiB");
  if (*size > largest)
    throw usage_error(std::string(option) + " '" + std::string(text) + "': expected at most " +
                      std::to_string(largest) + " bytes");
  return *size;
}

std::vector<std::int64_t> parse_sizes(std::string_view option, std::string_view text,
                                      std::int64_t largest) {
  std::vector<std::int64_t> sizes;
  const auto add = [&](std::int64_t size) {
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  };
  for (const std::string& word : split_list(option, text)) {
    const std::size_t dots = word.find("..");
    if (dots == std::string::npos) {
      add(parse_size(option, word, largest));
      continue;
    }
    const std::int64_t from = parse_size(option, word.substr(0, dots), largest);
    const std::int64_t to = parse_size(option, word.substr(dots + 2), largest);
    if (from < 1 || to < from)
      throw usage_error(std::string(option) + " '" + word +
                        "': expected a range from at least 1 byte up, such as 1KiB..4MiB");
    for (std::int64_t size = from; size <= to; size *= 2) add(size);
  }
  return sizes;
}

double parse_duration_s(std::string_view option, std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, failure] = std::from_chars(text.data(), last, number);
  const std::string_view unit(end, std::size_t(last - end));
  const double factor = unit.empty() || unit == "s"    ? 1
                        : unit == "ms"                 ? 1e-3
                        : unit == "min" || unit == "m" ? 60
                                                       : 0;
  const double value_s = number * factor;
  if (failure != std::errc{} || factor == 0 || !std::isfinite(value_s) || value_s <= 0 ||
      value_s > 1e6)
    throw usage_error(std::string(option) + " '" + std::string(text) +
                      "': expected a positive time such as 20s, 500ms or 2min");
  return value_s;
}

collective parse_collective(std::string_view option, std::string_view name) {
  if (const auto op = find_collective(name)) return *op;
  throw usage_error(
      std::string(option) + " " +
      expected_one_of(name, all_collectives, [](collective c) { return name_of(c); }));
}

std::vector<collective> parse_collectives(std::string_view option, std::string_view list) {
  if (list == "all") return {all_collectives.begin(), all_collectives.end()};
  std::vector<collective> ops;
  for (const std::string& name : split_list(option, list)) {
    const collective op = parse_collective(option, name);
    if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(op);
  }
  return ops;
}

arm arm_of_option(std::string_view option, collective op, std::string_view text) {
  try {
    return parse_arm(op, text);
  } catch (const error& wrong) {
    throw usage_error(std::string(option) + ": " + wrong.what());
  }
}

void check_root(int root, int num_ranks) {
  if (root < 0 || root >= num_ranks)
    throw usage_error("--root " + std::to_string(root) + ": expected a rank from 0 to " +
                      std::to_string(num_ranks - 1));
}

}  // namespace railpass::internal::cli
