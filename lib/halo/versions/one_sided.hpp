// SPDX-License-Identifier: BSL-1.0
//
// Base classes of the versions with windows, by kind of synchronisation. With derived datatypes,
// operations move elements from field to field. Packed messages wait in slots of a window: ranks
// write before the first synchronisation and read after the last one. No window is touched from
// both sides in between.
#pragma once

#include "lib/call/is_mpich.hpp"
#include "lib/halo/version.hpp"

#include <cmath>
#include <vector>

namespace railpass::internal::halo {

/// The rank that moves a shift's elements: the sender (put) or the receiver (get).
enum class access { put, get };

class one_sided : public version {
 public:
  // MPI libraries move each piece of a derived datatype by a separate operation. About 8 pieces
  // take as long as a message.
  double lag() const override {
    constexpr double pieces_of_a_message = 8;
    return in_pieces_ ? std::log1p(double(plan_.most_pieces()) / pieces_of_a_message) : 0;
  }

 protected:
  one_sided(resources& shared, pattern how, layout in, access by)
      : plan_(shared.of()),
        windows_(shared.windows_in(in)),
        by_pairs_(how == pattern::by_pairs),
        in_pieces_(in == layout::derived),
        access_(by) {}

  std::size_t num_shifts() const { return plan_.shifts().size(); }
  void move(std::size_t i) {
    if (access_ == access::put)
      windows_.put(i);
    else
      windows_.get(i);
  }
  /// The rank that this rank accesses in a shift, and the rank that accesses this rank.
  int target(const shift& s) const { return access_ == access::put ? s.to : s.from; }
  int origin(const shift& s) const { return access_ == access::put ? s.from : s.to; }

  const plan& plan_;
  windows& windows_;
  bool by_pairs_;

 private:
  bool in_pieces_;
  access access_;
};

/// All ranks synchronise, with fences.
class fenced : public one_sided {
 public:
  void begin() override {
    windows_.pack_all();
    fence(MPI_MODE_NOPRECEDE);
    for (std::size_t i = 0; i < num_shifts(); ++i) {
      move(i);
      if (by_pairs_ && i + 1 < num_shifts()) fence(0);
    }
  }
  void end() override {
    fence(MPI_MODE_NOSUCCEED);
    windows_.unpack_all();
  }

 protected:
  using one_sided::one_sided;

 private:
  void fence(int promises) {
    for (const MPI_Win window : windows_.all())
      check("MPI_Win_fence", PMPI_Win_fence(promises, window));
  }
};

/// Neighbours synchronise, with post, start, complete and wait.
class posted : public one_sided {
 public:
  void begin() override {
    windows_.pack_all();
    for (std::size_t e = 0; e < epochs_.size(); ++e) {
      open(epochs_[e]);
      for (const std::size_t i : epochs_[e].shifts) move(i);
      if (by_pairs_) close(epochs_[e]);
    }
    if (by_pairs_) windows_.unpack_all();
  }
  void end() override {
    if (by_pairs_) return;
    for (const epoch& e : epochs_) close(e);
    windows_.unpack_all();
  }

 protected:
  posted(resources& shared, pattern how, layout in, access by) : one_sided(shared, how, in, by) {
    if (by_pairs_ && is_mpich())
      throw unavailable{
          "MPICH counts posts without looking whose they are, and a rank that is ahead "
          "posts early"};
    std::vector<std::size_t> together;
    for (std::size_t i = 0; i < num_shifts(); ++i) {
      together.push_back(i);
      if (!by_pairs_ && i + 1 < num_shifts()) continue;
      std::vector<int> targets, origins;
      for (const std::size_t k : together) {
        targets.push_back(target(plan_.shifts()[k]));
        origins.push_back(origin(plan_.shifts()[k]));
      }
      epochs_.push_back({together, {plan_.comm(), targets}, {plan_.comm(), origins}});
      together.clear();
    }
  }

 private:
  struct epoch {
    std::vector<std::size_t> shifts;
    rank_group targets, origins;
  };
  void open(const epoch& e) {
    if (!e.origins.empty())
      for (const MPI_Win window : windows_.all())
        check("MPI_Win_post", PMPI_Win_post(e.origins, 0, window));
    if (!e.targets.empty())
      for (const MPI_Win window : windows_.all())
        check("MPI_Win_start", PMPI_Win_start(e.targets, 0, window));
  }
  void close(const epoch& e) {
    if (!e.targets.empty())
      for (const MPI_Win window : windows_.all())
        check("MPI_Win_complete", PMPI_Win_complete(window));
    if (!e.origins.empty())
      for (const MPI_Win window : windows_.all()) check("MPI_Win_wait", PMPI_Win_wait(window));
  }

  std::vector<epoch> epochs_;
};

}  // namespace railpass::internal::halo
