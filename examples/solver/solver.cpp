// SPDX-License-Identifier: BSL-1.0
//
// Poisson's equation on a plate or in a box with cold walls, by conjugate gradients: each iteration
// exchanges the sides of blocks once and sums up twice, by MPI or by railpass.
//   mpirun -n 4 solver --grid 512 512 --every 100
//   mpirun -n 4 solver --input plate.ini --library mpi
//   picture.py solver.h5 solver.png
// The residual of each iteration, the solution and what a run goes on from (--restart) are in one
// HDF5 file.
#include "checkpoint.hpp"
#include "communication.hpp"
#include "input.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

/// On rank 0's terminal, if it has one: what is sent to a file stays free of it.
class progress_bar {
 public:
  explicit progress_bar(bool is_mine) {
    if (is_mine) terminal_.open("/dev/tty");
  }
  ~progress_bar() {
    if (terminal_.is_open()) terminal_ << "\r\x1b[K" << std::flush;
  }
  /// `done` from 0 to 1.
  void show(double done, const std::string& what) {
    constexpr int width = 40;
    const int filled = int(width * std::clamp(done, 0.0, 1.0));
    if (!terminal_.is_open() || (filled == filled_ && ++unshown_ % 64 != 0)) return;
    filled_ = filled;
    terminal_ << "\r[" << std::string(std::size_t(filled), '#')
              << std::string(std::size_t(width - filled), ' ') << "] " << what << "\x1b[K"
              << std::flush;
  }

 private:
  std::ofstream terminal_;
  int filled_ = -1, unshown_ = 0;
};

/// Heat comes from one point, away from the middle.
template <int D>
void put_source(const block<D>& own, const typename block<D>::sizes& grid,
                std::vector<double>& field) {
  std::int64_t place = 0;
  for (std::size_t k = 0; k < D; ++k) {
    const std::int64_t at = grid[k] * std::int64_t(k + 1) / std::int64_t(D + 2) - own.first[k];
    if (at < 0 || at >= own.points[k]) return;
    place += (at + 1) * own.strides[k];
  }
  field[std::size_t(place)] = 1;
}

template <int D>
class conjugate_gradients {
 public:
  conjugate_gradients(const input& in, MPI_Comm cart, int rank)
      : in_(in), cart_(cart), is_first_(rank == 0), own_(cart, rank, grid_of(in)) {
    if (in.library == "mpi")
      ranks_ = std::make_unique<by_mpi<D>>(cart, own_, direction_.data());
    else
      ranks_ = std::make_unique<by_railpass<D>>(cart, own_, direction_.data());
  }

  void run() {
    if (in_.restart) {
      checkpoint::load<D>(in_.output, state());
    } else {
      put_source(own_, grid_of(in_), rest_);
      direction_ = rest_;
      residuals_ = {std::sqrt(ranks_->sum(product(rest_, rest_)))};
    }
    const std::size_t before = residuals_.size();
    double saving_s = 0;
    const double began_s = MPI_Wtime();
    {
      progress_bar bar(is_first_);
      while (!is_done()) {
        iterate();
        if (in_.every > 0 && iterations() % in_.every == 0 && !is_done()) {
          const double saves_s = MPI_Wtime();
          checkpoint::save<D>(in_.output, state());
          saving_s += MPI_Wtime() - saves_s;
        }
        bar.show(done(), "iteration " + std::to_string(iterations()));
      }
    }
    const double took_s = MPI_Wtime() - began_s - saving_s;
    checkpoint::save<D>(in_.output, state());
    if (is_first_)
      std::printf("iterations: %d\nresidual: %.3e\nseconds: %.6f for %zu iterations\nby: %s\n",
                  iterations(), residuals_.back(), took_s, residuals_.size() - before,
                  ranks_->versions().c_str());
  }

 private:
  using field = std::vector<double>;

  static typename block<D>::sizes grid_of(const input& in) {
    typename block<D>::sizes grid{};
    std::copy_n(in.grid.begin(), D, grid.begin());
    return grid;
  }
  checkpoint::state<D> state() {
    return {.cart = cart_,
            .grid = grid_of(in_),
            .own = own_,
            .fields = {{"solution", &solution_}, {"rest", &rest_}, {"direction", &direction_}},
            .residuals = residuals_};
  }

