// SPDX-License-Identifier: BSL-1.0
#include "lib/store/halts.hpp"

#include "lib/files/files.hpp"
#include "lib/files/halts_fields.hpp"
#include "lib/files/input.hpp"
#include "lib/store/quarantine.hpp"
#include "railpass/base/error.hpp"
#include "railpass/knowledge/joined.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace railpass::internal::store {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_bytes = std::size_t{256} << 10;
constexpr std::size_t most_files = 1 << 16;
// Seconds, beside the periods of a record, by which clocks of hosts and slow file systems may be
// late.
constexpr std::int64_t leeway_s = 60;

fs::path folder_in(const fs::path& own) { return own / "halted"; }

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw error(path.string() + ": " + what + ": " + std::strerror(errno));
}

enum class holding { free, held, unknown };

holding lock_of(const fs::path& path) {
  const file_descriptor file(
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  if (file.is_open() && uninterrupted([&] { return ::flock(file.get(), LOCK_SH | LOCK_NB); }) == 0)
    return holding::free;
  return file.is_open() && errno == EWOULDBLOCK ? holding::held : holding::unknown;
}

struct found_record {
  fs::path path;
  holding lock = holding::unknown;
  knowledge::halted_rank record{};

  bool is_old(std::int64_t now_s) const {
    constexpr double periods = 3;
    return double(now_s - knowledge::seconds_of(record.written_at).value_or(0)) >
           periods * record.period_s + double(leeway_s);
  }
};

struct found_records {
  std::vector<found_record> intact;
  std::vector<std::pair<fs::path, std::string>> corrupt;  // with a sentence each
};

// A process creates its file before it writes the record.
void add_if_corrupt(const fs::path& path, std::int64_t now_s, const error& problem,
                    found_records& all) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) == 0 && now_s > status.st_mtime + leeway_s)
    all.corrupt.emplace_back(path, std::string(problem.what()) + "; railpass removes this record");
}

// A newer railpass reads its own records.
bool is_newer(const std::string& text) {
  const auto record = nlohmann::json::parse(text, nullptr, false);
  if (!record.is_object()) return false;
  const auto version = record.find("version");
  return version != record.end() && version->is_number_integer() &&
         version->get<std::int64_t>() > files::format_for<knowledge::halted_rank>.version;
}

found_records read_all(const std::vector<fs::path>& paths, std::int64_t now_s) {
  found_records all;
  for (const fs::path& path : paths) {
    const holding lock = lock_of(path);
    std::string text;
    try {
      text = files::read_text(path.string(), largest_bytes);
    } catch (const files::refused_error& problem) {
      if (lock != holding::held) add_if_corrupt(path, now_s, problem, all);
      continue;
    } catch (const error&) {  // it may be read later
      continue;
    }
    try {
      all.intact.push_back({path, lock, files::parse_halt(text, path.string())});
    } catch (const error& problem) {
      if (lock != holding::held && !is_newer(text)) add_if_corrupt(path, now_s, problem, all);
    }
  }
  return all;
}

// Processes with a communicator in common, directly or by others, are of one run.
std::vector<std::vector<found_record>> split_into_runs(std::vector<found_record> all) {
  std::vector<std::vector<found_record>> runs;
  std::map<std::string, std::size_t> run_of;  // by communicator
  for (found_record& one : all) {
    const std::size_t mine = runs.size();
    runs.emplace_back();
    for (const knowledge::halted_call& c : one.record.calls) {
      const std::size_t other = run_of.try_emplace(c.communicator, mine).first->second;
      if (other == mine) continue;
      std::ranges::move(runs[other], std::back_inserter(runs[mine]));
      runs[other].clear();
      for (auto& [id, run] : run_of)
        if (run == other) run = mine;
    }
    runs[mine].push_back(std::move(one));
  }
  std::erase_if(runs, [](const auto& run) { return run.empty(); });
  return runs;
}

bool is_over(const std::vector<found_record>& run, const std::string& here, std::int64_t now_s) {
  const auto any_is = [&](holding lock) {
    return std::ranges::find(run, lock, &found_record::lock) != run.end();
  };
  if (any_is(holding::held)) return false;
  return (!any_is(holding::unknown) &&
          std::ranges::any_of(run, [&](const auto& one) { return one.record.host == here; })) ||
         std::ranges::all_of(run, [&](const auto& one) { return one.is_old(now_s); });
}

