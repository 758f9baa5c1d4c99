// SPDX-License-Identifier: BSL-1.0
#include "lib/store/sources.hpp"

#include "lib/files/files.hpp"
#include "lib/store/store.hpp"
#include "railpass/knowledge/imports.hpp"
#include "railpass/knowledge/plan.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

namespace railpass::internal::store {

namespace {

store_contents contents_of(const std::string& path, std::vector<std::string>& problems) {
  store_contents found = contents(path);
  if (found.machines.empty() && found.problems.empty())
    throw error(path + ": not a store of knowledge (no folder 'machines', or an empty folder)");
  std::ranges::move(found.problems, std::back_inserter(problems));
  return found;
}

struct machine_runs {
  fingerprint machine{};
  std::vector<knowledge::experience> contexts{};
  std::string last_at{};
};

}  // namespace

std::vector<knowledge::stored_run> runs_of_file(const std::string& path) {
  const std::string text = files::read_text(path);
  const std::string format = files::format_of(text, path);
  if (format == "railpass knowledge") return files::parse_knowledge(text, path).runs;
  if (format == "railpass statistics")
    return {named_after(knowledge::record_of(files::parse_statistics(text, path)), text)};
  if (format == "railpass bench")
    return {named_after(knowledge::record_of(files::parse_bench(text, path)), text)};
  throw error(path + ": expected statistics, bench results or exported knowledge of railpass");
}

std::vector<knowledge::stored_run> runs_of(const std::string& path,
                                           std::vector<std::string>& problems) {
  if (!std::filesystem::is_directory(path)) return runs_of_file(path);
  std::vector<knowledge::stored_run> runs;
  for (machine_contents& m : contents_of(path, problems).machines)
    std::ranges::move(m.runs, std::back_inserter(runs));
  return runs;
}

machine_knowledge latest_machine_of(std::span<const std::string> paths,
                                    std::vector<std::string>& problems) {
  std::vector<machine_runs> all;
  const auto add = [&](const fingerprint& machine,
                       const std::vector<knowledge::experience>& contexts) {
    const fingerprint marks = knowledge::marks_for_plan(machine);
    auto known = std::ranges::find_if(
        all, [&](const machine_runs& m) { return mismatch(m.machine, marks).empty(); });
    if (known == all.end()) known = all.insert(known, {.machine = marks});
    for (const knowledge::experience& e : contexts) {
      known->contexts.push_back(e);
      known->last_at = std::max(known->last_at, e.last_at);
    }
  };
  for (const std::string& path : paths) {
    if (std::filesystem::is_directory(path)) {
      for (const machine_contents& m : contents_of(path, problems).machines)
        add(m.machine, m.contexts);
    } else {
      for (const knowledge::stored_run& r : runs_of_file(path)) add(r.run.machine, r.run.contexts);
    }
  }
  const auto latest = std::ranges::max_element(all, {}, &machine_runs::last_at);
  if (latest == all.end() || latest->contexts.empty()) throw error("no knowledge was found");
  machine_knowledge result{.machine = latest->machine, .contexts = joined(latest->contexts)};
  for (const machine_runs& other : all)
    if (&other != &*latest)
      result.left_out.push_back("knowledge of another machine, last used " +
                                other.last_at.substr(0, 10) + ": " +
                                mismatch(other.machine, latest->machine));
  return result;
}

}  // namespace railpass::internal::store