  int iterations() const { return int(residuals_.size()) - 1; }
  double goal() const { return in_.tolerance * residuals_.front(); }
  bool is_done() const { return iterations() >= in_.iterations || residuals_.back() <= goal(); }
  double done() const {
    const double by_count = double(iterations()) / in_.iterations;
    if (goal() <= 0) return by_count;
    return std::max(by_count,
                    std::log(residuals_.back() / residuals_.front()) / std::log(in_.tolerance));
  }

  /// Of own points.
  double product(const field& a, const field& b) const {
    double sum = 0;
    own_.each_row([&](std::size_t place, std::size_t count) {
      for (std::size_t i = place; i < place + count; ++i) sum += a[i] * b[i];
    });
    return sum;
  }
  /// What the operator makes of the direction: 2 D times a point less its neighbours.
  void apply() {
    ranks_->exchange();
    own_.each_row([&](std::size_t place, std::size_t count) {
      for (std::size_t i = place; i < place + count; ++i) {
        double neighbours = 0;
        for (std::size_t k = 0; k < D; ++k) {
          const auto away = std::size_t(own_.strides[k]);
          neighbours += direction_[i - away] + direction_[i + away];
        }
        applied_[i] = 2 * D * direction_[i] - neighbours;
      }
    });
  }
  void iterate() {
    const double before = residuals_.back() * residuals_.back();
    apply();
    const double step = before / ranks_->sum(product(direction_, applied_));
    own_.each_row([&](std::size_t place, std::size_t count) {
      for (std::size_t i = place; i < place + count; ++i) {
        solution_[i] += step * direction_[i];
        rest_[i] -= step * applied_[i];
      }
    });
    const double after = ranks_->sum(product(rest_, rest_));
    own_.each_row([&](std::size_t place, std::size_t count) {
      for (std::size_t i = place; i < place + count; ++i)
        direction_[i] = rest_[i] + after / before * direction_[i];
    });
    residuals_.push_back(std::sqrt(after));
  }

  const input& in_;
  MPI_Comm cart_;
  bool is_first_;
  block<D> own_;
  field solution_ = field(own_.memory), rest_ = solution_, applied_ = solution_;
  field direction_ = solution_;  // whose address the exchange knows
  std::vector<double> residuals_;
  std::unique_ptr<communication<D>> ranks_;
};

template <int D>
void solve(const input& in, int num_ranks) {
  std::array<int, D> ranks{}, periods{};
  std::copy(in.ranks.begin(), in.ranks.end(), ranks.begin());
  MPI_Dims_create(num_ranks, D, ranks.data());
  for (std::size_t k = 0; k < D; ++k)
    if (in.grid[k] < ranks[k])
      throw std::runtime_error("grid: expected at least one point for each of " +
                               std::to_string(ranks[k]) + " ranks in dimension " +
                               std::to_string(k));
  MPI_Comm cart = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, D, ranks.data(), periods.data(), 0, &cart);
  int rank = 0;
  MPI_Comm_rank(cart, &rank);
  conjugate_gradients<D>(in, cart, rank).run();
  MPI_Comm_free(&cart);
}

/// What argv asks for, on rank 0's word if it is wrong; nothing: the program ends with `code`.
std::optional<input> read_input(int argc, char** argv, int rank, int num_ranks, int& code) {
  CLI::App app("Poisson's equation by conjugate gradients");
  input in;
  add_fields(app, in);
  std::string said;
  int mine = -1;  // goes on
  try {
    app.parse(argc, argv);
    if (const std::string problem = problem_of(in, num_ranks); !problem.empty())
      throw CLI::ValidationError(problem);
  } catch (const CLI::ParseError& e) {
    if (rank == 0)
      mine = app.exit(e);
    else
      mine = e.get_exit_code();
  }
  // A rank may have found another file.
  MPI_Allreduce(&mine, &code, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (code >= 0) return std::nullopt;
  return in;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are this program's sentences
  int rank = 0, num_ranks = 0, code = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  if (const auto in = read_input(argc, argv, rank, num_ranks, code)) {
    code = 0;
    try {
      in->grid.size() == 2 ? solve<2>(*in, num_ranks) : solve<3>(*in, num_ranks);
    } catch (const std::exception& e) {  // on all ranks alike
      if (rank == 0) std::cerr << "solver: " << e.what() << '\n';
      code = 1;
    }
  }
  MPI_Finalize();
  return code;
}