std::vector<fs::path> paths_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure);
       !failure && at != fs::directory_iterator() && paths.size() < most_files;
       at.increment(failure))
    if (at->path().extension() == ".json") paths.push_back(at->path());
  if (failure && failure != std::errc::no_such_file_or_directory)
    throw error(folder.string() + ": cannot be read: " + failure.message());
  std::ranges::sort(paths);
  return paths;
}

void judge(const fs::path& own, const std::vector<found_record>& run,
           std::vector<std::string>& said) {
  std::vector<knowledge::halted_rank> records;
  for (const found_record& one : run) records.push_back(one.record);
  std::vector<knowledge::quarantined> before;
  for (quarantine_file& file :
       quarantine({.own = own, .others = {}}, records.front().mpi_library).files)
    before.push_back(std::move(file.record));
  for (knowledge::hang& h : knowledge::hangs_of(records, before)) {
    if (h.culprit) add(own, *h.culprit);
    said.push_back(std::move(h.text));
  }
  for (const found_record& one : run) {
    std::error_code ignored;  // another process was faster
    fs::remove(one.path, ignored);
  }
}

}  // namespace

halt_file::halt_file(const fs::path& own) {
  std::error_code failure;
  fs::create_directories(folder_in(own), failure);
  if (failure) throw error(folder_in(own).string() + ": cannot be created: " + failure.message());
  path_ = folder_in(own) / (new_id(files::utc_now()) + ".json");
  file_ = file_descriptor(uninterrupted(
      [&] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644); }));
  if (!file_.is_open()) fail(path_, "cannot be created");
  uninterrupted([&] { return ::flock(file_.get(), LOCK_EX | LOCK_NB); });  // not everywhere
}

halt_file::~halt_file() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

// In one call of the system, so that a reader never meets a part of the text. Blanks at the end
// replace the rest of a longer text.
void halt_file::write(const knowledge::halted_rank& r) {
  std::string text = files::to_json(r);
  size_ = std::max(size_, text.size());
  text.resize(size_, ' ');
  if (uninterrupted([&] { return ::pwrite(file_.get(), text.data(), text.size(), 0); }) !=
      ::ssize_t(text.size()))
    fail(path_, "cannot be written");
}

namespace {

std::optional<lease> take_in_turn(const fs::path& folder, int tries) {
  for (;;) {
    if (std::optional<lease> mine = lease::take(folder)) return mine;
    if (--tries <= 0) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// The first look is without a lease: of many processes that come at the same time, few find
// something to do. Nothing if it is never this process' turn.
std::optional<std::vector<std::string>> judge_in_turn(const fs::path& own, const std::string& here,
                                                      std::int64_t now_s, int tries) {
  const auto look = [&] {
    found_records found = read_all(paths_in(folder_in(own)), now_s);
    std::vector<std::vector<found_record>> over = split_into_runs(std::move(found.intact));
    std::erase_if(over, [&](const auto& run) { return !is_over(run, here, now_s); });
    return std::pair(std::move(over), std::move(found.corrupt));
  };
  std::vector<std::string> said;
  if (const auto [over, corrupt] = look(); over.empty() && corrupt.empty()) return said;
  const std::optional<lease> mine = take_in_turn(folder_in(own), tries);
  if (!mine) return std::nullopt;
  const auto [over, corrupt] = look();
  for (const auto& [path, sentence] : corrupt) {
    said.push_back(sentence);
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  for (const auto& run : over) judge(own, run, said);
  return said;
}

}  // namespace

std::optional<std::vector<std::string>> try_to_judge_halts(const fs::path& own,
                                                           const std::string& here,
                                                           std::int64_t now_s) {
  return judge_in_turn(own, here, now_s, 1);
}

// Leaders of one run come at the same time. Each may need what the first puts into quarantine.
std::vector<std::string> judge_halts(const fs::path& own, const std::string& here,
                                     std::int64_t now_s) {
  return judge_in_turn(own, here, now_s, 100).value_or(std::vector<std::string>());
}

}  // namespace railpass::internal::store
