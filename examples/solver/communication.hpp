// SPDX-License-Identifier: BSL-1.0
//
// What the ranks tell one another, by MPI and by railpass: all that a program changes to use it.
#pragma once

#include "block.hpp"
#include "railpass/halo_exchange.hpp"
#include "railpass/mpi.hpp"

#include <mpi.h>

#include <array>
#include <string>

template <int D>
class communication {
 public:
  virtual ~communication() = default;
  /// Brings the neighbours' points of the field up to date.
  virtual void exchange() = 0;
  /// Over all ranks.
  virtual double sum(double mine) = 0;
  /// What took the exchanges and the sums.
  virtual std::string versions() const = 0;
};

template <int D>
class by_mpi : public communication<D> {
 public:
  /// `cart` was made by MPI_Cart_create; `field` has a block's memory.
  by_mpi(MPI_Comm cart, const block<D>& own, double* field) : cart_(cart), field_(field) {
    std::array<int, D> shape{};
    for (std::size_t k = 0; k < D; ++k) shape[k] = int(own.points[k] + 2);
    for (std::size_t k = 0; k < D; ++k) {
      MPI_Cart_shift(cart, int(k), 1, &neighbours_[2 * k], &neighbours_[2 * k + 1]);
      std::array<int, D> layer{}, at{};
      for (std::size_t j = 0; j < D; ++j) layer[j] = int(own.points[j]), at[j] = 1;
      layer[k] = 1;
      const auto side = [&](int place) {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        at[k] = place;
        MPI_Type_create_subarray(D, shape.data(), layer.data(), at.data(), MPI_ORDER_C, MPI_DOUBLE,
                                 &type);
        MPI_Type_commit(&type);
        return type;
      };
      received_[2 * k] = side(0);
      sent_[2 * k] = side(1);
      sent_[2 * k + 1] = side(int(own.points[k]));
      received_[2 * k + 1] = side(int(own.points[k] + 1));
    }
  }
  by_mpi(const by_mpi&) = delete;
  by_mpi& operator=(const by_mpi&) = delete;
  ~by_mpi() override {
    for (auto* types : {&sent_, &received_})
      for (MPI_Datatype& type : *types) MPI_Type_free(&type);
  }

  void exchange() override {
    std::array<MPI_Request, 4 * D> requests{};
    for (std::size_t s = 0; s < 2 * D; ++s) {
      const int tag = int(s), opposite = int(s ^ 1);
      MPI_Irecv(field_, 1, received_[s], neighbours_[s], opposite, cart_, &requests[2 * s]);
      MPI_Isend(field_, 1, sent_[s], neighbours_[s], tag, cart_, &requests[2 * s + 1]);
    }
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }
  double sum(double mine) override {
    double all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, cart_);
    return all;
  }
  std::string versions() const override { return "MPI_Isend and MPI_Irecv, MPI_Allreduce"; }

 private:
  MPI_Comm cart_;
  double* field_;
  std::array<int, 2 * D> neighbours_{};  // below and above in each dimension
  std::array<MPI_Datatype, 2 * D> sent_{}, received_{};
};

template <int D>
class by_railpass : public communication<D> {
 public:
  by_railpass(MPI_Comm cart, const block<D>& own, double* field)
      : cart_(cart), halo_(railpass::cartesian<D>::of(cart), field, own.points, /*width=*/1) {}

  void exchange() override { halo_(); }
  double sum(double mine) override {
    double all = 0;
    railpass::mpi::all_reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, cart_);
    return all;
  }
  std::string versions() const override {
    return (halo_.winner().empty() ? halo_.last() : halo_.winner()) + ", " +
           railpass::mpi::last_arm(cart_);
  }

 private:
  MPI_Comm cart_;
  railpass::halo_exchange<D> halo_;
};
