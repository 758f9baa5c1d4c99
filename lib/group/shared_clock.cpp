// SPDX-License-Identifier: BSL-1.0
#include "lib/group/shared_clock.hpp"

#include "railpass/base/clock.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/hash.hpp"
#include "railpass/select/lockstep/merge_tree.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fcntl.h>
#include <map>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace railpass::internal {

namespace {

std::uint64_t read_mark() {
  std::array<char, 64> id{};
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t size = read(file, id.data(), id.size());
  close(file);
  if (size <= 0) return 0;
  struct stat of_namespace {};
  // Kernels before 5.6 have no time namespaces.
  const bool has_namespace = stat("/proc/self/ns/time", &of_namespace) == 0;
  return text_hash()
             .add({id.data(), std::size_t(size)})
             .add({reinterpret_cast<const char*>(&of_namespace.st_ino),
                   has_namespace ? sizeof of_namespace.st_ino : 0})
             .value() |
         1;
}

}  // namespace

std::uint64_t mark_of_clock() {
  static const std::uint64_t mark = read_mark();
  return mark;
}

shared_clock::shared_clock(std::span<const std::int64_t> mark_of_rank, int rank) : rank_(rank) {
  if (std::ranges::find(mark_of_rank, 0) != mark_of_rank.end()) return;
  const std::int64_t own = mark_of_rank[std::size_t(rank)];
  std::map<std::int64_t, int> clocks;
  for (int r = 0; r < int(mark_of_rank.size()); ++r) {
    const std::int64_t mark = mark_of_rank[std::size_t(r)];
    if (clocks.try_emplace(mark, int(clocks.size())).second) firsts_.push_back(r);
    if (mark == own) alike_.push_back(r);
  }
  clock_ = clocks[own];
  position_ = int(std::ranges::find(alike_, rank) - alike_.begin());
  if (clock_ > 0) offset_ = select::clock_offset::unknown();
}

select::clock_offset shared_clock::known() const {
  const std::lock_guard lock(mutex_);
  return offset_;
}

told_clock shared_clock::tell(double came_s) const {
  const own_float_environment own;
  const std::lock_guard lock(mutex_);
  const double now_s = steady_clock_s();
  return {.mark = mark_of_clock(),
          .answer = {.came_s = came_s,
                     .left_s = now_s,
                     .least_s = offset_.least_s(now_s),
                     .most_s = offset_.most_s(now_s)}};
}

void shared_clock::learn(const told_clock& told, double asked_s, double received_s) {
  if (clock_ == 0) return;
  const own_float_environment own;
  const std::lock_guard lock(mutex_);
  const select::clock_answer& a = told.answer;
  if (told.mark == mark_of_clock())
    offset_.learn(a.left_s, a.least_s, a.most_s);
  else
    learn_from(offset_, a, asked_s, received_s);
}

// ---- when a communicator is made

namespace {

constexpr int questions = 16;  // to each host; the quickest messages each way count

}  // namespace

int shared_clock::compare(MPI_Comm comm) {
  if (position_ == 0)
    if (const int failure = compare_hosts(comm)) return failure;
  const int failure = tell_others(comm);
  firsts_ = {};
  alike_ = {};
  return failure;
}

int shared_clock::compare_hosts(MPI_Comm comm) {
  const select::tree_position tree{clock_, int(firsts_.size())};
  const auto first = [&](int clock) { return firsts_[std::size_t(clock)]; };
  for (int i = 0; clock_ > 0 && i < questions; ++i)
    if (const int failure = ask(comm, first(tree.parent()))) return failure;
  for (int child = tree.num_children(); child-- > 0;)
    for (int i = 0; i < questions; ++i)
      if (const int failure = answer(comm, first(tree.child(child)))) return failure;
  return MPI_SUCCESS;
}

int shared_clock::ask(MPI_Comm comm, int teacher) {
  told_clock told;
  const double asked_s = steady_clock_s();
  if (const int failure = PMPI_Sendrecv(nullptr, 0, MPI_BYTE, teacher, 0, &told, int(sizeof told),
                                        MPI_BYTE, teacher, 0, comm, MPI_STATUS_IGNORE))
    return failure;
  learn(told, asked_s, steady_clock_s());
  return MPI_SUCCESS;
}

int shared_clock::answer(MPI_Comm comm, int pupil) {
  if (const int failure = PMPI_Recv(nullptr, 0, MPI_BYTE, pupil, 0, comm, MPI_STATUS_IGNORE))
    return failure;
  const told_clock told = tell(steady_clock_s());
  return PMPI_Send(&told, int(sizeof told), MPI_BYTE, pupil, 0, comm);
}

int shared_clock::tell_others(MPI_Comm comm) {
  const select::tree_position tree{position_, int(alike_.size())};
  const auto rank_at = [&](int position) { return alike_[std::size_t(position)]; };
  if (position_ > 0) {
    told_clock told;
    if (const int failure = PMPI_Recv(&told, int(sizeof told), MPI_BYTE, rank_at(tree.parent()), 0,
                                      comm, MPI_STATUS_IGNORE))
      return failure;
    const double now_s = steady_clock_s();
    learn(told, now_s, now_s);
  }
  for (int child = tree.num_children(); child-- > 0;) {
    const told_clock told = tell(steady_clock_s());
    if (const int failure =
            PMPI_Send(&told, int(sizeof told), MPI_BYTE, rank_at(tree.child(child)), 0, comm))
      return failure;
  }
  return MPI_SUCCESS;
}

}  // namespace railpass::internal
