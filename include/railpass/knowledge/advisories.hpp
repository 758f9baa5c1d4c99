// SPDX-License-Identifier: BSL-1.0
//
// Advisories: known faults of MPI libraries. This file decides whether a fault concerns an MPI
// library and a call. lib/files/advisories_fields.hpp has their file format. Pure logic.
#pragma once

#include "railpass/base/names.hpp"
#include "railpass/select/lockstep/exclusions.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::knowledge {

/// A version such as 4.1.2 or 5.0.0rc12, which is before 5.0.0. Missing numbers are 0.
class library_version {
 public:
  /// Empty if the text does not begin with a number.
  static std::optional<library_version> parse(std::string_view text) {
    if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) return std::nullopt;
    library_version v;
    for (int& number : v.numbers_) {
      while (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0]))) {
        number = std::min(10 * number + (text[0] - '0'), 1 << 24);
        text.remove_prefix(1);
      }
      if (text.size() < 2 || text[0] != '.' || !std::isdigit(static_cast<unsigned char>(text[1])))
        break;
      text.remove_prefix(1);
    }
    v.is_release_ = text.empty() || (text[0] != 'a' && text[0] != 'b' && text[0] != 'r');
    return v;
  }
  friend auto operator<=>(const library_version&, const library_version&) = default;

 private:
  std::array<int, 4> numbers_{};
  bool is_release_ = true;
};

/// An MPI library, by the text of MPI_Get_library_version.
struct library_release {
  std::string name{};  ///< as advisories write it; empty: unknown
  library_version version{};
};

inline library_release release_of(std::string_view mpi_library) {
  struct form {
    std::string_view begins, name;
  };
  static constexpr std::array forms{form{"Open MPI v", "Open MPI"}, form{"MPICH Version:", "MPICH"},
                                    form{"MPICH ", "MPICH"},
                                    form{"Intel(R) MPI Library ", "Intel MPI"}};
  for (const form& f : forms) {
    if (!mpi_library.starts_with(f.begins)) continue;
    std::string_view rest = mpi_library.substr(f.begins.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (const auto version = library_version::parse(rest)) return {std::string(f.name), *version};
  }
  return {};
}

/// A known fault of an MPI library.
struct advisory {
  std::string library{};                        ///< "Open MPI", "MPICH" or "Intel MPI"
  std::optional<std::string> from_version{};    ///< the first version that has the fault
  std::optional<std::string> before_version{};  ///< the first version that does not
  std::optional<std::string> collective{};      ///< empty: not of one collective
  std::vector<std::string> algorithms{};        ///< the MPI library's own; empty: any
  std::optional<std::string> operation{};       ///< class of a reduction's operation; empty: any
  std::int64_t from_bytes = 0;
  std::optional<std::int64_t> to_bytes{};
  int from_ranks = 1, from_hosts = 1;
  std::optional<int> to_ranks{}, to_hosts{};
  std::optional<std::string> condition{};  ///< a further condition that railpass cannot check
  std::string effect{};                    ///< the harm, such as "crashes"
  std::map<std::string, std::string> settings{};  ///< environment variables that help
  /// Native or an algorithm of railpass that these calls must not use. Only in a site's file.
  std::optional<std::string> avoid{};
  std::string link{};
};

/// A file of advisories.
struct advisory_list {
  std::vector<advisory> advisories{};
};

inline bool is_of(const advisory& a, const library_release& here) {
  const auto limit = [](const std::optional<std::string>& text) {
    return text ? library_version::parse(*text) : std::nullopt;
  };
  const auto from = limit(a.from_version), before = limit(a.before_version);
  return a.library == here.name && (!from || here.version >= *from) &&
         (!before || here.version < *before);
}

/// Whether the fault may concern a communicator of a job with so many ranks and hosts.
inline bool may_meet(const advisory& a, int num_ranks, int num_hosts) {
  return num_ranks >= a.from_ranks && num_hosts >= a.from_hosts;
}

/// The exclusion of an algorithm of the advisory's collective by the advisory's conditions; without
/// an algorithm, the conditions alone.
inline select::exclusion exclusion_of(const advisory& a, const algorithm* what) {
  select::exclusion e{.what = what,
                      .from_bytes = a.from_bytes,
                      .from_ranks = a.from_ranks,
                      .from_hosts = a.from_hosts};
  if (a.operation) {
    const auto& names = select::operation_class_names;
    e.operation = select::operation_class(std::ranges::find(names, *a.operation) - names.begin());
  }
  if (a.to_bytes) e.to_bytes = *a.to_bytes;
  if (a.to_ranks) e.to_ranks = *a.to_ranks;
  if (a.to_hosts) e.to_hosts = *a.to_hosts;
  return e;
}

/// The exclusion that the advisory asks for; empty: none. The collective and the algorithm exist
/// (the reader of the file checks that).
inline std::optional<select::exclusion> exclusion_of(const advisory& a) {
  if (!a.avoid) return std::nullopt;
  return exclusion_of(a, find_algorithm(*find_collective(*a.collective), *a.avoid));
}

/// Whether a call of the MPI library's own collective meets the fault. The answer is no for
/// advisories on single algorithms, because the library's choice is unknown, and for advisories
/// with a condition that railpass cannot check.
inline bool concerns(const advisory& a, collective op, const select::excludable_call& c) {
  if (a.collective != name_of(op) || !a.algorithms.empty() || a.condition) return false;
  const algorithm* const native = find_algorithm(op, "native");
  return select::excludes(exclusion_of(a, native), *native, c);
}

/// Calls that the MPI library runs by an algorithm of its own.
struct library_calls {
  int num_ranks = 1, num_hosts = 1;
  bool commutative = true;  ///< all their operations
};

/// Whether such calls by this algorithm of the MPI library may meet the fault.
inline bool names_algorithm(const advisory& a, collective op, std::string_view algorithm,
                            const library_calls& c) {
  return a.collective == name_of(op) && !(c.commutative && a.operation == "user_ordered") &&
         may_meet(a, c.num_ranks, c.num_hosts) && (!a.to_ranks || c.num_ranks <= *a.to_ranks) &&
         (!a.to_hosts || c.num_hosts <= *a.to_hosts) &&
         std::ranges::find(a.algorithms, algorithm) != a.algorithms.end();
}

/// "all_to_allw of Open MPI before 4.1.2, with MPI_IN_PLACE: crashes (https://...)".
inline std::string text_of(const advisory& a) {
  std::string text;
  if (a.collective) text += *a.collective + " of ";
  text += a.library;
  if (a.from_version) text += " from " + *a.from_version + " on";
  if (a.before_version) text += (a.from_version ? ", before " : " before ") + *a.before_version;
  for (const std::string& name : a.algorithms)
    text += (&name == &a.algorithms.front() ? ", algorithm " : " or ") + name;
  text += select::conditions_text(exclusion_of(a, nullptr));
  if (a.condition) text += ", " + *a.condition;
  text += ": " + a.effect;
  for (const auto& [name, value] : a.settings)
    text += (name == a.settings.begin()->first ? "; set " : " and ") + name + "=" + value;
  return text + " (" + a.link + ")";
}

}  // namespace railpass::knowledge
