// SPDX-License-Identifier: BSL-1.0
#include "lib/store/sources.hpp"

#include "lib/files/files.hpp"
#include "lib/store/store.hpp"
#include "railpass/knowledge/imports.hpp"
#include "railpass/knowledge/plan.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
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
  std::vector<std::pair<std::string, knowledge::stored_run>> found;
  for (const std::string& path : paths) {
    if (std::filesystem::is_directory(path)) {
      for (machine_contents& m : contents_of(path, problems).machines)
        for (auto* const all : {&m.runs, &m.under_way})
          for (knowledge::stored_run& r : *all) found.emplace_back(path, std::move(r));
    } else {
      for (knowledge::stored_run& r : runs_of_file(path)) found.emplace_back(path, std::move(r));
    }
  }
  // Of joined runs, those with most runs come first, because they cannot be split.
  std::ranges::stable_sort(found, std::greater(),
                           [](const auto& f) { return f.second.ids.size(); });
  std::vector<knowledge::stored_run> runs;
  std::set<std::string> ids;
  for (auto& [path, r] : found) {
    const auto known =
        std::ranges::count_if(r.ids, [&](const std::string& id) { return ids.contains(id); });
    if (known == 0) {
      ids.insert(r.ids.begin(), r.ids.end());
      runs.push_back(std::move(r));
    } else if (known < std::ptrdiff_t(r.ids.size())) {
      problems.push_back(path + ": " + std::to_string(known) + " of " +
                         std::to_string(r.ids.size()) +
                         " joined runs are in another source, too, and their sums cannot be split "
                         "by run; all of these runs are left out");
    }
  }
  std::ranges::stable_sort(runs, {}, [](const auto& r) { return r.run.ended_at; });
  std::vector<machine_runs> all;
  for (const knowledge::stored_run& r : runs) {
    const fingerprint marks = knowledge::marks_for_plan(r.run.machine);
    auto known = std::ranges::find_if(
        all, [&](const machine_runs& m) { return mismatch(m.machine, marks).empty(); });
    if (known == all.end()) known = all.insert(known, {.machine = marks});
    for (const knowledge::experience& e : r.run.contexts) {
      known->contexts.push_back(e);
      known->last_at = std::max(known->last_at, e.last_at);
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
