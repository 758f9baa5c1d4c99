// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/halo/plan.hpp"
#include "lib/halo/version.hpp"
#include "lib/session/private_communicator.hpp"
#include "railpass/halo_exchange.hpp"

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

namespace railpass::mpi {

/// Everything of one exchange: its communicator, what it moves, and all versions that can do it.
class halo::engine {
 public:
  explicit engine(const halo_arguments& arguments);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine();

  /// A version that can run here; the same ones on all ranks.
  struct candidate {
    const railpass::halo::version_description* what = nullptr;
    std::unique_ptr<railpass::halo::version> run{};
  };
  const std::vector<candidate>& candidates() const { return candidates_; }
  /// The names of those that cannot, and why.
  const std::vector<std::pair<std::string, std::string>>& left_out() const { return left_out_; }

  /// An exchange by the candidate of that index, in two parts.
  void begin(std::size_t index);
  void end();

 private:
  void make(const halo_arguments& arguments);
  [[noreturn]] void fail(const railpass::halo::mpi_failure& failure);
  void let_go();

  std::string name_;
  private_communicator comm_;
  MPI_Errhandler users_handler_ = MPI_ERRHANDLER_NULL;
  std::unique_ptr<railpass::halo::plan> plan_;
  std::unique_ptr<railpass::halo::resources> resources_;
  std::vector<candidate> candidates_;
  std::vector<std::pair<std::string, std::string>> left_out_;
  railpass::halo::version* under_way_ = nullptr;
  bool failed_ = false;
};

}  // namespace railpass::mpi
