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
#include <optional>
#include <string>
#include <vector>

namespace railpass::internal::measure {

/// The path of the MPI library's file that this process uses.
std::string file_of_mpi_library();

/// An integer control variable.
class control_variable {
 public:
  /// Throws error if the MPI library has no such integer variable, or does not let it be written.
  explicit control_variable(const std::string& name);
  ~control_variable();
  control_variable(const control_variable&) = delete;
  control_variable& operator=(const control_variable&) = delete;

  void write(int value);
  const std::string& description() const { return description_; }
  const std::vector<std::pair<int, std::string>>& values() const { return values_; }

 private:
  std::string name_, description_;
  std::vector<std::pair<int, std::string>> values_;
  MPI_T_cvar_handle handle_ = MPI_T_CVAR_HANDLE_NULL;
};

class own_algorithms {
 public:
  /// To be called before MPI_Init: lets the algorithms be forced later.
  static void prepare();

  /// Collective over MPI_COMM_WORLD. Throws error if railpass cannot force algorithms of this MPI
  /// library.
  explicit own_algorithms(const job& j);
  ~own_algorithms();
  own_algorithms(const own_algorithms&) = delete;
  own_algorithms& operator=(const own_algorithms&) = delete;

  /// In the library's order; empty if none can be forced. Equal on all ranks.
  const std::vector<own_algorithm>& of(collective op) const { return found_.at(op); }

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

  /// A duplicate of MPI_COMM_WORLD that obeys what is forced meanwhile, and returns errors.
  /// Collective.
  MPI_Comm communicator() const;

  bool has_segments(collective op) const { return segment_variables_.contains(op); }

 private:
  const libraries::mpi_library* library_ = nullptr;
  std::map<collective, std::vector<own_algorithm>> found_;
  // Written although the object is not changed: they belong to the MPI library.
  mutable std::map<collective, control_variable> variables_, segment_variables_;
};

}  // namespace railpass::internal::measure
