// SPDX-License-Identifier: BSL-1.0
//
// The fields of bench results.
#pragma once

#include "lib/files/machine_fields.hpp"
#include "models/samples.hpp"

namespace railpass::internal::files {

inline void visit(auto& v, is<bench_result> auto& r) {
  v("collective", r.collective, nonempty);
  v("bytes", r.bytes);
  v({"arm", "an arm's name, native, native:ALGORITHM[:SEGMENT] or tuned"}, r.arm, nonempty);
  v("median_s", r.median_s, positive{});
  v({"p90_s", "90 % quantile of the runs"}, r.p90_s, positive{});
  v("runs", r.runs, whole{.low = 1});
  v(or_null("ratio_to_native", "ratio of medians"), r.ratio_to_native);
  v({"ratio_low", "95 % interval of ratio_to_native"}, r.ratio_low);
  v("ratio_high", r.ratio_high);
  v("ratio_to_best", r.ratio_to_best);
  v("best_low", r.best_low);
  v("best_high", r.best_high);
  v("spread_s", r.spread_s);
  visit_if(!r.launch_medians_s.empty(), v,
           {"launch_medians_s", "median of each launch, if there were several launches"},
           r.launch_medians_s, list<positive>{.may_be_empty = false});
  visit_if(!r.launch_ratios.empty(), v, {"launch_ratios", "ratio to native of each launch"},
           r.launch_ratios, list<positive>{.may_be_empty = false});
}

inline void visit(auto& v, is<learning_result> auto& l) {
  v("collective", l.collective, nonempty);
  v("bytes", l.bytes);
  v("first_call", l.first_call, whole{.low = 1});
  v("calls", l.calls, whole{.low = 1});
  v({"total_s", "sum over the calls of a tuned communicator"}, l.total_s, positive{});
  v("native_total_s", l.native_total_s, positive{});
  v("ratio_to_native", l.ratio_to_native, positive{});
  v({"native_low", "95 % interval of ratio_to_native"}, l.native_low);
  v("native_high", l.native_high);
  v("best_arm", l.best_arm, nonempty);
  v("best_total_s", l.best_total_s, positive{});
  v("ratio_to_best", l.ratio_to_best, positive{});
  v("worst_call_s", l.worst_call_s, positive{});
  v("best_median_s", l.best_median_s, positive{});
  v("best_worst_call_s", l.best_worst_call_s, positive{});
}

inline void visit(auto& v, is<own_algorithm> auto& a) {
  v("collective", a.collective, nonempty);
  v({"name", "the MPI library's name"}, a.name, nonempty);
  v({"number", "the MPI library's number"}, a.number);
}

template <>
inline constexpr document_format format_for<bench_results>{"railpass bench", 1,
                                                           "Results of railpass bench"};

inline void visit(auto& v, is<bench_results> auto& b) {
  v.group("environment", [&](auto& e) {
    e(machine_id, b.machine_id);
    e({"measured_at", utc_example}, b.measured_at);
    e("num_ranks", b.num_ranks, one_or_more);
    e("ranks_per_node", b.ranks_per_node, one_or_more);
    e({"notes", "remarks by collective/bytes/subject"}, b.notes);
    visit_if(
        b.ranks_per_cache > 0, e,
        {"ranks_per_cache", "ranks that share a cache, if the ranks of a node used several caches"},
        b.ranks_per_cache, one_or_more);
  });
  v("results", b.results);
  v({"learning", "first calls of a new communicator (--learning)"}, b.learning);
  visit_if(!b.own_algorithms.empty(), v,
           {"own_algorithms", "the MPI library's own algorithms, if any was measured"},
           b.own_algorithms);
}

}  // namespace railpass::internal::files
