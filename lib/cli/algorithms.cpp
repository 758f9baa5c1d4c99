// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"
#include "lib/report/table.hpp"
#include "railpass/base/units.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>

namespace railpass::internal::cli {
namespace {

std::vector<std::string> names_of(const preconditions& needs) {
  std::vector<std::string> names;
  if (needs.commutative) names.emplace_back("commutative operation");
  if (needs.power_of_two) names.emplace_back("power of two of ranks");
  if (needs.even_ranks) names.emplace_back("even number of ranks");
  if (needs.min_ranks > 2)
    names.push_back("at least " + std::to_string(needs.min_ranks) + " ranks");
  if (needs.shared_memory)
    names.push_back(needs.max_nodes > 0 ? "memory shared within nodes" : "shared memory");
  if (needs.several_caches) names.emplace_back("several caches");
  if (needs.longest_block) names.emplace_back("the longest block");
  if (needs.single_copy) names.push_back("single copies");
  if (needs.max_nodes > 0)
    names.push_back(
        std::string("several nodes") +
        (needs.max_nodes < any_nodes ? ", at most " + std::to_string(needs.max_nodes) : "") +
        (needs.equal_nodes ? ", equal numbers of ranks" : "") +
        (needs.max_ranks_per_node < std::numeric_limits<int>::max()
             ? ", at most " + std::to_string(needs.max_ranks_per_node) + " ranks each"
             : ""));
  if (needs.max_ranks < std::numeric_limits<int>::max())
    names.push_back("at most " + std::to_string(needs.max_ranks) + " ranks");
  if (needs.min_units_per_rank > 0)
    names.push_back("at least " + std::to_string(needs.min_units_per_rank) + " unit per rank");
  return names;
}

// The values of a long list are those between the first two and the last.
std::string show(const parameter& p) {
  std::string text(p.name);
  for (int i = 0; i < p.num_values; ++i) {
    if (p.num_values > 5 && i > 1 && i + 1 < p.num_values) continue;
    if (p.num_values > 5 && i + 1 == p.num_values) text += ",..";
    const std::int64_t value = p.values[std::size_t(i)];
    text += (i ? "," : "=") + (p.in_bytes ? format_bytes(value) : std::to_string(value));
  }
  return text;
}

// n is the length of the message, b that of a rank's block of it.
std::string show(const scratch_formula& scratch) {
  std::string text;
  if (scratch.messages > 0) {
    std::ostringstream factor;
    factor << scratch.messages;
    text = factor.str() + " n";
  }
  if (scratch.blocks > 0)
    text += (text.empty() ? "" : " + ") + std::to_string(scratch.blocks) + " b";
  return text.empty() ? "0" : text;
}

nlohmann::ordered_json to_json(const algorithm& a) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (int i = 0; i < a.num_parameters(); ++i) {
    const parameter& p = a.parameter_list[std::size_t(i)];
    values[std::string(p.name)] =
        std::vector<std::int64_t>(p.values.begin(), p.values.begin() + p.num_values);
  }
  return {{"collective", name_of(a.op)}, {"name", a.name},
          {"parameters", values},        {"needs", names_of(a.needs)},
          {"scratch", show(a.scratch)},  {"source", a.source}};
}

struct options {
  std::string collective_name, name, need;
  bool markdown = false, all = false;
  json_output json;
};

bool is_asked_for(const algorithm& a, const options& o) {
  const std::vector<std::string> needs = names_of(a.needs);
  return (o.collective_name.empty() || name_of(a.op) == o.collective_name) &&
         a.name.find(o.name) != std::string_view::npos &&
         (o.need.empty() || std::ranges::any_of(needs, [&](const std::string& need) {
            return need.find(o.need) != std::string::npos;
          }));
}

std::string none_of(const options& o) {
  std::vector<std::string> wanted;
  if (!o.name.empty()) wanted.push_back("a name with '" + o.name + '\'');
  if (!o.need.empty()) wanted.push_back("a need with '" + o.need + '\'');
  return "no algorithm " + (o.collective_name.empty() ? "" : "of " + o.collective_name + ' ') +
         "has " + join(wanted, " and ") + " (railpass algorithms --all lists all algorithms)";
}

std::string count_of(std::size_t number, std::string_view what) {
  return std::to_string(number) + ' ' + std::string(what) + (number == 1 ? "" : "s");
}

// A line for each collective.
report::table counts_of(const std::vector<const algorithm*>& algorithms) {
  report::table lines({"collective", "algorithms", "in shared memory", "for several nodes"});
  for (const collective op : all_collectives) {
    const auto count = [&](auto property) {
      return std::to_string(std::ranges::count_if(
          algorithms, [&](const algorithm* a) { return a->op == op && property(a->needs); }));
    };
    lines.add({std::string(name_of(op)), count([](const preconditions&) { return true; }),
               count([](const preconditions& needs) { return needs.shared_memory; }),
               count([](const preconditions& needs) { return needs.max_nodes > 0; })});
  }
  return lines;
}

int run(const options& o) {
  if (!o.collective_name.empty()) parse_collective("--collective", o.collective_name);
  const bool chosen = !o.collective_name.empty() || !o.name.empty() || !o.need.empty();
  std::vector<const algorithm*> algorithms;
  std::ranges::copy_if(all_algorithms, std::back_inserter(algorithms),
                       [&](const algorithm* a) { return is_asked_for(*a, o); });
  if (algorithms.empty()) throw usage_error(none_of(o));
  auto list = nlohmann::ordered_json::array();
  report::table lines({"collective", "algorithm", "parameters", "needs", "scratch", "source"}, 2);
  for (const algorithm* a : algorithms) {
    list.push_back(to_json(*a));
    std::vector<std::string> shown;
    for (int i = 0; i < a->num_parameters(); ++i)
      shown.push_back(show(a->parameter_list[std::size_t(i)]));
    lines.add({std::string(name_of(a->op)), std::string(a->name), join(shown, " "),
               join(names_of(a->needs), "; "), show(a->scratch), std::string(a->source)});
  }
  const std::string summary = count_of(algorithms.size(), "algorithm") +
                              (chosen ? "" : " of " + count_of(num_collectives, "collective")) +
                              "\n\n";
  if (o.json.text() && (chosen || o.all || o.markdown || screen().csv))
    screen().words()
        << (o.markdown ? lines.markdown() : summary + screen().printed(lines))
        << "\nscratch: largest extra memory of a call on a rank.\n"
           "n: length of the message (the sum of all ranks' blocks, if there are blocks).\n"
           "b: length of the longest block.\n";
  else if (o.json.text())
    screen().words() << summary << screen().printed(counts_of(algorithms))
                     << "\nMore: --collective NAME, --algorithm TEXT, --needs TEXT, or --all.\n";
  o.json.write(list);
  return succeeded;
}

}  // namespace

const verb algorithms_verb{
    "  railpass algorithms --collective broadcast\n"
    "  railpass algorithms --algorithm ring --needs 'shared memory'\n"
    "  railpass algorithms --json -\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "--collective", o->collective_name, "only this collective")
          .value_name("NAME");
      add_option(app, "--algorithm", o->name, "only names that contain TEXT").value_name("TEXT");
      add_option(app, "--needs", o->need, "only algorithms with a need that contains TEXT")
          .value_name("TEXT");
      add_flag(app, "--all", o->all, "list all algorithms, not only their number");
      add_flag(app, "--markdown", o->markdown, "print the table as Markdown");
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
