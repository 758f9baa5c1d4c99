// SPDX-License-Identifier: BSL-1.0
#include "lib/report/statistics_tables.hpp"

#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"
#include "railpass/select/statistics/summary.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace railpass::internal::report {
namespace {

using estimate = select::time_estimate;
using times = select::sampled_times;

std::string show(const estimate& b) {
  return format_seconds(b.mean_s) + " x/" + fixed(std::exp(b.spread), 2);
}

// How many times as fast as native, with its 95 % interval.
std::string speedup(const select::pair_record& pairs) {
  std::string text = fixed(std::exp(pairs.gain), 2);
  if (pairs.deviation) {
    const double reach = 1.96 * *pairs.deviation;
    text += " (" + fixed(std::exp(pairs.gain - reach), 2) + " .. " +
            fixed(std::exp(pairs.gain + reach), 2) + ")";
  }
  return text;
}

bool is_in_use_or_baseline(const select::arm_statistics& a, const select::context_statistics& c) {
  return a.arm == c.current_arm || a.arm == c.baseline;
}

// The most used first: all arms, or the arm in use, its baseline and the most used ones.
std::vector<const select::arm_statistics*> arms_to_show(const select::context_statistics& c,
                                                        bool all) {
  constexpr std::ptrdiff_t most_used = 6;
  std::vector<const select::arm_statistics*> arms;
  for (const select::arm_statistics& a : c.arms) arms.push_back(&a);
  std::ranges::stable_sort(arms, std::ranges::greater{}, &select::arm_statistics::calls);
  if (all) return arms;
  std::ptrdiff_t used = 0;
  std::erase_if(arms, [&](const select::arm_statistics* a) {
    return !is_in_use_or_baseline(*a, c) && (a->calls == 0 || ++used > most_used);
  });
  return arms;
}

// Those that took the most time first: all, or the few that took nearly all of the time.
std::vector<const select::context_statistics*> contexts_to_show(const select::statistics_dump& dump,
                                                                bool all) {
  constexpr std::size_t most = 12;
  constexpr double nearly_all = 0.99;
  std::vector<const select::context_statistics*> contexts;
  double total_s = 0, shown_s = 0;
  for (const select::context_statistics& c : dump.contexts) {
    contexts.push_back(&c);
    total_s += c.time_s;
  }
  std::ranges::stable_sort(contexts, std::ranges::greater{}, &select::context_statistics::time_s);
  if (all) return contexts;
  std::size_t shown = 0;
  while (shown < std::min(most, contexts.size()) && (shown == 0 || shown_s < nearly_all * total_s))
    shown_s += contexts[shown++]->time_s;
  contexts.resize(shown);
  return contexts;
}

// A sentence about the contexts that are left out; empty if all contexts are shown.
std::string others_than(std::span<const select::context_statistics* const> shown,
                        const select::statistics_dump& dump) {
  if (shown.size() == dump.contexts.size()) return "";
  double total_s = 0, shown_s = 0;
  for (const select::context_statistics& c : dump.contexts) total_s += c.time_s;
  for (const select::context_statistics* c : shown) shown_s += c->time_s;
  const std::size_t others = dump.contexts.size() - shown.size();
  return std::to_string(others) + (others == 1 ? " more context" : " more contexts") + " with " +
         percent(total_s > 0 ? (total_s - shown_s) / total_s : 0) +
         " of the time: --all shows all\n\n";
}

std::string title_of(const select::context_statistics& c) {
  std::string title = name_of(c) + " (" + std::to_string(c.ranks_per_node) + " per node)";
  if (c.operation != "none") title += ", operation " + c.operation;
  if (!c.communicator.empty()) title += ", communicator " + c.communicator;
  return title;
}

template <class T>
std::string number(const T& value) {
  return nlohmann::json(value).dump();
}
template <class T>
std::string number(const std::optional<T>& value) {
  return value ? number(*value) : "";
}
template <class T, class Member>
std::string number(const std::optional<T>& of, Member T::*member) {
  return of ? number((*of).*member) : "";
}

std::optional<times> known(const select::arm_statistics& a) {
  return a.times.mean_s > 0 ? std::optional(a.times) : std::nullopt;
}

// A column for programs: numbers in full.
struct column {
  const char* title;
  std::string (*cell)(const select::context_statistics&, const select::arm_statistics&);
};
constexpr column columns[] = {
    {"communicator", [](auto& c, auto&) { return c.communicator; }},
    {"collective", [](auto& c, auto&) { return c.collective; }},
    {"num_ranks", [](auto& c, auto&) { return number(c.num_ranks); }},
    {"ranks_per_node", [](auto& c, auto&) { return number(c.ranks_per_node); }},
    {"from_bytes", [](auto& c, auto&) { return number(c.from_bytes); }},
    {"to_bytes", [](auto& c, auto&) { return number(c.to_bytes); }},
    {"operation", [](auto& c, auto&) { return c.operation; }},
    {"policy", [](auto& c, auto&) { return c.policy; }},
    {"arm", [](auto&, auto& a) { return a.arm; }},
    {"calls", [](auto&, auto& a) { return number(a.calls); }},
    {"samples", [](auto&, auto& a) { return number(a.times.samples); }},
    {"time_s", [](auto&, auto& a) { return number(a.time_s); }},
    {"mean_s", [](auto&, auto& a) { return number(known(a), &times::mean_s); }},
    {"spread", [](auto&, auto& a) { return number(known(a), &times::spread); }},
    {"prior_mean_s", [](auto&, auto& a) { return number(a.prior, &estimate::mean_s); }},
    {"prior_spread", [](auto&, auto& a) { return number(a.prior, &estimate::spread); }},
    {"posterior_mean_s", [](auto&, auto& a) { return number(a.posterior, &estimate::mean_s); }},
    {"posterior_spread", [](auto&, auto& a) { return number(a.posterior, &estimate::spread); }},
    {"probability", [](auto&, auto& a) { return number(a.probability); }},
    {"exploration_cost_s", [](auto&, auto& a) { return number(a.exploration_cost_s); }},
    {"checked_calls", [](auto& c, auto&) { return number(c.checked_calls); }},
    {"checks_s", [](auto& c, auto&) { return number(c.checks_s); }},
    {"pairs", [](auto&, auto& a) { return number(a.pairs, &select::pair_record::pairs); }},
    {"won_pairs", [](auto&, auto& a) { return number(a.pairs, &select::pair_record::wins); }},
    {"speedup",
     [](auto&, auto& a) { return a.pairs ? number(std::exp(a.pairs->gain)) : std::string(); }},
    {"speedup_spread",
     [](auto&, auto& a) { return number(a.pairs, &select::pair_record::deviation); }},
    {"skew_s", [](auto& c, auto&) { return number(c.skew_s); }},
    {"skew_p90_s", [](auto& c, auto&) { return number(c.skew_p90_s); }},
    {"core_given_share", [](auto& c, auto&) { return number(c.core_given_share); }},
    {"cost_share", [](auto& c, auto&) { return number(c.cost_share); }},
    {"overlapped_share", [](auto& c, auto&) { return number(c.overlapped_share); }},
    {"own_s", [](auto& c, auto&) { return number(c.own_s); }},
    {"current", [](auto& c, auto& a) { return std::string(a.arm == c.current_arm ? "1" : "0"); }}};

std::string checks_of(std::int64_t calls, double checks_s, double calls_s) {
  return "checks of " + std::to_string(calls) + (calls == 1 ? " result" : " results") + " took " +
         format_seconds(checks_s) +
         (calls_s > 0 ? ", " + percent(checks_s / calls_s, 2) + " of the calls' time" : "");
}

std::string checks_of_all(const select::statistics_dump& dump) {
  select::context_statistics all;
  for (const select::context_statistics& c : dump.contexts) {
    all.checked_calls += c.checked_calls;
    all.checks_s += c.checks_s;
    all.time_s += c.time_s;
  }
  if (all.checked_calls == 0) return {};
  return "all contexts: " + checks_of(all.checked_calls, all.checks_s, all.time_s) + '\n';
}

}  // namespace

