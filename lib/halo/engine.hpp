// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "lib/group/private_communicator.hpp"
#include "lib/halo/plan.hpp"
#include "lib/halo/version.hpp"
#include "railpass/detail/set_call.hpp"
#include "railpass/halo_exchange.hpp"

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace railpass::internal::halo {

/// The parts of one exchange: its communicator, its messages, and all its versions.
class engine {
 public:
  explicit engine(const mpi::halo_arguments& arguments);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine();

  /// An entry of the list.
  struct candidate {
    const version_description* what = nullptr;
    std::unique_ptr<version> run{};  ///< null, on all ranks: it cannot run here
    std::string why_not{};
  };
  const std::vector<candidate>& candidates() const { return candidates_; }

  /// An exchange by the candidate of that index, which can run, in two parts.
  void start(std::size_t index);
  void finish();

  /// The same by a candidate that the function set chooses.
  void exchange();
  void begin();
  void end();
  std::string winner() const { return latest_->winner(); }
  std::string last() const { return latest_->last(); }

 private:
  using request = railpass::detail::set_request;
  std::unique_ptr<request> make_request(const mpi::halo_arguments& arguments,
                                        bool in_two_parts) const;
  void exchange_verified();
  void make(const mpi::halo_arguments& arguments);
  [[noreturn]] void fail(const mpi_failure& failure);
  void let_go();
  void leave_behind();

  std::string name_;
  private_communicator comm_;
  MPI_Errhandler users_handler_ = MPI_ERRHANDLER_NULL;
  std::unique_ptr<plan> plan_;
  std::unique_ptr<resources> resources_;
  std::vector<candidate> candidates_;
  version* under_way_ = nullptr;
  std::unique_ptr<request> in_one_, in_two_parts_;
  request* latest_ = nullptr;
  std::optional<railpass::detail::set_call> call_;  // between begin and end
  bool failed_ = false;
};

}  // namespace railpass::internal::halo
