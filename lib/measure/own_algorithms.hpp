// SPDX-License-Identifier: BSL-1.0
//
// The MPI library's own algorithms, forced through its control variables (MPI_T).
#pragma once

#include "collectives/collective.hpp"
#include "lib/libraries/library.hpp"
#include "lib/measure/job.hpp"
#include "models/samples.hpp"

#include <mpi.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace railpass::internal::measure {

/// The path of the MPI library's file that this process uses.
std::string file_of_mpi_library();
/// The mark of the MPI library that this process uses, as fingerprint::mpi_library.
std::string mark_of_mpi_library();

/// MPI_T, initialised while it lives.
class tools_interface {
 public:
  tools_interface();
  ~tools_interface();
  tools_interface(const tools_interface&) = delete;
  tools_interface& operator=(const tools_interface&) = delete;
};

/// An integer control variable of the MPI library.
class control_variable {
 public:
  /// Throws error if the MPI library has no such integer variable, or does not let it be written.
  explicit control_variable(const std::string& name);
  ~control_variable();
  control_variable(const control_variable&) = delete;
  control_variable& operator=(const control_variable&) = delete;

  void write(int value);
  /// To the value that it had first.
  void restore() { MPI_T_cvar_write(handle_, &initial_); }

 private:
  std::string name_;
  MPI_T_cvar_handle handle_ = MPI_T_CVAR_HANDLE_NULL;
  int initial_ = 0;
};

class own_algorithms {
 public:
  /// To be called before MPI_Init: lets the algorithms be forced later. A library that chooses at
  /// its start takes the algorithm that `arms` name, in calls of `ops`, if it is the only arm.
  static void prepare(const std::vector<std::string>& arms = {},
                      const std::vector<collective>& ops = {});

  /// Collective over MPI_COMM_WORLD. Throws error if railpass cannot force algorithms of this MPI
  /// library.
  explicit own_algorithms(const job& j);

  /// In the library's order; empty if none can be forced. Equal on all ranks.
  const std::vector<own_algorithm>& of(collective op) const { return found_.at(op); }

  /// The algorithms that an arm stands for.
  std::vector<own_algorithm> named(collective op, const libraries::own_arm& arm) const;
  /// Whether this launch can measure the algorithms that `arms` name: a library that chooses at its
  /// start has one algorithm in a launch.
  bool can_force(const std::vector<std::string>& arms) const;

  /// Forces an algorithm while it lives.
  class forced {
   public:
    /// Throws error if the library cannot segment the collective's messages, and segments are
    /// wanted.
    forced(const own_algorithms& all, collective op, const own_algorithm& algorithm,
           std::int64_t segment_bytes);
    ~forced();
    forced(const forced&) = delete;
    forced& operator=(const forced&) = delete;

   private:
    control_variable& algorithm_;
    control_variable* segment_;
  };

  /// A duplicate of MPI_COMM_WORLD for calls with an algorithm. It returns errors. Collective.
  MPI_Comm communicator(collective op, const own_algorithm& algorithm,
                        std::int64_t segment_bytes) const;
  /// Must live during each call on such a communicator; null if the communicator remembers.
  std::unique_ptr<forced> during_call(collective op, const own_algorithm& algorithm,
                                      std::int64_t segment_bytes) const;

  /// The algorithms that `all` does not stand for, and their known faults. Equal on all ranks.
  const std::map<std::pair<collective, std::string>, std::string>& left_out() const {
    return left_out_;
  }

  bool has_segments(collective op) const { return segment_variables_.contains(op); }

 private:
  std::string list_on_this_rank(const job& j) const;

  tools_interface tools_;
  const libraries::mpi_library* library_ = nullptr;
  std::map<collective, libraries::algorithm_variable> described_;  // of what can be forced
  std::map<collective, std::vector<own_algorithm>> found_;
  std::map<std::pair<collective, std::string>, std::string> left_out_;
  // Written although the object is not changed: they belong to the MPI library.
  mutable std::map<collective, control_variable> variables_, segment_variables_;
};

}  // namespace railpass::internal::measure
