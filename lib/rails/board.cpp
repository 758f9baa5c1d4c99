// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/board.hpp"

#include "railpass/base/error.hpp"
#include "railpass/base/hash.hpp"
#include "railpass/transport/split.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <limits>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace railpass::internal {

namespace {

struct header {
  char magic[8] = {'r', 'a', 'i', 'l', 'p', 'a', 's', 's'};
  std::uint32_t version = 1;
  std::uint32_t entry_bytes = 0;
  std::uint32_t num_ranks = 0;
  std::uint32_t num_rails = 0;
  std::uint64_t id = 0;
};
static_assert(sizeof(header) == 32);

// Entry of one rank and rail; all zero: nothing was posted.
struct entry {
  double posted_at_s = 0;
  std::int64_t pid = 0;
  std::int64_t sent_bytes = 0;
  std::int64_t backlog_bytes = 0;
  double bytes_per_s = 0;
  double prediction_error = 0;  // not a number: unknown
  char rail[80] = {};
  char program[56] = {};
  std::uint64_t checksum = 0;  // detects an entry that is read during a write
};
static_assert(sizeof(entry) == 192);

// The hash of all bytes before the checksum.
std::uint64_t checksum_of(const entry& p) {
  return fnv1a({reinterpret_cast<const char*>(&p), offsetof(entry, checksum)});
}
static_assert(offsetof(entry, checksum) + 8 == sizeof(entry));

constexpr std::uint32_t most_ranks = 1 << 24;

std::int64_t entry_at(std::int64_t index) {
  return std::int64_t(sizeof(header)) + index * std::int64_t(sizeof(entry));
}
std::int64_t bytes_of(const header& h) { return entry_at(std::int64_t(h.num_ranks) * h.num_rails); }

std::string prefix() { return "railpass." + std::to_string(geteuid()) + "."; }

class file {
 public:
  explicit file(int fd) : fd_(fd) {}
  file(file&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  file& operator=(file&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~file() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

file open_file(const std::string& path, int flags) {
  return file(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0600));
}

// Why a file is not a board of this user; null: no objection.
const char* objection(const struct stat& s) {
  if (!S_ISREG(s.st_mode)) return "not a regular file";
  if (s.st_uid != geteuid()) return "owned by another user";
  if ((s.st_mode & 077) != 0) return "other users may read or write the file";
  return nullptr;
}

const char* objection(const header& h, std::int64_t bytes) {
  if (std::memcmp(h.magic, header().magic, sizeof h.magic) != 0) return "not a file of rail loads";
  if (h.version != header().version || h.entry_bytes != sizeof(entry))
    return "written by another version of railpass";
  if (h.num_ranks < 1 || h.num_ranks > most_ranks || h.num_rails < 1 ||
      h.num_rails > transport::most_rails || bytes != bytes_of(h))
    return "corrupt (the size contradicts the header)";
  return nullptr;
}

// Text from a file, made safe for a terminal.
template <std::size_t n>
std::string text_of(const char (&field)[n]) {
  std::string text(field, strnlen(field, n));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 32 || c >= 127; }, '?');
  return text;
}

template <std::size_t n>
void set_text(char (&field)[n], const std::string& text) {
  text.copy(field, n - 1);
}

bool is_sound(const entry& p) {
  return p.posted_at_s > 0 && std::isfinite(p.posted_at_s) && p.pid > 0 && p.sent_bytes >= 0 &&
         p.backlog_bytes >= 0 && p.bytes_per_s >= 0 && std::isfinite(p.bytes_per_s) &&
         !(p.prediction_error < 0) && !std::isinf(p.prediction_error);
}

bool read_entries(int fd, std::int64_t at, std::vector<entry>& entries) {
  const std::size_t bytes = entries.size() * sizeof(entry);
  return pread(fd, entries.data(), bytes, at) == ssize_t(bytes);
}

// Returns why the board is not sound; empty: the board is sound.
std::string read_board(int fd, const header& h, found_board& board) {
  board.id = h.id;
  board.num_ranks = int(h.num_ranks);
  std::vector<entry> entries(h.num_rails);
  for (std::uint32_t rank = 0; rank < h.num_ranks; ++rank) {
    const std::int64_t at = entry_at(std::int64_t(rank) * h.num_rails);
    const auto is_whole = [](const entry& p) { return p.pid == 0 || p.checksum == checksum_of(p); };
    for (int tries = 0; tries < 10; ++tries) {
      if (!read_entries(fd, at, entries)) return "became shorter during reading";
      if (std::ranges::all_of(entries, is_whole)) break;
    }
    for (const entry& p : entries) {
      if (p.pid == 0) continue;
      if (!is_whole(p) || !is_sound(p))
        return "corrupt (the entry of rank " + std::to_string(rank) + ")";
      posted_rail& r = board.rails.emplace_back();
      r.rank = int(rank);
      r.pid = p.pid;
      r.program = text_of(p.program);
      r.rail = text_of(p.rail);
      r.sent_bytes = p.sent_bytes;
      r.bytes_per_s = p.bytes_per_s;
      if (!std::isnan(p.prediction_error)) r.prediction_error = p.prediction_error;
      r.backlog_bytes = p.backlog_bytes;
      r.posted_at_s = p.posted_at_s;
    }
  }
  return "";
}

// Removes the board if no process uses it.
bool is_left_over(int fd, const std::string& path) {
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return false;
  unlink(path.c_str());
  return true;
}

// Reads a file that has a board's name. If `found` is null, only removes a left-over board.
void look_at(const std::string& path, found_boards* found) {
  const auto skip = [&](const std::string& why) {
    if (found) found->skipped.push_back(path + ": " + why);
  };
  const file f = open_file(path, 0);
  if (f.get() < 0) {
    if (errno != ENOENT) skip(errno == ELOOP ? "a symbolic link" : std::strerror(errno));
    return;
  }
  struct stat s = {};
  fstat(f.get(), &s);
  if (const char* why = objection(s)) return skip(why);
  header h{.magic = {}};
  const bool is_whole = pread(f.get(), &h, sizeof h, 0) == ssize_t(sizeof h);
  // The header is empty while a process creates the board, or if that process was killed.
  const bool is_made = std::ranges::any_of(h.magic, [](char c) { return c != 0; });
  if (is_made)
    if (const char* why = is_whole ? objection(h, s.st_size) : "cut short") return skip(why);
  if (is_left_over(f.get(), path) || !is_made || !found) return;
  found_board board;
  const std::string why = read_board(f.get(), h, board);
  if (!why.empty()) return skip(why);
  found->boards.push_back(std::move(board));
}

void look_through(const std::string& folder, found_boards* found) {
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem))
    if (entry.path().filename().string().starts_with(prefix())) look_at(entry.path(), found);
}

}  // namespace

