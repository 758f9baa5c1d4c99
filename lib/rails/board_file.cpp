// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/board_file.hpp"

#include "lib/base/file_space.hpp"
#include "railpass/base/error.hpp"
#include "railpass/base/hash.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
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
  std::uint32_t num_entries = 0;  // of a rank
  std::uint64_t id = 0;
};
static_assert(sizeof(header) == 32);

constexpr std::uint32_t most_ranks = 1 << 24;

std::int64_t entry_at(const board_kind& kind, std::int64_t index) {
  return std::int64_t(sizeof(header)) + index * std::int64_t(kind.entry_bytes);
}
std::int64_t bytes_of(const board_kind& kind, const header& h) {
  return entry_at(kind, std::int64_t(h.num_ranks) * h.num_entries);
}

std::string prefix_of(const board_kind& kind) {
  return std::string(kind.prefix) + "." + std::to_string(geteuid()) + ".";
}

// ---- entries

using bytes_of_entry = std::span<std::byte>;

// Detects an entry that is read during a write.
std::uint64_t checksum_of(bytes_of_entry e) {
  return fnv1a({reinterpret_cast<const char*>(e.data()), e.size() - sizeof(std::uint64_t)});
}
std::byte* checksum_in(bytes_of_entry e) { return e.data() + e.size() - sizeof(std::uint64_t); }
void seal(bytes_of_entry e) {
  const std::uint64_t sum = checksum_of(e);
  std::memcpy(checksum_in(e), &sum, sizeof sum);
}
bool is_empty(bytes_of_entry e) {
  return std::ranges::all_of(e, [](std::byte b) { return b == std::byte{}; });
}
bool is_whole(bytes_of_entry e) {
  const std::uint64_t sum = checksum_of(e);
  return is_empty(e) || std::memcmp(checksum_in(e), &sum, sizeof sum) == 0;
}

// ---- files

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

std::string objection(const board_kind& kind, const header& h, std::int64_t bytes) {
  if (std::memcmp(h.magic, header().magic, sizeof h.magic) != 0)
    return std::string("not a file of ") + kind.shows;
  if (h.version != header().version || h.entry_bytes != kind.entry_bytes)
    return "written by another version of railpass";
  if (h.num_ranks < 1 || h.num_ranks > most_ranks || h.num_entries < 1 ||
      h.num_entries > kind.most_entries || bytes != bytes_of(kind, h))
    return "corrupt (the size contradicts the header)";
  return "";
}

std::string corrupt_entry(int rank) {
  return "corrupt (the entry of rank " + std::to_string(rank) + ")";
}

// Returns why the entries of a rank are not sound; empty: they are.
std::string read_rank(int fd, const board_kind& kind, const header& h, int rank, found_file& to) {
  std::vector<std::byte> all(std::size_t(h.num_entries) * kind.entry_bytes);
  const auto entry = [&](std::uint32_t i) {
    return bytes_of_entry(all).subspan(std::size_t(i) * kind.entry_bytes, kind.entry_bytes);
  };
  std::uint32_t whole = 0;
  for (int tries = 0; tries < 10 && whole < h.num_entries; ++tries) {
    if (pread(fd, all.data(), all.size(), entry_at(kind, std::int64_t(rank) * h.num_entries)) !=
        ssize_t(all.size()))
      return "became shorter during reading";
    for (whole = 0; whole < h.num_entries && is_whole(entry(whole));) ++whole;
  }
  if (whole < h.num_entries) return corrupt_entry(rank);
  for (std::uint32_t i = 0; i < h.num_entries; ++i)
    if (const bytes_of_entry e = entry(i); !is_empty(e))
      to.entries.push_back({.rank = rank, .bytes = {e.begin(), e.end()}});
  return "";
}

// Removes the board if no process uses it.
bool is_left_over(int fd, const std::string& path) {
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return false;
  unlink(path.c_str());
  return true;
}

// Reads a file that has a board's name. If `found` is null, only removes a left-over board.
void look_at(const board_kind& kind, const std::string& path, found_files* found) {
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
  const bool is_complete = pread(f.get(), &h, sizeof h, 0) == ssize_t(sizeof h);
  // The header is empty while a process creates the board, or if that process was killed.
  const bool is_made = std::ranges::any_of(h.magic, [](char c) { return c != 0; });
  if (is_made)
    if (const std::string why = is_complete ? objection(kind, h, s.st_size) : "cut short";
        !why.empty())
      return skip(why);
  if (is_left_over(f.get(), path) || !is_made || !found) return;
  found_file board{.path = path, .id = h.id, .num_ranks = int(h.num_ranks), .entries = {}};
  for (int rank = 0; rank < board.num_ranks; ++rank)
    if (const std::string why = read_rank(f.get(), kind, h, rank, board); !why.empty())
      return skip(why);
  found->files.push_back(std::move(board));
}

void look_through(const board_kind& kind, const std::string& folder, found_files* found) {
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem))
    if (entry.path().filename().string().starts_with(prefix_of(kind)))
      look_at(kind, entry.path(), found);
}

}  // namespace

board_file::board_file(const board_kind& kind, std::uint64_t id, int num_ranks, int num_entries,
                       int rank, const std::string& folder)
    : kind_(kind), begin_(entry_at(kind, std::int64_t(rank) * num_entries)) {
  look_through(kind, folder, nullptr);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(id));
  path_ = folder + "/" + prefix_of(kind) + digits;
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
  const header h{.entry_bytes = kind.entry_bytes,
                 .num_ranks = std::uint32_t(num_ranks),
                 .num_entries = std::uint32_t(num_entries),
                 .id = id};
  if (exceeds_file_size(std::uint64_t(bytes_of(kind, h)))) fail(EFBIG);
  if (ftruncate(mine.get(), bytes_of(kind, h)) != 0) fail(errno);
  if (!allocate(mine.get(), begin_, num_entries * std::int64_t(kind.entry_bytes))) fail(errno);
  if (pwrite(mine.get(), &h, sizeof h, 0) != ssize_t(sizeof h)) fail(errno);
  fd_ = mine.release();
}

board_file::~board_file() {
  flock(fd_, LOCK_UN);  // else two processes that end together would both keep the file
  is_left_over(fd_, path_);
  close(fd_);
}

void board_file::write(std::span<std::byte> entries) {
  for (std::size_t at = 0; at < entries.size(); at += kind_.entry_bytes)
    seal(entries.subspan(at, kind_.entry_bytes));
  // The file's memory was allocated when the board was opened.
  [[maybe_unused]] const ssize_t written = pwrite(fd_, entries.data(), entries.size(), begin_);
}

found_files find_board_files(const board_kind& kind, const std::string& folder,
                             bool (*is_sound)(const found_entry&)) {
  found_files found;
  look_through(kind, folder, &found);
  std::erase_if(found.files, [&](const found_file& f) {
    const auto unsound = std::ranges::find_if_not(f.entries, is_sound);
    if (unsound == f.entries.end()) return false;
    found.skipped.push_back(f.path + ": " + corrupt_entry(unsound->rank));
    return true;
  });
  return found;
}

std::string text_of_field(std::span<const char> field) {
  std::string text(field.data(), strnlen(field.data(), field.size()));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 32 || c >= 127; }, '?');
  return text;
}

}  // namespace railpass::internal
