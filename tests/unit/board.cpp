// SPDX-License-Identifier: BSL-1.0
//
// The board on which ranks of a host show their rails: several processes, those that are killed,
// and files that are none.
#include "lib/rails/board.hpp"

#include "railpass/base/error.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace railpass;
using namespace railpass::internal;
namespace fs = std::filesystem;

namespace {

class temporary_folder {
 public:
  temporary_folder() {
    std::string name = (fs::temp_directory_path() / "railpass_board_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~temporary_folder() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const {
    return path_ + "/railpass." + std::to_string(geteuid()) + "." + name;
  }
  std::size_t num_files() const {
    return std::size_t(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  std::string path_;
};

std::vector<posted_rail> rails_at(std::int64_t k) {
  return {{.rail = "eth0 (10.0.0.1)",
           .sent_bytes = 3 * k,
           .bytes_per_s = 1e8,
           .prediction_error = 0.25,
           .backlog_bytes = 5 * k,
           .posted_at_s = double(k + 1)},
          {.rail = "eth1 (10.1.0.1)", .sent_bytes = k, .posted_at_s = double(k + 1)}};
}

// Another process, which does its work and then waits until it is told to end.
class child {
 public:
  explicit child(const std::function<void()>& work) {
    REQUIRE(pipe(begun_) == 0);
    REQUIRE(pipe(end_) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      close(end_[1]);
      work();
      char told = 0;
      [[maybe_unused]] auto n = write(begun_[1], &told, 1);
      n = read(end_[0], &told, 1);  // fails when the other end is closed
      _exit(0);
    }
    char told = 0;
    REQUIRE(read(begun_[0], &told, 1) == 1);
  }
  ~child() {
    kill();
    for (const int fd : {begun_[0], begun_[1], end_[0], end_[1]}) close(fd);
  }
  pid_t pid() const { return pid_; }
  void kill() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  int begun_[2] = {-1, -1}, end_[2] = {-1, -1};
};

void overwrite(const std::string& path, std::int64_t at, const void* what, std::size_t bytes) {
  std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
  f.seekp(at);
  f.write(static_cast<const char*>(what), std::streamsize(bytes));
}

void flip(const std::string& path, std::int64_t at) {
  std::ifstream f(path, std::ios::binary);
  f.seekg(at);
  const char other = char(f.get() ^ 1);
  overwrite(path, at, &other, 1);
}

constexpr std::int64_t first_entry = 32, entry_bytes = 192;

}  // namespace

TEST_CASE("what ranks post is found, and the last one removes the board") {
  const temporary_folder folder;
  CHECK(find_boards(folder.path()).boards.empty());
  {
    rail_board third(0xabc, 4, 2, 2, folder.path());
    CHECK(find_boards(folder.path()).boards.at(0).rails.empty());  // nothing was posted yet
    {
      rail_board first(0xabc, 4, 2, 0, folder.path());
      rail_board other(0xdef, 1, 1, 0, folder.path());
      CHECK(folder.num_files() == 2);
      third.post(rails_at(7));
      first.post(rails_at(100));
      first.post(rails_at(200));
    }
    CHECK(folder.num_files() == 1);
    struct stat s = {};
    REQUIRE(stat(folder.file("0000000000000abc").c_str(), &s) == 0);
    CHECK((s.st_mode & 0777) == 0600);
    const found_boards found = find_boards(folder.path());
    CHECK(found.skipped.empty());
    REQUIRE(found.boards.size() == 1);
    const found_board& b = found.boards[0];
    CHECK(b.id == 0xabc);
    CHECK(b.num_ranks == 4);
    REQUIRE(b.rails.size() == 4);
    CHECK(b.rails[0].rank == 0);
    CHECK(b.rails[0].pid == getpid());
    CHECK(b.rails[0].program == program_invocation_short_name);
    CHECK(b.rails[0].rail == "eth0 (10.0.0.1)");
    CHECK(b.rails[0].sent_bytes == 600);
    CHECK(b.rails[0].backlog_bytes == 1000);
    CHECK(b.rails[0].bytes_per_s == 1e8);
    CHECK(b.rails[0].prediction_error == 0.25);
    CHECK(b.rails[0].posted_at_s == 201);
    CHECK(b.rails[1].rail == "eth1 (10.1.0.1)");
    CHECK(!b.rails[1].prediction_error);
    CHECK(b.rails[3].rank == 2);
    CHECK(b.rails[3].sent_bytes == 7);
  }
  CHECK(folder.num_files() == 0);
}

TEST_CASE("several processes post at once, and what is read is whole") {
  const temporary_folder folder;
  std::vector<std::unique_ptr<child>> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(std::make_unique<child>([&, rank] {
      static rail_board board(1, 4, 2, rank, folder.path());
      board.post(rails_at(1));
      static std::thread posting([] {
        for (std::int64_t k = 2;; ++k) board.post(rails_at(k % 1000000));
      });
      posting.detach();
    }));
  int seen = 0;
  for (int look = 0; look < 300; ++look) {
    const found_boards found = find_boards(folder.path());
    REQUIRE(found.boards.size() + found.skipped.size() == 1);
    if (found.boards.empty()) continue;  // always in the middle of being written
    ++seen;
    REQUIRE(found.boards[0].rails.size() == 8);
    for (const posted_rail& r : found.boards[0].rails) {
      const auto k = std::int64_t(r.posted_at_s) - 1;
      REQUIRE(r.sent_bytes == (r.rail.starts_with("eth0") ? 3 * k : k));
      REQUIRE(r.pid == ranks[std::size_t(r.rank)]->pid());
    }
  }
  CHECK(seen > 0);
  for (auto& r : ranks) r->kill();
  CHECK(find_boards(folder.path()).boards.empty());
  CHECK(folder.num_files() == 0);
}

TEST_CASE("what killed processes left behind is removed, also by the next run") {
  const temporary_folder folder;
  for (const bool by_next_run : {false, true}) {
    child rank([&] {
      static rail_board board(1, 1, 2, 0, folder.path());
      board.post(rails_at(1));
    });
    CHECK(find_boards(folder.path()).boards.size() == 1);
    rank.kill();
    CHECK(folder.num_files() == 1);
    if (by_next_run)
      rail_board(2, 1, 1, 0, folder.path());
    else
      CHECK(find_boards(folder.path()).boards.empty());
    CHECK(folder.num_files() == 0);
  }
  // Killed before anything was written.
  std::ofstream(folder.file("3")).flush();
  chmod(folder.file("3").c_str(), 0600);
  CHECK(find_boards(folder.path()).skipped.empty());
  CHECK(folder.num_files() == 0);
}

TEST_CASE("one rank of several that is killed takes nothing with it") {
  const temporary_folder folder;
  rail_board here(1, 2, 2, 0, folder.path());
  here.post(rails_at(1));
  {
    child rank([&] {
      static rail_board board(1, 2, 2, 1, folder.path());
      board.post(rails_at(2));
    });
    CHECK(find_boards(folder.path()).boards.at(0).rails.size() == 4);
  }
  here.post(rails_at(3));
  CHECK(find_boards(folder.path()).boards.at(0).rails.front().sent_bytes == 9);
}

TEST_CASE("ranks that begin and end at the same time leave no board behind") {
  const temporary_folder folder;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 8; ++rank)
      ranks.emplace_back([&, rank] {
        rail_board board(std::uint64_t(round), 8, 2, rank, folder.path());
        board.post(rails_at(rank));
      });
    for (auto& r : ranks) r.join();
    REQUIRE(folder.num_files() == 0);
  }
}

TEST_CASE("files that are no boards are named and left alone") {
  const temporary_folder folder;
  const auto skipped = [&] {
    const found_boards found = find_boards(folder.path());
    CHECK(found.boards.empty());
    REQUIRE(found.skipped.size() == 1);
    CHECK(folder.num_files() >= 1);
    return found.skipped[0];
  };
  const std::string foreign = folder.file("foreign");
  std::ofstream(foreign) << "something else that is longer than a header of a board";
  chmod(foreign.c_str(), 0600);
  CHECK_THAT(skipped(),
             ContainsSubstring(foreign) && ContainsSubstring("not a file of rail loads"));
  chmod(foreign.c_str(), 0644);
  CHECK_THAT(skipped(), ContainsSubstring("other users may read"));
  fs::remove(foreign);
  std::ofstream(foreign) << "railpass";
  chmod(foreign.c_str(), 0600);
  CHECK_THAT(skipped(), ContainsSubstring("cut short"));
  fs::remove(foreign);
  fs::create_symlink("/etc/hostname", foreign);
  CHECK_THAT(skipped(), ContainsSubstring("link"));
  fs::remove(foreign);
  REQUIRE(mkfifo(foreign.c_str(), 0600) == 0);
  CHECK_THAT(skipped(), ContainsSubstring("regular"));
  fs::remove(foreign);

  const std::string path = folder.file("0000000000000001");
  const auto broken = [&](std::int64_t at, auto value) {
    rail_board board(1, 2, 2, 0, folder.path());
    board.post(rails_at(1));
    overwrite(path, at, &value, sizeof value);
    return skipped();
  };
  CHECK_THAT(broken(8, std::uint32_t{99}), ContainsSubstring("another version"));
  fs::remove(path);
  CHECK_THAT(broken(12, std::uint32_t{64}), ContainsSubstring("another version"));
  fs::remove(path);
  for (const std::uint32_t n : {0u, 3u, 0xffffffffu}) {
    CHECK_THAT(broken(16, n), ContainsSubstring("size"));
    fs::remove(path);
  }
  CHECK_THAT(broken(20, std::uint32_t{17}), ContainsSubstring("size"));
  fs::remove(path);
  rail_board board(1, 2, 2, 0, folder.path());
  for (const std::int64_t at : {8, 16, 100, 190})
    for (const std::int64_t entry : {0, 1}) {
      board.post(rails_at(1));
      flip(path, first_entry + entry * entry_bytes + at);
      CHECK_THAT(skipped(), ContainsSubstring("corrupt (the entry of rank 0)"));
    }
}

TEST_CASE("what cannot be is not shown, nor what a terminal might obey") {
  const temporary_folder folder;
  rail_board board(1, 1, 2, 0, folder.path());
  const auto posted = [&](const auto& change) {
    std::vector<posted_rail> rails = rails_at(1);
    change(rails[1]);
    board.post(rails);
    return find_boards(folder.path());
  };
  constexpr double infinite = std::numeric_limits<double>::infinity();
  CHECK(posted([](posted_rail& r) { r.sent_bytes = -1; }).boards.empty());
  CHECK(posted([](posted_rail& r) { r.backlog_bytes = -1; }).boards.empty());
  CHECK(posted([](posted_rail& r) { r.bytes_per_s = infinite; }).boards.empty());
  CHECK(posted([](posted_rail& r) { r.bytes_per_s = -1; }).boards.empty());
  CHECK(posted([](posted_rail& r) { r.prediction_error = -0.1; }).boards.empty());
  CHECK(posted([](posted_rail& r) { r.posted_at_s = std::nan(""); }).skipped.size() == 1);
  const found_boards found = posted([](posted_rail& r) { r.rail = "\x1b[2J" + r.rail; });
  CHECK(found.boards.at(0).rails.at(1).rail == "?[2Jeth1 (10.1.0.1)");
}

TEST_CASE("where there is no shared memory the error says what there is") {
  CHECK_THROWS_WITH(rail_board(1, 1, 1, 0, "/nowhere"), ContainsSubstring("/nowhere/railpass."));
  CHECK(find_boards("/nowhere").boards.empty());
  const temporary_folder folder;
  // Somebody has taken the name.
  fs::create_directory(folder.file("0000000000000001"));
  CHECK_THROWS_AS(rail_board(1, 1, 1, 0, folder.path()), railpass::error);
}