rail_board::rail_board(std::uint64_t id, int num_ranks, int num_rails, int rank,
                       const std::string& folder)
    : first_entry_(std::int64_t(rank) * num_rails) {
  look_through(folder, nullptr);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(id));
  path_ = folder + "/" + prefix() + digits;
  const auto fail = [&](int code) { throw error(path_ + ": " + std::strerror(code)); };
  constexpr int most_tries = 100;
  file mine(-1);
  for (int tries = 0;; ++tries) {
    mine = open_file(path_, O_CREAT);
    if (mine.get() < 0) fail(errno);
    struct stat s = {};
    fstat(mine.get(), &s);
    if (const char* why = objection(s)) throw error(path_ + ": " + why);
    // Before the lock, another process may have removed the file as left over.
    if (flock(mine.get(), LOCK_SH | LOCK_NB) == 0 && fstat(mine.get(), &s) == 0 && s.st_nlink > 0)
      break;
    if (tries == most_tries) throw error(path_ + ": cannot be locked");
    usleep(100);
  }
  // All ranks write the same header.
  const header h{.entry_bytes = sizeof(entry),
                 .num_ranks = std::uint32_t(num_ranks),
                 .num_rails = std::uint32_t(num_rails),
                 .id = id};
  if (ftruncate(mine.get(), bytes_of(h)) != 0) fail(errno);
  if (const int code = posix_fallocate(mine.get(), entry_at(first_entry_),
                                       num_rails * std::int64_t(sizeof(entry))))
    fail(code);
  if (pwrite(mine.get(), &h, sizeof h, 0) != ssize_t(sizeof h)) fail(errno);
  fd_ = mine.release();
}

rail_board::~rail_board() {
  flock(fd_, LOCK_UN);  // else two processes that end together would both keep the file
  is_left_over(fd_, path_);
  close(fd_);
}

void rail_board::post(std::span<const posted_rail> rails) {
  std::vector<entry> entries(rails.size());
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const posted_rail& r = rails[i];
    entry& p = entries[i];
    p.posted_at_s = r.posted_at_s;
    p.pid = getpid();
    p.sent_bytes = r.sent_bytes;
    p.backlog_bytes = r.backlog_bytes;
    p.bytes_per_s = r.bytes_per_s;
    p.prediction_error = r.prediction_error.value_or(std::numeric_limits<double>::quiet_NaN());
    set_text(p.rail, r.rail);
    set_text(p.program, program_invocation_short_name);
    p.checksum = checksum_of(p);
  }
  // The file's memory was allocated when the board was opened.
  [[maybe_unused]] const ssize_t written =
      pwrite(fd_, entries.data(), entries.size() * sizeof(entry), entry_at(first_entry_));
}

found_boards find_boards(const std::string& folder) {
  found_boards found;
  look_through(folder, &found);
  return found;
}

}  // namespace railpass::internal
