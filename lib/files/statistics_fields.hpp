// SPDX-License-Identifier: BSL-1.0
//
// The fields of statistics dumps.
#pragma once

#include "lib/files/machine_fields.hpp"
#include "railpass/select/statistics/dump.hpp"

namespace railpass::internal::files {

inline void visit(auto& v, is<select::time_estimate> auto& b) {
  v("mean_s", b.mean_s);
  v({"spread", "standard deviation of ln(seconds)"}, b.spread);
}

inline void visit(auto& v, is<select::time_quantiles> auto& q) {
  v({"low_s", "10 % quantile"}, q.low_s);
  v("median_s", q.median_s);
  v({"high_s", "90 % quantile"}, q.high_s);
}
inline void check(const json_reader& r, const select::time_quantiles& q) {
  if (q.median_s < q.low_s) r.field("median_s").fail("expected at least low_s");
  if (q.high_s < q.median_s) r.field("high_s").fail("expected at least median_s");
}

inline constexpr field compared(
    "pairs", "comparisons with native: calls of both between the same two syncs of statistics");
inline void visit(auto& v, is<select::pair_record> auto& p) {
  v("pairs", p.pairs, whole{.low = 1});
  v("wins", p.wins);
  v({"gain", "ln(native's time / the arm's time)"}, p.gain, finite{});
  v("deviation", p.deviation);
}
inline void check(const json_reader& r, const select::pair_record& p) {
  if (p.wins > p.pairs) r.field("wins").fail("expected at most pairs");
}

inline void visit(auto& v, is<select::arm_statistics> auto& a) {
  v("arm", a.arm, nonempty);
  v("calls", a.calls);
  v({"samples", "timed calls"}, a.times.samples);
  v("time_s", a.time_s);
  visit_if(a.times.mean_s > 0, v, "mean_s", a.times.mean_s);
  visit_if(a.times.mean_s > 0, v, "spread", a.times.spread);
  visit_if(a.times.quantiles.high_s > 0, v, "quantiles", a.times.quantiles);
  v("prior", a.prior);
  v("posterior", a.posterior);
  v({"probability", "probability that the next call takes the arm"}, a.probability, share{});
  v("exploration_cost_s", a.exploration_cost_s, finite{});
  v(compared, a.pairs);
}

inline void visit(auto& v, is<select::context_statistics> auto& c) {
  v("communicator", c.communicator);
  v({"collective", "name of the collective or of the function set"}, c.collective, nonempty);
  v("num_ranks", c.num_ranks, one_or_more);
  v("ranks_per_node", c.ranks_per_node, one_or_more);
  v("from_bytes", c.from_bytes);
  v("to_bytes", c.to_bytes);
  v("first_bytes", c.first_bytes);
  v("operation", c.operation);
  v("policy", c.policy);
  v("current_arm", c.current_arm);
  v({"reason", "why current_arm is in use"}, c.reason);
  v("calls", c.calls);
  v("time_s", c.time_s);
  v("exploration_cost_s", c.exploration_cost_s, finite{});
  v(later("checked_calls", "whose results the ranks have checked"), c.checked_calls);
  v(later("checks_s", "time of these checks on rank 0; time_s excludes it"), c.checks_s);
  visit_if(!c.rails.empty(), v, "rails", c.rails);
  visit_if(
      c.baseline != "native", v,
      {"baseline",
       "the arm to which other arms are compared: native, or the first version of a function set"},
      c.baseline, nonempty);
  v({"mean_bytes",
     "mean size of the timed calls of gatherv, scatterv, all_to_allv or all_to_allw; from_bytes "
     "and to_bytes are the smallest and the largest size"},
    c.mean_bytes);
  v({"skew_s", "arrival imbalance of the ranks, median"}, c.skew_s);
  v("skew_p90_s", c.skew_p90_s);
  v({"core_given_share", "share of timed calls in which a rank lost its core to another process"},
    c.core_given_share);
  v({"cost_share",
     "share of timed calls whose time is their cost to the program, by a clock of all ranks"},
    c.cost_share);
  v(later("overlapped_share"), c.overlapped_share, share{});
  v({"own_s", "median overhead of railpass in a call"}, c.own_s);
  v("arms", c.arms);
}
inline void check(const json_reader& r, const select::context_statistics& c) {
  if (c.to_bytes < c.from_bytes) r.field("to_bytes").fail("expected at least from_bytes");
}

inline void visit(auto& v, is<select::rail_statistics> auto& s) {
  v("rails", s.rails);
  v("rail", s.rail);
  v("sent_bytes", s.sent_bytes);
  v("share", s.share);
  v("bytes_per_s", s.bytes_per_s);
  v("changes", s.changes);
  v("prediction_error", s.prediction_error);
  v("backlog_s", s.backlog_s);
}

inline void visit(auto& v, is<select::host_difference> auto& d) {
  v("value", d.value, finite{});
  v("low", d.low, finite{});
  v("high", d.high, finite{});
  v({"is_named", "the interval is beyond the threshold of what matters"}, d.is_named);
}
inline void check(const json_reader& r, const select::host_difference& d) {
  if (d.value < d.low) r.field("value").fail("expected at least low");
  if (d.high < d.value) r.field("high").fail("expected at least value");
}

inline void visit(auto& v, is<select::host_statistics> auto& h) {
  v("host", h.host, whole{.high = largest_count});
  visit_if(!h.name.empty(), v, {"name", "with RAILPASS_HOST_NAMES=1"}, h.name);
  v({"first_rank", "in MPI_COMM_WORLD"}, h.first_rank, whole{.high = largest_count});
  v("num_ranks", h.num_ranks, one_or_more);
  v({"late_s",
     "difference from the mean of all other hosts, with its interval: time between a call and the "
     "next call"},
    h.late_s);
  v({"starved_share",
     "the same: share of the time in which ranks were ready to run but had no core"},
    h.starved_share);
  v({"link_factor",
     "ratio to the mean of all other hosts, with its interval: time of an exchange of data between "
     "hosts in MPI_Finalize"},
    h.link_factor);
}

template <>
inline constexpr document_format format_for<select::statistics_dump>{
    "railpass statistics", 1, "Statistics of a program's collectives (RAILPASS_STATS)"};

inline void visit(auto& v, is<select::statistics_dump> auto& d) {
  v(machine_id, d.machine_id);
  v({"written_at", utc_example}, d.written_at);
  v("merges", d.merges);
  v("merge_cost_s", d.merge_cost_s);
  v("contexts", d.contexts);
  v(later("rails"), d.rails);
  v(later("hosts"), d.hosts);
}

}  // namespace railpass::internal::files
