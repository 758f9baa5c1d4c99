// SPDX-License-Identifier: BSL-1.0
//
// What to say of a name that is not known: which ones are, and which of them was probably meant.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass {

/// Whether both are the same name for MPI's users: all_reduce, AllReduce, MPI_Allreduce.
inline bool is_same_name(std::string_view a, std::string_view b) {
  const auto letters = [](std::string_view text) {
    std::string result;
    for (const char c : text)
      if (c != '_') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result.starts_with("mpi") ? result.substr(3) : result;
  };
  return letters(a) == letters(b);
}

/// How many letters must be put in, left out, replaced, or changed places with the next one to
/// turn one word into the other (optimal string alignment).
inline std::size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({replaced, last[j] + 1, now[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, now);
  }
  return last[b.size()];
}

/// "; did you mean 'broadcast'?", or empty if no known name is like this one. `known`: a range, of
/// names or of what `name` makes names of.
template <class Range, class Name = std::identity>
std::string did_you_mean(std::string_view given, const Range& known, Name name = {}) {
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(1, given.size() / 3) + 1;
  for (const auto& one : known) {
    const std::string_view its = std::invoke(name, one);
    if (const std::size_t apart = letters_apart(given, its); apart < least) {
      least = apart;
      nearest = its;
    }
  }
  return nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?";
}

/// "'brodcast': expected one of broadcast, ..., barrier; did you mean 'broadcast'?"
template <class Range, class Name = std::identity>
std::string expected_one_of(std::string_view given, const Range& known, Name name = {}) {
  std::string text = "'" + std::string(given) + "': expected one of ";
  std::string_view comma;
  for (const auto& one : known) {
    text += comma;
    text += std::invoke(name, one);
    comma = ", ";
  }
  return text + did_you_mean(given, known, name);
}

}  // namespace railpass
