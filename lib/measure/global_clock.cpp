// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/global_clock.hpp"

#include "railpass/base/clock.hpp"

#include <mpi.h>

#include <bit>
#include <limits>
#include <sched.h>

namespace railpass::internal::measure {

global_clock::global_clock() {
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  PMPI_Comm_size(MPI_COMM_WORLD, &num_ranks_);
  synchronise();
}

void global_clock::synchronise() {
  constexpr int pings = 20;
  constexpr std::size_t kept = 10;
  const int rounds = int(std::bit_width(unsigned(num_ranks_ - 1)));
  const clock_teacher teacher = rank_ > 0 ? teacher_of(rank_) : clock_teacher{-1, 0};
  for (int round = 0; round < rounds; ++round) {
    const int pupil = rank_ + (1 << round);
    if (teacher.round == round) {
      std::vector<ping> group;
      for (int i = 0; i < pings; ++i) {
        ping p{.sent_s = steady_clock_s()};
        PMPI_Sendrecv(nullptr, 0, MPI_BYTE, teacher.rank, 0, &p.global_s, 1, MPI_DOUBLE,
                      teacher.rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        p.received_s = steady_clock_s();
        group.push_back(p);
      }
      seen_.push_back(std::move(group));
      if (seen_.size() > kept) seen_.pop_front();
      model_ = fit_clock(std::vector(seen_.begin(), seen_.end()));
    } else if (rank_ < (1 << round) && pupil < num_ranks_) {
      for (int i = 0; i < pings; ++i) {
        PMPI_Recv(nullptr, 0, MPI_BYTE, pupil, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const double now = now_s();
        PMPI_Send(&now, 1, MPI_DOUBLE, pupil, 0, MPI_COMM_WORLD);
      }
    }
  }
}

double global_clock::now_s() const { return model_.global_s(steady_clock_s()); }

double global_clock::begin_round() {
  constexpr double exact_s = 50e-6;  // a rank that gives its core away may come back this late
  PMPI_Barrier(MPI_COMM_WORLD);
  double begin_s = now_s() + ahead_.ahead_s();
  PMPI_Bcast(&begin_s, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  const double local_s = model_.local_s(begin_s);
  if (steady_clock_s() > local_s) return std::numeric_limits<double>::infinity();
  while (local_s - steady_clock_s() > exact_s) sched_yield();
  while (steady_clock_s() < local_s) {
  }
  return begin_s;
}

}  // namespace railpass::internal::measure
