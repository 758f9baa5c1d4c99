// SPDX-License-Identifier: BSL-1.0
#include "lib/store/store.hpp"

#include "lib/files/files.hpp"
#include "lib/store/database.hpp"
#include "lib/store/folder.hpp"
#include "railpass/knowledge/joined.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

namespace railpass::internal::store {

namespace {

namespace fs = std::filesystem;
using knowledge::experience;
using knowledge::stored_run;

constexpr std::size_t largest_run_bytes = std::size_t{1} << 20;
// Runs that were merged elsewhere, and cannot be separated, arrive as one run.
constexpr std::uint64_t largest_input_run_bytes = std::uint64_t{16} << 20;
constexpr std::size_t most_run_files = 4096;  // per machine; then runs add no further files
// Files that a run reads at its start besides the database. Files are tidied up long before these
// limits are reached.
constexpr std::size_t most_files_read = 64, most_bytes_read = std::size_t{1} << 20;
constexpr std::size_t many_files = most_files_read / 2;
constexpr std::uint64_t most_bytes_tidied = std::uint64_t{2} << 20;
constexpr std::size_t most_problems = 8;  // reported one by one
constexpr std::size_t most_ids = 10000;   // of runs that are not kept one by one
constexpr auto leftover_age = std::chrono::hours(1);
constexpr auto longest_pause = std::chrono::hours(24);  // between updates of a run that goes on

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Contexts of several runs, with each problem once.
class joined_contexts {
 public:
  void add(const experience& e) {
    const auto [at, is_new] = found_.try_emplace(key_of(e.of), e);
    if (!is_new) at->second = knowledge::joined(at->second, e);
  }
  void add(std::span<const experience> all) {
    for (const experience& e : all) add(e);
  }
  bool has(const knowledge::problem& p) const { return found_.contains(key_of(p)); }
  const experience* find(const knowledge::problem& p) const {
    const auto at = found_.find(key_of(p));
    return at == found_.end() ? nullptr : &at->second;
  }
  /// The most useful contexts first.
  std::vector<experience> sorted() const {
    std::string newest_at;
    for (const auto& [key, e] : found_) newest_at = std::max(newest_at, e.last_at);
    std::vector<std::pair<double, const experience*>> order;
    for (const auto& [key, e] : found_) order.emplace_back(-worth_s(e, newest_at), &e);
    std::ranges::stable_sort(order, {}, &std::pair<double, const experience*>::first);
    std::vector<experience> result;
    for (const auto& [worth, e] : order) result.push_back(*e);
    return result;
  }