table statistics_numbers(const select::statistics_dump& dump) {
  std::vector<std::string> titles;
  for (const column& of : columns) titles.emplace_back(of.title);
  table lines(titles);
  for (const select::context_statistics& c : dump.contexts)
    for (const select::arm_statistics& a : c.arms) {
      std::vector<std::string> row;
      for (const column& of : columns) row.push_back(of.cell(c, a));
      lines.add(row);
    }
  return lines;
}

std::string statistics_text(const select::statistics_dump& dump, const statistics_view& view,
                            output& out) {
  const auto line_of = [&](const std::string& words) {
    return out.wrapped(printable(words), 2) + '\n';
  };
  std::string text;
  const auto contexts = contexts_to_show(dump, view.all);
  for (const select::context_statistics* const context : contexts) {
    const select::context_statistics& c = *context;
    table lines({"arm", "calls", "time", "mean", "spread", "prior", "posterior", "next",
                 "explored for", "won", "speedup"});
    const auto shown = arms_to_show(c, view.all);
    for (const select::arm_statistics* a : shown) {
      const std::vector<std::string> row{
          (a->arm == c.current_arm ? "* " : "  ") + a->arm,
          std::to_string(a->calls),
          format_seconds(a->time_s),
          known(*a) ? format_seconds(a->times.mean_s) : "-",
          known(*a) ? percent(a->times.spread) : "-",
          a->prior ? show(*a->prior) : "-",
          a->posterior ? show(*a->posterior) : "-",
          percent(a->probability),
          format_seconds(a->exploration_cost_s),
          a->pairs ? std::to_string(a->pairs->wins) + "/" + std::to_string(a->pairs->pairs) : "-",
          a->pairs ? speedup(*a->pairs) : "-"};
      if (is_in_use_or_baseline(*a, c))
        lines.add(row);
      else
        lines.add_folded(row);
    }
    text += view.markdown ? "### " + printable(title_of(c)) + "\n\n" : line_of(title_of(c));
    text += view.markdown ? lines.markdown() + '\n' : out.printed(lines);
    text += line_of(std::to_string(c.calls) + " calls, " + format_seconds(c.time_s) + " (" +
                    format_seconds(c.exploration_cost_s) + " for exploration); policy " + c.policy);
    if (c.skew_s && c.skew_p90_s)
      text += "arrival imbalance of the ranks: median " + format_seconds(*c.skew_s) +
              ", 90 % quantile " + format_seconds(*c.skew_p90_s) + "\n";
    if (c.core_given_share)
      text += "a rank lost its core in " + percent(*c.core_given_share) + " of the timed calls\n";
    if (c.cost_share)
      text += "cost to the program (shared clock) measured in " + percent(*c.cost_share) +
              " of the timed calls\n";
    if (c.overlapped_share >= 0.005)
      text += line_of(percent(c.overlapped_share) +
                      " of the time of this communicator's calls overlaps with calls of other "
                      "communicators");
    if (c.checked_calls > 0) text += line_of(checks_of(c.checked_calls, c.checks_s, c.time_s));
    if (c.own_s) text += "overhead of railpass: " + format_seconds(*c.own_s) + " per call\n";
    if (!c.reason.empty()) text += line_of("* " + c.current_arm + ": " + c.reason);
    if (shown.size() < c.arms.size())
      text += std::to_string(c.arms.size() - shown.size()) +
              " more arms are not shown (--all shows them)\n";
    text += '\n';
  }
  text += others_than(contexts, dump);
  text += dump.contexts.empty() ? "No context was tuned.\n" : line_of(select::summary_of(dump));
  if (!dump.rails.empty()) {
    table lines(
        {"rail", "rails", "sent", "share", "Mbit/s", "prediction off by", "busy for", "changes"});
    for (const select::rail_statistics& r : dump.rails)
      lines.add({r.rail, r.rails, format_bytes(r.sent_bytes), percent(r.share),
                 fixed(r.bytes_per_s * 8e-6, 1),
                 r.prediction_error ? percent(*r.prediction_error) : "-",
                 format_seconds(r.backlog_s), std::to_string(r.changes)});
    text += (view.markdown ? "### " : "") + std::string("Traffic of rank 0 over rails") +
            (view.markdown ? "\n\n" : "\n") +
            (view.markdown ? lines.markdown() : out.printed(lines)) + '\n';
  }
  text += checks_of_all(dump);
  text += std::to_string(dump.merges) + " syncs of statistics took " +
          format_seconds(dump.merge_cost_s) + "; written at " + dump.written_at + '\n';
  return text;
}

}  // namespace railpass::internal::report
