// SPDX-License-Identifier: BSL-1.0
#include "collectives/verify.hpp"

#include "lib/base/join.hpp"
#include "lib/cli/verb.hpp"
#include "lib/report/table.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>

namespace railpass::internal::cli {
namespace {

struct options : placed_ranks {
  std::string collective_name, name;
  int root = 0;
  bool all = false;
  json_output json;
};

std::string show(const verification& v) {
  std::string text;
  for (const auto& [name, value] : v.parameters)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  return text;
}

// The first ranks of groups of so many, and the number of ranks; none if these groups do not
// matter.
std::vector<std::int32_t> begins_of_blocks(std::int32_t num_ranks, std::int32_t of_each) {
  std::vector<std::int32_t> begins;
  if (of_each < 1 || !node_facts::blocks(num_ranks, of_each).matter()) return begins;
  for (std::int32_t first = 0; first < num_ranks; first += of_each) begins.push_back(first);
  begins.push_back(num_ranks);
  return begins;
}

// All variants of an algorithm.
struct summary {
  std::string algorithm{};
  std::int64_t arms = 0, steps = 0, wrong = 0;
  std::string message{};  // of the first arm that has one
};

report::table table_of(const std::vector<summary>& algorithms) {
  report::table lines({"algorithm", "variants", "steps", "wrong", "message"});
  for (const summary& s : algorithms)
    lines.add({s.algorithm, std::to_string(s.arms), std::to_string(s.steps),
               std::to_string(s.wrong), s.message},
              s.wrong == 0 ? report::tone::plain : report::tone::bad);
  return lines;
}

// The collective's algorithms, of names that contain `name`, that are not among the results.
std::vector<std::string> left_out(collective op, const std::string& name,
                                  const std::vector<verification>& results) {
  std::vector<std::string> names;
  for (const algorithm* const a : all_algorithms)
    if (a->op == op && !a->is_native() && a->name.find(name) != std::string_view::npos &&
        std::ranges::find(results, a->name, &verification::algorithm) == results.end())
      names.emplace_back(a->name);
  return names;
}

int run(const options& o) {
  const collective op = parse_collective("--collective", o.collective_name);
  check_root(o.root, o.num_ranks);
  report::progress_bar bar("verify", o.json.text());
  const auto progress = [&](double fraction, const std::string& doing) {
    bar.show(fraction, doing);
  };
  std::vector<verification> results = verify(op, o.num_ranks, {{o.root}}, progress);
  const auto add_on = [&](const rank_groups& groups) {
    std::ranges::move(verify(op, o.num_ranks, {{o.root}}, progress, groups),
                      std::back_inserter(results));
  };
  const std::vector<std::int32_t> nodes = begins_of_blocks(o.num_ranks, o.ranks_per_node),
                                  caches = begins_of_blocks(o.num_ranks, o.ranks_per_cache);
  if (!nodes.empty()) add_on({.nodes = nodes});
  if (!caches.empty()) add_on({.caches = caches});
  bar.hide();
  std::erase_if(results, [&](const verification& v) {
    return v.algorithm.find(o.name) == std::string_view::npos;
  });
  if (results.empty() && !o.name.empty())
    throw usage_error("--algorithm '" + o.name + "': no algorithm of " + o.collective_name +
                      " for this number of ranks has such a name");
  auto list = nlohmann::ordered_json::array();
  report::table lines({"algorithm", "parameters", "steps", "ok", "message"}, 2);
  std::vector<summary> algorithms;
  std::int64_t wrong = 0, steps = 0;
  for (const verification& v : results) {
    nlohmann::ordered_json values = nlohmann::ordered_json::object();
    for (const auto& [name, value] : v.parameters) values[name] = value;
    list.push_back({{"algorithm", v.algorithm},
                    {"parameters", values},
                    {"ok", v.ok},
                    {"steps", v.steps},
                    {"message", v.message}});
    lines.add({std::string(v.algorithm), show(v), std::to_string(v.steps), v.ok ? "yes" : "NO",
               v.message},
              v.ok ? report::tone::plain : report::tone::bad);
    if (algorithms.empty() || algorithms.back().algorithm != v.algorithm)
      algorithms.push_back({.algorithm = std::string(v.algorithm)});
    summary& all = algorithms.back();
    ++all.arms;
    all.steps += v.steps;
    all.wrong += v.ok ? 0 : 1;
    if (all.message.empty()) all.message = v.message;
    wrong += v.ok ? 0 : 1;
    steps += v.steps;
  }
  const std::vector<std::string> others = left_out(op, o.name, results);
  if (o.json.text()) {
    screen().words() << results.size() << " variants of " << name_of(op) << " for " << o.num_ranks
                     << " ranks, root " << o.root << ": " << steps << " steps checked, " << wrong
                     << " variants wrong\n\n"
                     << screen().printed(o.all || screen().csv ? lines : table_of(algorithms));
    if (!others.empty())
      screen().words() << '\n'
                       << screen().wrapped("not for these " + std::to_string(o.num_ranks) +
                                               " ranks: " + join(others) +
                                               " (`railpass algorithms` says what they need)",
                                           2)
                       << '\n';
  }
  o.json.write(list);
  return wrong == 0 ? succeeded : failed;
}

}  // namespace

const verb verify_verb{
    "  railpass verify --collective broadcast -p 37 --root 11\n"
    "  railpass verify --collective broadcast -p 37 --algorithm ring --all\n"
    "  railpass verify --collective all_reduce -p 64 --ranks-per-node 16 --json -\n"
    "The exit status is 1 if any algorithm is wrong.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "--collective", o->collective_name, "the collective")
          .value_name("NAME")
          .required();
      declare_ranks(app, *o, 4096);
      add_option(app, "--algorithm", o->name, "only names that contain TEXT").value_name("TEXT");
      add_flag(app, "--all", o->all, "list every variant, not only every algorithm");
      add_option(app, "--root", o->root, "root of the collective")
          .value_name("RANK")
          .show_default();
      o->json.declare(app);
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
