// SPDX-License-Identifier: BSL-1.0
#include "lib/store/quarantine.hpp"

#include "lib/cli/environment.hpp"
#include "lib/cli/verb.hpp"
#include "lib/report/table.hpp"
#include "lib/store/halts.hpp"
#include "railpass/base/printable.hpp"
#include "railpass/base/units.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace railpass::internal::cli {
namespace {

using nlohmann::ordered_json;

struct options {
  std::string store;
  std::vector<std::string> names;
  bool all = false;
  json_output json;

  store::locations locations() const {
    if (store.empty()) return knowledge_locations();
    const std::filesystem::path site = store::locations_of("off").site;
    return {.own = store, .others = {}, .site = store == site ? site : std::filesystem::path()};
  }
};

std::string name_of(const knowledge::quarantined& q) { return q.collective + ":" + q.algorithm; }

void say(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems)
    std::cerr << "railpass quarantine: " << printable(problem) << '\n';
}

int list(const options& o) {
  std::vector<std::string> hangs;
  try {
    hangs = store::judge_halts(o.locations().own);
  } catch (const error& unwritable) {
    say({unwritable.what()});
  }
  const store::quarantine_contents found = store::quarantine(o.locations(), {});
  ordered_json list = ordered_json::array();
  report::table lines({"algorithm", "MPI library", "found", "ranks", "size", "difference"}, 1);
  for (const store::quarantine_file& file : found.files) {
    const knowledge::quarantined& q = file.record;
    list.push_back({{"collective", q.collective},
                    {"algorithm", q.algorithm},
                    {"variant", q.variant},
                    {"mpi_library", q.mpi_library},
                    {"railpass_version", q.railpass_version},
                    {"found_at", q.found_at},
                    {"num_ranks", q.num_ranks},
                    {"ranks_per_node", q.ranks_per_node},
                    {"bytes", q.bytes},
                    {"elements", q.elements},
                    {"difference", q.difference},
                    {"hung_on", q.hung_on},
                    {"counts", file.counts},
                    {"path", file.path.string()}});
    lines.add({printable(name_of(q)), printable(q.mpi_library), q.found_at.substr(0, 10),
               std::to_string(q.num_ranks), q.bytes > 0 ? format_bytes(q.bytes) : "",
               printable(q.difference) +
                   (file.counts ? "" : " (ignored: only a site's file quarantines native)")});
  }
  if (o.json.text()) {
    say(hangs);
    say(found.problems);
    if (lines.empty())
      screen().words() << "No algorithm is in quarantine.\n";
    else
      screen().words() << screen().printed(lines);
  }
  o.json.write(ordered_json{{"quarantined", list}, {"hangs", hangs}, {"problems", found.problems}});
  return succeeded;
}

int lift(const options& o) {
  if (o.all != o.names.empty())
    throw usage_error("expected names such as all_reduce:ring, or --all");
  const store::quarantine_contents found = store::quarantine(o.locations(), {});
  say(found.problems);
  std::vector<std::string> lifted;
  for (const store::quarantine_file& file : found.files) {
    const std::string name = name_of(file.record);
    if (!o.all && std::ranges::find(o.names, name) == o.names.end()) continue;
    store::lift(file.path);
    lifted.push_back(name);
    if (o.json.text())
      screen().words() << printable(name) << " may be used again with "
                       << printable(file.record.mpi_library) << '\n';
  }
  for (const std::string& name : o.names)
    if (std::ranges::find(lifted, name) == lifted.end())
      throw error("'" + name + "' is not in quarantine (railpass quarantine list)");
  if (o.json.text() && lifted.empty()) screen().words() << "No algorithm is in quarantine.\n";
  o.json.write(ordered_json{{"lifted", lifted}});
  return succeeded;
}

}  // namespace

const verb quarantine_verb{
    "  railpass quarantine list\n"
    "  railpass quarantine lift all_reduce:ring\n"
    "  railpass quarantine lift --all\n"
    "The store is --store, else RAILPASS_KNOWLEDGE, else $XDG_STATE_HOME/railpass or\n"
    "~/.local/state/railpass; the site's /var/lib/railpass counts, too.\n",
    [](CLI::App& app) -> std::function<int()> {
      const auto o = std::make_shared<options>();
      app.require_subcommand(1);
      CLI::App* const lists = app.add_subcommand("list", "Algorithms in quarantine, and why");
      CLI::App* const lifts = app.add_subcommand("lift", "Let runs use algorithms again");
      add_option(*lifts, "names", o->names, "such as all_reduce:ring").value_name("NAME");
      add_flag(*lifts, "--all", o->all, "lift the quarantine of all algorithms");
      for (CLI::App* const sub : {lists, lifts}) {
        add_option(*sub, "--store", o->store, "another store than the usual one")
            .value_name("PATH");
        o->json.declare(*sub);
      }
      return [o, lists] { return lists->parsed() ? list(*o) : lift(*o); };
    }};

}  // namespace railpass::internal::cli