 private:
  std::map<std::string, experience> found_;
};

void sort_by_end(std::vector<stored_run>& runs) {
  std::ranges::stable_sort(runs, {}, [](const stored_run& r) { return r.run.ended_at; });
}

stored_run read_run(const fs::path& path) {
  const std::string text = files::read_text(path.string(), largest_input_run_bytes);
  return unpacked_run(unsealed(text, path.string()), path.string());
}

void write_run(const fs::path& path, const std::string& bytes,
               files::durability how = files::durability::on_disk) {
  std::error_code failure;
  fs::create_directories(path.parent_path(), failure);
  if (failure)
    throw error(path.parent_path().string() + ": cannot be created: " + failure.message());
  files::write_text(path.string(), bytes, how);
}

// The part of a run that fits into a file, in the file's format. Throws error if the folder is
// full.
std::string file_of(const fs::path& folder, const std::string& id,
                    const knowledge::run_record& run) {
  const listing files = list(folder);
  if (const std::size_t number = files.runs.size() + files.under_way.size();
      number >= most_run_files)
    throw error(folder.string() + ": already " + std::to_string(number) +
                " files of runs; run `railpass knowledge prune` to join them");
  stored_run stored{.ids = {id}, .run = run};
  joined_contexts contexts;
  contexts.add(run.contexts);
  stored.run.contexts.clear();
  std::size_t bytes = packed(stored).size() + 100;  // with the line above it
  for (experience& e : contexts.sorted()) {
    e.runs = 1;  // also if several communicators met the problem
    bytes += packed(e).size();
    if (bytes > largest_run_bytes) break;
    stored.run.contexts.push_back(std::move(e));
  }
  const std::string record = packed(stored);
  unpacked_run(record, "the knowledge of this run");  // check now: the file never changes
  return sealed(record);
}

bool is_older(const fs::path& path, std::chrono::hours age) {
  std::error_code gone;
  const auto changed_at = fs::last_write_time(path, gone);
  return !gone && fs::file_time_type::clock::now() - changed_at > age;
}

// One reading of a machine's folder. `again`: a listed file is gone, because it was merged into a
// newer database.
struct look {
  joined_contexts contexts{};
  std::vector<std::string> problems{};
  bool again = false;
};

look look_at(const fs::path& folder, const fingerprint& here, std::size_t most_contexts) {
  look result;
  const auto leave_out = [&](const fs::path& path, const error& why) {
    result.again = result.again || !is_there(path);
    result.problems.emplace_back(why.what());
  };
  // List first: a process that merges files removes them only after the new database exists.
  const listing files = list(folder);
  std::optional<database> opened;
  std::set<std::string> in_database;
  for (const std::uint64_t generation : files.generations) {
    const fs::path path = database_file(folder, generation);
    try {
      opened.emplace(path);
      if (!mismatch(opened->head().machine, here).empty()) return {};
      result.contexts.add(opened->best(most_contexts));
      in_database.insert(opened->head().recent.begin(), opened->head().recent.end());
      break;
    } catch (const error& why) {
      opened.reset();
      leave_out(path, why);
    }
  }
  std::vector<stored_run> runs;
  std::size_t seen = 0;
  std::uintmax_t bytes = 0;
  std::map<std::string, fs::path, std::greater<>> newest_first;
  for (const std::string& id : files.under_way) newest_first[id] = under_way_file(folder, id);
  for (const std::string& id : files.runs) newest_first[id] = run_file(folder, id);
  for (const auto& [id, path] : newest_first) {
    if (in_database.contains(id)) continue;
    std::error_code unknown;  // a missing file is reported by the read below
    std::uintmax_t size = fs::file_size(path, unknown);
    if (unknown) size = 0;
    if (seen == most_files_read || bytes + size > most_bytes_read) continue;
    ++seen;
    bytes += size;
    try {
      runs.push_back(read_run(path));
      if (!mismatch(runs.back().run.machine, here).empty()) return {};
    } catch (const error& why) {
      leave_out(path, why);
    }
  }
  sort_by_end(runs);
  for (const stored_run& r : runs)
    for (const experience& e : r.run.contexts) {
      // A context far behind in the database may have become useful.
      if (opened && !result.contexts.has(e.of)) try {
          if (const auto before = opened->find(e.of)) result.contexts.add(*before);
        } catch (const error& why) {
          result.problems.emplace_back(why.what());
        }
      result.contexts.add(e);
    }
  // A folder that changes during listing may seem to have no database.
  if (!opened && !result.again && !list(folder).generations.empty() && files.generations.empty())
    result.again = true;
  return result;
}

std::vector<experience> settled_look_at(const fs::path& folder, const fingerprint& here,
                                        std::size_t most_contexts,
                                        std::vector<std::string>& problems) {
  look seen;
  for (int attempt = 0; attempt < 5; ++attempt) try {
      seen = look_at(folder, here, most_contexts);
      if (!seen.again) break;
    } catch (const error& why) {
      seen = {.problems = {why.what()}};
      break;
    }
  problems.insert(problems.end(), seen.problems.begin(), seen.problems.end());
  return seen.contexts.sorted();
}

// All intact files of a folder. A run in the database that still has a file counts once.
struct everything {
  database_contents stored{};
  std::optional<std::uint64_t> stored_generation{};  ///< of the database that was read
  std::string stored_bytes{};                        ///< that database
  std::uint64_t generation = 0;                      ///< the latest number that exists, read or not
  std::vector<stored_run> added{};                   ///< in files and not in the database
  std::vector<stored_run> under_way{};               ///< of runs that go on
  /// Of `added`, of runs in the database, and empty files, as a power failure leaves them.
  std::vector<std::string> files{};
  std::set<std::string> ids{};  ///< of all runs
  bool is_newer = false;        ///< the database is of a newer railpass
  bool again = false;           ///< a listed file was merged into a newer database
};

// Reads at most `most_file_bytes` of files beside the database, the oldest first.
everything all_of(const fs::path& folder, const listing& files, std::vector<std::string>& problems,
                  std::uint64_t most_file_bytes = std::numeric_limits<std::uint64_t>::max(),
                  const std::stop_token& stop = {}) {
  everything all;
  if (!files.generations.empty()) all.generation = files.generations.front();
  for (const std::uint64_t generation : files.generations) {
    const std::string path = database_file(folder, generation).string();
    std::string bytes;
    try {
      bytes = files::read_text(path);
    } catch (const files::refused_error& why) {
      problems.emplace_back(why.what());
      continue;
    } catch (const error&) {
      if (is_there(path)) throw;
      all.again = true;
      return all;
    }
    try {
      all.stored = contents_of_database(bytes, path, stop);
    } catch (const newer_error& why) {
      all.is_newer = true;
      problems.emplace_back(why.what());
      break;
    } catch (const error& why) {
      problems.emplace_back(why.what());
      continue;
    }
    all.stored_generation = generation;
    all.stored_bytes = std::move(bytes);
    all.ids.insert(all.stored.earlier_ids.begin(), all.stored.earlier_ids.end());
    for (const stored_run& r : all.stored.runs) all.ids.insert(r.ids.begin(), r.ids.end());
    break;
  }
  std::uint64_t bytes_taken = 0;
  const auto take = [&](const std::string& id, const fs::path& path) {
    std::error_code unknown;  // the read below reports
    const std::uintmax_t size = fs::file_size(path, unknown);
    if (stop.stop_requested() || (!unknown && size > most_file_bytes - bytes_taken)) return;
    if (!unknown && size == 0 && is_older(path, longest_pause)) return all.files.push_back(id);
    bytes_taken += unknown ? 0 : size;
    try {
      stored_run run = read_run(path);
      const auto known = std::ranges::count_if(
          run.ids, [&](const std::string& one) { return all.ids.contains(one); });
      if (known > 0 && known < std::ptrdiff_t(run.ids.size()))
        throw error(path.string() +
                    ": some of its runs are known already, and its sums cannot be split by run; "
                    "ignored");
      all.ids.insert(run.ids.begin(), run.ids.end());
      if (known == 0) all.added.push_back(std::move(run));
      all.files.push_back(id);
    } catch (const error& why) {
      all.again = all.again || !is_there(path);
      problems.emplace_back(why.what());
    }
  };
  for (auto id = files.runs.rbegin(); id != files.runs.rend(); ++id)
    take(*id, run_file(folder, *id));
  for (auto id = files.under_way.rbegin(); id != files.under_way.rend(); ++id) {
    const fs::path path = under_way_file(folder, *id);
    if (all.ids.contains(*id)) {  // the run has ended, but could not remove this file
      all.files.push_back(*id);
    } else if (is_older(path, longest_pause)) {
      take(*id, path);
    } else {
      try {
        all.under_way.push_back(read_run(path));
      } catch (const error& why) {  // the run may end just now
        if (is_there(path)) problems.emplace_back(why.what());
      }
    }
  }
  sort_by_end(all.added);
  return all;
}

std::vector<experience> earlier_in(const database_contents& stored) {
  std::vector<experience> earlier;
  for (const database_contents::context& c : stored.contexts)
    if (c.earlier) earlier.push_back(*c.earlier);
  return earlier;
}

std::vector<experience> known_in(const database_contents& stored) {
  std::vector<experience> known;
  for (const database_contents::context& c : stored.contexts) known.push_back(c.known);
  return known;
}

// The new database, within bounds.
database_contents brought_together(everything all, const bounds& keep, std::size_t& dropped) {
  database_contents result{.machine = all.stored.machine, .recent = all.files};
  joined_contexts earlier;
  earlier.add(earlier_in(all.stored));
  result.earlier_ids = std::move(all.stored.earlier_ids);
  std::vector<stored_run> runs = std::move(all.stored.runs);
  for (stored_run& r : all.added) {
    if (result.machine.cores_per_host == 0 && result.machine.cpu_model.empty())
      result.machine = r.run.machine;
    result.machine.num_hosts = std::max(result.machine.num_hosts, r.run.machine.num_hosts);
    runs.push_back(std::move(r));
  }
  sort_by_end(runs);
  // Newest runs first, one by one while there is room; runs that are too old are left out.
  std::vector<stored_run> kept;
  std::uint64_t bytes = 0;
  bool is_full = false;
  for (auto r = runs.rbegin(); r != runs.rend(); ++r) {
    if (r->ids.size() != 1 || r->run.ended_at < keep.not_before) continue;
    bytes += packed(*r).size();
    is_full = is_full || bytes > keep.most_bytes / 4;
    if (!is_full) kept.push_back(*r);
  }
  std::ranges::reverse(kept);
  std::set<std::string> kept_ids;
  for (const stored_run& r : kept) kept_ids.insert(r.ids.front());
  for (const stored_run& r : runs) {
    if (kept_ids.contains(r.ids.front()) && r.ids.size() == 1) continue;
    earlier.add(r.run.contexts);
    result.earlier_ids.insert(result.earlier_ids.end(), r.ids.begin(), r.ids.end());
  }
  std::ranges::sort(result.earlier_ids);
  if (result.earlier_ids.size() > most_ids)
    result.earlier_ids.erase(result.earlier_ids.begin(), result.earlier_ids.end() - most_ids);
  joined_contexts known = earlier;
  for (const stored_run& r : kept) known.add(r.run.contexts);
  bytes = 0;
  is_full = false;
  for (experience& e : known.sorted()) {
    database_contents::context c;
    if (const experience* const before = earlier.find(e.of)) c.earlier = *before;
    bytes += packed(e).size() + (c.earlier && !(*c.earlier == e) ? packed(*c.earlier).size() : 0);
    is_full = is_full || bytes > keep.most_bytes / 4 * 3;
    if (is_full || e.last_at < keep.not_before) {
      ++dropped;
    } else {
      c.known = std::move(e);
      result.contexts.push_back(std::move(c));
    }
  }
  result.runs = std::move(kept);
  return result;
}

bool is_untidy(const fs::path& folder) {
  const listing files = list(folder);
  const auto killed = std::ranges::count_if(files.under_way, [&](const std::string& id) {
    return is_older(under_way_file(folder, id), longest_pause);
  });
  return files.runs.size() + std::size_t(killed) >= many_files ||
         std::ranges::any_of(files.leftovers,
                             [](const fs::path& path) { return is_older(path, leftover_age); });
}

void discard(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

void compact_folder(const fs::path& folder, const bounds& keep, compacted& report,
                    const std::stop_token& stop) {
  const std::optional<lease> alone = lease::take(folder);
  if (!alone) {
    report.problems.push_back(
        folder.string() +
        ": another process is joining the files of runs there; nothing was changed");
    return;
  }
  const listing files = list(folder);
  for (const fs::path& leftover : files.leftovers)
    if (is_older(leftover, leftover_age)) discard(leftover);
  everything all = all_of(folder, files, report.problems, keep.most_file_bytes, stop);
  if (all.is_newer || all.again || stop.stop_requested()) return;
  const std::uint64_t next = all.generation + 1;
  const std::vector<std::string> done = all.files;
  const auto stored_generation = all.stored_generation;
  const std::string before = std::move(all.stored_bytes);
  const database_contents result = brought_together(std::move(all), keep, report.dropped);
  report.contexts += result.contexts.size();
  report.files += done.size();
  const std::string after = database_of(result, stop);
  if (stop.stop_requested() || (done.empty() && !stored_generation)) return;
  const auto is_latest = [&] {
    const std::vector<std::uint64_t> now = list(folder).generations;
    return !now.empty() && now.front() == next;
  };
  if (before != after && (!write_new(database_file(folder, next), after) || !is_latest())) {
    // Removes no file that was read, because the other process may have read less.
    report.problems.push_back(folder.string() +
                              ": another process joined the files of runs there at the same time");
    return;
  }
  for (const std::string& id : done) {
    discard(run_file(folder, id));
    discard(under_way_file(folder, id));
  }
  // Earlier databases are corrupt (kept), or were left by a process that died here.
  for (const std::uint64_t generation : files.generations) {
    const std::string path = database_file(folder, generation).string();
    if (before == after && generation == stored_generation) continue;
    try {
      contents_of_database(files::read_text(path), path, stop);
      if (!stop.stop_requested()) discard(path);
    } catch (const error&) {
    }
  }
}

}  // namespace

void add(const fs::path& own, const knowledge::run_record& run) {
  const fs::path folder = folder_of(own, run.machine);
  const std::string id = new_id(run.ended_at);
  write_run(run_file(folder, id), file_of(folder, id, run));
}

run_under_way::run_under_way(fs::path own) : own_(std::move(own)), id_(new_id(files::utc_now())) {}

void run_under_way::keep(const knowledge::run_record& so_far) {
  const fs::path folder = folder_of(own_, so_far.machine), path = under_way_file(folder, id_);
  const std::string bytes = file_of(folder, id_, so_far);
  {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(kept_, path) == kept_.end()) kept_.push_back(path);
  }
  write_run(path, bytes, files::durability::in_time);
}

void run_under_way::end(const knowledge::run_record& run) {
  const fs::path folder = folder_of(own_, run.machine);
  try {
    write_run(run_file(folder, id_), file_of(folder, id_, run), files::durability::in_time);
  } catch (const error&) {
    std::error_code nothing_kept;
    fs::rename(under_way_file(folder, id_), run_file(folder, id_), nothing_kept);
    throw;
  }
  const std::lock_guard lock(mutex_);
  for (const fs::path& path : kept_) discard(path);
}

bool run_under_way::has_kept() const {
  const std::lock_guard lock(mutex_);
  return !kept_.empty();
}

known read(const locations& from, const fingerprint& here, std::size_t most_contexts) {
  known result;
  std::map<std::string, experience> best;
  std::vector<fs::path> all = {from.own};
  all.insert(all.end(), from.others.begin(), from.others.end());
  std::erase(all, "");
  const auto samples_of = [](const experience& e) {
    std::int64_t samples = 0;
    for (const knowledge::arm_experience& a : e.arms) samples += a.times.samples;
    return samples;
  };
  for (const fs::path& location : all) {
    joined_contexts contexts;
    try {
      for (const fs::path& folder : folders_in(location))
        contexts.add(settled_look_at(folder, here, most_contexts, result.problems));
    } catch (const error& why) {
      result.problems.emplace_back(why.what());
    }
    for (experience& e : contexts.sorted()) {
      const auto [at, is_new] = best.try_emplace(key_of(e.of), e);
      if (!is_new && samples_of(e) > samples_of(at->second)) at->second = std::move(e);
    }
  }
  if (result.problems.size() > most_problems) {
    const std::size_t more = result.problems.size() - most_problems;
    result.problems.resize(most_problems);
    result.problems.push_back("and " + std::to_string(more) + " more files were left out");
  }
  joined_contexts chosen;
  for (const auto& [key, e] : best) chosen.add(e);
  result.contexts = chosen.sorted();
  if (result.contexts.size() > most_contexts) result.contexts.resize(most_contexts);
  return result;
}

store_contents contents(const fs::path& location) {
  store_contents result;
  for (const fs::path& folder : folders_in(location)) {
    machine_contents& m = result.machines.emplace_back();
    m.folder = folder;
    listing files;
    everything all;
    std::vector<std::string> problems;
    for (int attempt = 0; attempt < 5; ++attempt) {
      problems.clear();
      files = list(folder);
      all = all_of(folder, files, problems);
      if (!all.again) break;
    }
    result.problems.insert(result.problems.end(), problems.begin(), problems.end());
    m.num_files = files.runs.size();
    for (const std::string& id : files.runs) {
      std::error_code gone;
      if (const std::uintmax_t size = fs::file_size(run_file(folder, id), gone); !gone)
        m.file_bytes += size;
    }
    for (const std::uint64_t generation : files.generations) {
      std::error_code gone;
      if (const std::uintmax_t size = fs::file_size(database_file(folder, generation), gone); !gone)
        m.file_bytes += size;
    }
    joined_contexts contexts;
    contexts.add(known_in(all.stored));
    for (const stored_run& r : all.added) contexts.add(r.run.contexts);
    for (const stored_run& r : all.under_way) contexts.add(r.run.contexts);
    m.contexts = contexts.sorted();
    m.machine = all.stored_generation ? all.stored.machine : fingerprint{};
    if (!all.stored_generation && !all.under_way.empty())
      m.machine = all.under_way.back().run.machine;
    if (!all.stored_generation && !all.added.empty()) m.machine = all.added.back().run.machine;
    if (!all.stored.earlier_ids.empty()) {
      stored_run earlier{
          .ids = all.stored.earlier_ids,
          .run = {.machine = all.stored.machine, .contexts = earlier_in(all.stored)}};
      for (const experience& e : earlier.run.contexts)
        earlier.run.ended_at = std::max(earlier.run.ended_at, e.last_at);
      m.runs.push_back(std::move(earlier));
    }
    m.runs.insert(m.runs.end(), all.stored.runs.begin(), all.stored.runs.end());
    m.runs.insert(m.runs.end(), all.added.begin(), all.added.end());
    sort_by_end(m.runs);
    m.under_way = std::move(all.under_way);
  }
  return result;
}

std::vector<experience> joined(std::span<const experience> contexts) {
  joined_contexts all;
  all.add(contexts);
  return all.sorted();
}

stored_run named_after(knowledge::run_record run, std::string_view text) {
  const std::string id = id_of(run.ended_at, digest_of(text));
  return {.ids = {id}, .run = std::move(run)};
}

added merge(const fs::path& own, std::span<const stored_run> runs) {
  added result;
  for (const stored_run& r : runs) unpacked_run(packed(r), "run " + r.ids.front());
  store_contents before = contents(own);
  result.problems = std::move(before.problems);
  std::set<std::string> ids;
  for (const machine_contents& m : before.machines)
    for (const stored_run& r : m.runs) ids.insert(r.ids.begin(), r.ids.end());
  for (const stored_run& r : runs) {
    const auto known =
        std::ranges::count_if(r.ids, [&](const std::string& id) { return ids.contains(id); });
    if (known == std::ptrdiff_t(r.ids.size())) {
      ++result.present;
    } else if (known > 0) {
      result.problems.push_back(
          std::to_string(known) + " of " + std::to_string(r.ids.size()) +
          " joined runs are known here already, and their sums cannot be split by run; all "
          "of these runs were left out");
    } else {
      const std::string id = r.ids.size() == 1 ? r.ids.front() : new_id(files::utc_now());
      write_run(run_file(folder_of(own, r.run.machine), id), sealed(packed(r)));
      ids.insert(r.ids.begin(), r.ids.end());
      ++result.runs;
    }
  }
  return result;
}

compacted compact(const fs::path& own, const bounds& keep, const std::stop_token& stop) {
  compacted report;
  for (const fs::path& folder : folders_in(own)) compact_folder(folder, keep, report, stop);
  return report;
}

void tidy(const fs::path& own, const std::stop_token& stop) {
  compacted report;  // read() has reported these problems already
  for (const fs::path& folder : folders_in(own))
    if (!stop.stop_requested() && is_untidy(folder))
      compact_folder(folder, {.most_file_bytes = most_bytes_tidied}, report, stop);
}

}  // namespace railpass::internal::store
