// SPDX-License-Identifier: BSL-1.0
//
// The fields of files of advisories.
#pragma once

#include "collectives/registry.hpp"
#include "lib/files/fields.hpp"
#include "railpass/knowledge/advisories.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal::files {

inline void visit(auto& v, is<knowledge::advisory> auto& a) {
  v({"library", "Open MPI, MPICH or Intel MPI"}, a.library, nonempty);
  v({"from_version", "the first version that has the fault; missing: all earlier ones have it"},
    a.from_version, nonempty);
  v({"before_version", "the first version without the fault; missing: no version"},
    a.before_version, nonempty);
  v({"collective", "missing: the fault is not of one collective"}, a.collective, nonempty);
  visit_if(!a.algorithms.empty(), v,
           {"algorithms", "of the MPI library, as railpass bench names them; missing: any"},
           a.algorithms, list<text>{.each = nonempty, .may_be_empty = false});
  v({"operation", "class of a reduction's operation; missing: any"}, a.operation, nonempty);
  visit_if(a.from_bytes > 0, v, {"from_bytes", "the smallest message; missing: 0"}, a.from_bytes);
  v({"to_bytes", "the largest message; missing: no limit"}, a.to_bytes);
  visit_if(a.from_ranks > 1, v, {"from_ranks", "missing: 1"}, a.from_ranks, one_or_more);
  v({"to_ranks", "missing: no limit"}, a.to_ranks, one_or_more);
  visit_if(a.from_hosts > 1, v, {"from_hosts", "missing: 1"}, a.from_hosts, one_or_more);
  v({"to_hosts", "missing: no limit"}, a.to_hosts, one_or_more);
  v({"condition", "a further condition that railpass cannot check"}, a.condition, nonempty);
  v({"effect", "the fault, such as: crashes"}, a.effect, nonempty);
  visit_if(!a.settings.empty(), v, {"settings", "environment variables that help"}, a.settings);
  v({"avoid",
     "native, or an algorithm of railpass, that calls must not use; only in a site's file"},
    a.avoid, nonempty);
  v({"link", "the report of the fault"}, a.link, nonempty);
}

inline void check(const json_reader& r, const knowledge::advisory& a) {
  const auto check_version = [&](const char* name, const std::optional<std::string>& text) {
    if (text && !knowledge::library_version::parse(*text))
      r.field(name).fail("expected a version such as 4.1.2, found '" + *text + "'");
  };
  constexpr std::array libraries{"Open MPI", "MPICH", "Intel MPI"};
  if (std::ranges::find(libraries, a.library) == libraries.end())
    r.field("library").fail("expected Open MPI, MPICH or Intel MPI, found '" + a.library + "'");
  check_version("from_version", a.from_version);
  check_version("before_version", a.before_version);
  const std::optional<collective> op = find_collective(a.collective.value_or(""));
  if (a.collective &&
      (op ? name_of(*op) != *a.collective : !a.collective->starts_with("neighbor_all_")))
    r.field("collective").fail("expected a collective, found '" + *a.collective + "'");
  const auto& classes = select::operation_class_names;
  if (a.operation && std::ranges::find(classes, *a.operation) == classes.end())
    r.field("operation").fail("expected none, builtin, user_commutative or user_ordered");
  const auto check_range = [&](const char* to, bool is_empty) {
    if (is_empty) r.field(to).fail("expected at least the beginning of the range");
  };
  check_range("to_bytes", a.to_bytes && *a.to_bytes < a.from_bytes);
  check_range("to_ranks", a.to_ranks && *a.to_ranks < a.from_ranks);
  check_range("to_hosts", a.to_hosts && *a.to_hosts < a.from_hosts);
  if (!a.avoid) return;
  if (!op)
    r.field("avoid").fail("expected a collective that is tuned beside it");
  else if (!find_algorithm(*op, *a.avoid))
    r.field("avoid").fail("expected native or an algorithm of " + *a.collective +
                          " (see railpass algorithms), found '" + *a.avoid + "'");
  if (!a.algorithms.empty() || a.condition)
    r.field("avoid").fail(
        "expected no algorithms and no condition beside it, because railpass "
        "cannot check these in calls");
}

template <>
inline constexpr document_format format_for<knowledge::advisory_list>{
    "railpass advisories", 1, "Known faults of MPI libraries (railpass doctor)"};

inline void visit(auto& v, is<knowledge::advisory_list> auto& l) { v("advisories", l.advisories); }

}  // namespace railpass::internal::files
