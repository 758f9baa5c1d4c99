// SPDX-License-Identifier: BSL-1.0
#include "lib/store/folder.hpp"

#include "lib/files/knowledge_fields.hpp"
#include "lib/store/record.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace railpass::internal::store {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view run_ending = ".run", under_way_ending = ".running",
                           database_ending = ".db", leftover_part = ".tmp";
constexpr std::string_view lease_beginning = "lease-";
constexpr std::int64_t lease_s = 600;
constexpr std::uint64_t largest_lease_bytes = 1 << 20;

[[noreturn]] void fail(const fs::path& path, const std::string& what, int code) {
  throw error(path.string() + ": " + what + ": " + std::strerror(code));
}

std::string random_digits() {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    throw error(std::string("the system gives no random number: ") + std::strerror(errno));
  std::array<char, 20> digits;
  std::snprintf(digits.data(), digits.size(), "%016" PRIx64, random);
  return digits.data();
}

std::int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// " PID HOST\n" after the time in a lease.
std::string owner_of_leases() { return ' ' + std::to_string(::getpid()) + ' ' + own_host() + '\n'; }

// Known only for processes of this host. In containers the answer may be wrong, which costs double
// work.
bool has_died(std::string_view owner) {
  const std::string mine = owner_of_leases();
  int pid = 0;
  const auto [end, failure] =
      std::from_chars(owner.data() + owner.starts_with(' '), owner.data() + owner.size(), pid);
  return failure == std::errc{} && pid > 0 && owner.ends_with(mine.substr(mine.find(' ', 1))) &&
         ::kill(pid, 0) != 0 && errno == ESRCH;
}

// A lease contains its end, in seconds since 1970, and its owner.
bool has_expired(const fs::path& path) {
  try {
    std::int64_t until_s = 0;
    const std::string text = files::read_text(path.string(), largest_lease_bytes);
    const char* const all_end = text.data() + text.size();
    const auto [end, failure] = std::from_chars(text.data(), all_end, until_s);
    // The clock of a host that was killed may have been years ahead.
    if (const std::int64_t now = now_s(); failure == std::errc{})
      return now > until_s || until_s > now + 2 * lease_s ||
             has_died({end, std::size_t(all_end - end)});
  } catch (const error&) {  // mostly: returned meanwhile
  }
  // Truncated or invalid: judged by the file's age.
  struct ::stat status {};
  return ::stat(path.c_str(), &status) != 0 || now_s() > status.st_mtime + lease_s;
}

template <class Each>
void each_entry(const fs::path& folder, Each each) {
  std::error_code failure;
  fs::directory_iterator at(folder, failure);
  for (; !failure && at != fs::directory_iterator(); at.increment(failure)) each(*at);
  if (failure && failure != std::errc::no_such_file_or_directory)
    throw error(folder.string() + ": cannot be read: " + failure.message());
}

}  // namespace

std::string own_host() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

fs::path folder_of(const fs::path& location, const fingerprint& machine) {
  const std::string marks = std::to_string(std::min(machine.num_hosts, 2)) + '\n' +
                            std::to_string(machine.cores_per_host) + '\n' + machine.cpu_model +
                            '\n' + machine.mpi_library + '\n' + machine.rails;
  return location / "machines" / digest_of(marks);
}

std::vector<fs::path> folders_in(const fs::path& location) {
  std::vector<fs::path> folders;
  each_entry(location / "machines", [&](const fs::directory_entry& e) {
    std::error_code ignored;
    if (e.is_directory(ignored)) folders.push_back(e.path());
  });
  std::ranges::sort(folders);
  return folders;
}

listing list(const fs::path& folder) {
  listing found;
  each_entry(folder, [&](const fs::directory_entry& e) {
    const std::string name = e.path().filename().string();
    const auto stem = [&](std::string_view ending) {
      return name.substr(0, name.size() - ending.size());
    };
    std::uint64_t generation = 0;
    if (name.find(leftover_part) != std::string::npos)
      found.leftovers.push_back(e.path());
    else if (name.ends_with(run_ending) && files::is_run_id(stem(run_ending)))
      found.runs.push_back(stem(run_ending));
    else if (name.ends_with(under_way_ending) && files::is_run_id(stem(under_way_ending)))
      found.under_way.push_back(stem(under_way_ending));
    else if (name.ends_with(database_ending) &&
             std::from_chars(name.data(), name.data() + name.size(), generation).ec ==
                 std::errc{} &&
             database_file(folder, generation).filename() == name)
      found.generations.push_back(generation);
  });
  std::ranges::sort(found.runs, std::greater{});
  std::ranges::sort(found.under_way, std::greater{});
  std::ranges::sort(found.generations, std::greater{});
  return found;
}

fs::path run_file(const fs::path& folder, const std::string& id) {
  return folder / (id + std::string(run_ending));
}

fs::path under_way_file(const fs::path& folder, const std::string& id) {
  return folder / (id + std::string(under_way_ending));
}

fs::path database_file(const fs::path& folder, std::uint64_t generation) {
  return folder / (std::to_string(generation) + std::string(database_ending));
}

bool write_new(const fs::path& path, const std::string& bytes, files::durability how) {
  const std::string beside = path.string() + std::string(leftover_part) + random_digits();
  files::write_text(beside, bytes, how);
  // Unlike rename(), link() never replaces a file. Its result may come from a repeated try by the
  // network file system; the link count is reliable.
  int failure = ::link(beside.c_str(), path.c_str()) == 0 ? 0 : errno;
  struct ::stat status {};
  bool has_name = failure == 0 || (::stat(beside.c_str(), &status) == 0 && status.st_nlink == 2);
  // Some file systems have no links: FAT, and some shared file systems.
  if (!has_name && (failure == EPERM || failure == EOPNOTSUPP || failure == ENOSYS)) {
    failure = ::renameat2(AT_FDCWD, beside.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0
                  ? 0
                  : errno;
    has_name = failure == 0;
  }
  ::unlink(beside.c_str());
  if (!has_name && failure != EEXIST) fail(path, "cannot be written", failure);
  return has_name;
}

std::string new_id(const std::string& ended_at) { return id_of(ended_at, random_digits()); }

std::string id_of(const std::string& ended_at, const std::string& digits) {
  std::string id;
  for (const char c : ended_at)
    if (c != '-' && c != ':') id += c;
  id += '-' + digits;
  if (!files::is_run_id(id))
    throw error("the end of a run '" + ended_at +
                "': expected a time such as 2026-01-31T12:00:00Z");
  return id;
}

std::optional<lease> lease::take(const fs::path& folder) {
  const std::string name = std::string(lease_beginning) + random_digits();
  const auto others_have_it = [&] {
    bool held = false;
    each_entry(folder, [&](const fs::directory_entry& e) {
      const std::string other = e.path().filename().string();
      if (!other.starts_with(lease_beginning) || other == name ||
          other.find(leftover_part) != std::string::npos)
        return;
      if (has_expired(e.path()))
        ::unlink(e.path().c_str());
      else
        held = true;
    });
    return held;
  };
  if (others_have_it()) return std::nullopt;
  files::write_text((folder / name).string(), std::to_string(now_s() + lease_s) + owner_of_leases(),
                    files::durability::in_time);
  lease mine(folder / name);
  // Both of two processes write a lease before they look, so at least one finds the other's
  // lease.
  if (others_have_it()) return std::nullopt;
  return mine;
}

lease::lease(lease&& other) noexcept : path_(std::exchange(other.path_, {})) {}

lease::~lease() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace railpass::internal::store
