// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// What the solver is told: in a file, a line for each field, as grid=[512, 256], or on the command
/// line, which counts more.
struct input {
  std::vector<int> grid{256, 256};  ///< points in each dimension, two or three
  std::vector<int> ranks{};         ///< in each dimension; empty: MPI proposes
  double tolerance = 1e-8;          ///< of the residual, beside the first one
  int iterations = 10000;           ///< at most
  std::string library = "railpass";
  std::string output = "solver.h5";
  int every = 0;  ///< iterations from one checkpoint to the next; 0: only at the end
  bool restart = false;
};

inline void add_fields(CLI::App& app, input& to) {
  app.set_config("--input", "", "file of the options below, without --, as name=value");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.add_option("--grid", to.grid, "points in each of 2 or 3 dimensions")
      ->expected(2, 3)
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--ranks", to.ranks, "ranks in each dimension (default: MPI_Dims_create's)")
      ->expected(2, 3)
      ->check(CLI::PositiveNumber);
  app.add_option("--tolerance", to.tolerance, "of the residual, relative to the first residual")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--iterations", to.iterations, "at most")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--library", to.library, "the library that exchanges sides and sums up")
      ->check(CLI::IsMember({"mpi", "railpass"}))
      ->capture_default_str();
  app.add_option("--output", to.output, "HDF5 file: checkpoint and result")->capture_default_str();
  app.add_option("--every", to.every, "iterations between checkpoints; 0: only at the end")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--restart", to.restart, "go on from the output file");
}

/// Of fields that are right by themselves; empty: nothing is.
inline std::string problem_of(const input& in, int num_ranks) {
  if (in.ranks.empty()) return {};
  if (in.ranks.size() != in.grid.size())
    return "ranks: expected as many numbers as grid has, " + std::to_string(in.grid.size());
  std::int64_t product = 1;
  for (const int n : in.ranks) product *= n;
  if (product != num_ranks)
    return "ranks: expected a product of " + std::to_string(num_ranks) + ", the number of ranks";
  return {};
}
