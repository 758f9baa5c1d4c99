// SPDX-License-Identifier: BSL-1.0
#include "railpass/knowledge/freeze.hpp"

#include "lib/cli/environment.hpp"
#include "lib/cli/verb.hpp"
#include "lib/files/files.hpp"
#include "lib/report/table.hpp"
#include "lib/store/sources.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

namespace railpass::internal::cli {
namespace {

struct options {
  std::string output;
  std::vector<std::string> inputs;
};

void say(const std::vector<std::string>& sentences) {
  for (const std::string& one : sentences)
    std::cerr << "railpass freeze: " << printable(one) << '\n';
}

report::table table_of(const std::vector<knowledge::planned_calls>& calls) {
  report::table lines({"collective", "operation", "ranks", "per node", "from", "below", "variant"},
                      6);
  for (const knowledge::planned_calls& c : calls)
    lines.add({c.collective, c.operation, std::to_string(c.num_ranks),
               std::to_string(c.ranks_per_node), format_bytes(c.from_bytes),
               c.to_bytes ? format_bytes(*c.to_bytes + 1) : "any size", c.variant});
  return lines;
}

std::string written_store() {
  const std::filesystem::path own = knowledge_locations().own;
  if (!std::filesystem::exists(own))
    throw error(own.string() +
                ": no run has written knowledge yet; start the program with railpass run, or name "
                "files or stores");
  return own.string();
}

int run(const options& o) {
  std::vector<std::string> problems;
  const store::machine_knowledge known = store::latest_machine_of(
      o.inputs.empty() ? std::vector{written_store()} : o.inputs, problems);
  say(problems);
  say(known.left_out);
  const knowledge::frozen chosen = knowledge::freeze(known.contexts);
  say(chosen.left_out);
  if (chosen.calls.empty())
    throw error("no calls of collectives are known that a plan can contain");
  write_output(o.output, files::to_json(knowledge::plan{.machine = known.machine,
                                                        .written_at = files::utc_now(),
                                                        .calls = chosen.calls}));
  if (o.output != "-") {
    const auto gains = std::ranges::count_if(
        chosen.calls, [](const knowledge::planned_calls& c) { return c.variant != "native"; });
    screen().words() << screen().printed(table_of(chosen.calls), "plan") << '\n'
                     << (gains == 0 ? "No variant is faster than native with certainty: the plan "
                                      "changes nothing.\n"
                                    : "Programs follow the plan with RAILPASS_PLAN=" +
                                          printable(o.output) + ".\n");
  }
  return succeeded;
}

}  // namespace

const verb freeze_verb{
    "  railpass freeze -o plan.json\n"
    "  railpass freeze -o plan.json dump.json bench.json\n"
    "  RAILPASS_PLAN=plan.json railpass run -n 8 ./program\n"
    "  RAILPASS_PLAN=plan.json railpass compare -- mpirun -n 8 ./program\n"
    "Without files or stores, the plan comes from the user's store (RAILPASS_KNOWLEDGE). A variant "
    "is\n"
    "in the plan where its gain over native exceeds the standard deviation of the gain. Calls that "
    "the\n"
    "plan does not name are native. A plan holds for one machine and one MPI library.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      add_option(app, "-o,--output", o->output, "file to write; - is standard output")
          .value_name("FILE")
          .required();
      add_option(app, "from", o->inputs,
                 "statistics dumps, bench results, exported knowledge or stores")
          .value_name("PATH");
      return [o] { return run(*o); };
    }};

}  // namespace railpass::internal::cli
