// SPDX-License-Identifier: BSL-1.0
//
// The solver's state in an HDF5 file: whole arrays, written and read by rank 0, which has one block
// of another rank at a time, so that a run may go on with any number of ranks.
#pragma once

#include "block.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <hdf5.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace checkpoint {

/// What a run goes on from.
template <int D>
struct state {
  MPI_Comm cart = MPI_COMM_NULL;
  typename block<D>::sizes grid{};
  const block<D>& own;
  std::vector<std::pair<const char*, std::vector<double>*>> fields{};
  std::vector<double>& residuals;  ///< before each iteration and after the last one
};

/// Something of HDF5's, closed with this object.
class handle {
 public:
  handle(hid_t id, herr_t (*close)(hid_t), const std::string& expected) : id_(id), close_(close) {
    if (id < 0) throw std::runtime_error(expected);
  }
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  ~handle() { close_(id_); }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

inline void require(bool holds, const std::string& expected) {
  if (!holds) throw std::runtime_error(expected);
}

inline handle space_of(const std::vector<hsize_t>& sizes) {
  return {H5Screate_simple(int(sizes.size()), sizes.data(), nullptr), H5Sclose, "HDF5: no memory"};
}

/// An array in the file, and what rank 0 does with it.
class array {
 public:
  /// A new one, or, without sizes, one that is there.
  array(hid_t file, const std::string& name, const std::vector<hsize_t>& sizes = {})
      : name_(name),
        data_(sizes.empty() ? H5Dopen2(file, name.c_str(), H5P_DEFAULT)
                            : H5Dcreate2(file, name.c_str(), H5T_IEEE_F64LE, space_of(sizes),
                                         H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
              H5Dclose, "expected an array '" + name + "'") {}

  std::vector<hsize_t> sizes() const {
    const handle space(H5Dget_space(data_), H5Sclose, "HDF5: no memory");
    std::vector<hsize_t> n(std::size_t(std::max(0, H5Sget_simple_extent_ndims(space))));
    H5Sget_simple_extent_dims(space, n.data(), nullptr);
    return n;
  }
  /// The part of it that begins at `first` from or to memory without gaps.
  void write(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
             const double* from) {
    const handle part = part_of(first, count), memory = space_of(count);
    require(H5Dwrite(data_, H5T_NATIVE_DOUBLE, memory, part, H5P_DEFAULT, from) >= 0,
            "cannot write '" + name_ + "'");
  }
  void read(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
            double* to) const {
    const handle part = part_of(first, count), memory = space_of(count);
    require(H5Dread(data_, H5T_NATIVE_DOUBLE, memory, part, H5P_DEFAULT, to) >= 0,
            "cannot read '" + name_ + "'");
  }

 private:
  handle part_of(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count) const {
    const hid_t space = H5Dget_space(data_);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr);
    return {space, H5Sclose, "HDF5: no memory"};
  }

  std::string name_;
  handle data_;
};

/// What is wrong on rank 0 is an error on all ranks, so that they end together. Collective.
inline void share(MPI_Comm comm, const std::string& path, const std::string& problem) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), "%s", problem.c_str());
  MPI_Bcast(text.data(), int(text.size()), MPI_CHAR, 0, comm);
  if (text[0]) throw std::runtime_error(path + ": " + text.data());
}

/// What `work` throws, as text.
template <class Work>
std::string problem_of(const Work& work) {
  try {
    work();
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

template <int D>
std::vector<hsize_t> in_file(const std::array<std::int64_t, std::size_t(D)>& n) {
  return {n.begin(), n.end()};
}

/// The file appears as a whole, or the one before stays. Collective; throws std::runtime_error on
/// all ranks alike.
template <int D>
void save(const std::string& path, const state<D>& s) {
  int rank = 0, size = 0;
  MPI_Comm_rank(s.cart, &rank);
  MPI_Comm_size(s.cart, &size);
  const std::string unfinished = path + ".new";
  std::string problem;
  std::unique_ptr<handle> file;
  if (rank == 0)
    problem = problem_of([&] {
      file = std::make_unique<handle>(
          H5Fcreate(unfinished.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose,
          "cannot be created");
      const std::vector<hsize_t> n{s.residuals.size()};
      array(*file, "residuals", n).write({0}, n, s.residuals.data());
    });
  for (const auto& [name, field] : s.fields) {
    std::vector<double> points = s.own.packed(*field);
    if (rank > 0) MPI_Send(points.data(), int(points.size()), MPI_DOUBLE, 0, 0, s.cart);
    std::unique_ptr<array> to;
    for (int from = 0; rank == 0 && from < size; ++from) {
      const block<D> its(s.cart, from, s.grid);
      points.resize(its.count);
      if (from > 0)
        MPI_Recv(points.data(), int(its.count), MPI_DOUBLE, from, 0, s.cart, MPI_STATUS_IGNORE);
      if (!problem.empty()) continue;  // the others' blocks are on their way all the same
      problem = problem_of([&, name = name] {
        if (!to) to = std::make_unique<array>(*file, name, in_file<D>(s.grid));
        to->write(in_file<D>(its.first), in_file<D>(its.points), points.data());
      });
    }
  }
  if (rank == 0 && problem.empty())
    problem = problem_of([&] {
      require(H5Fflush(*file, H5F_SCOPE_GLOBAL) >= 0, "cannot be written");
      file.reset();
      const int written = open(unfinished.c_str(), O_RDONLY);
      const bool on_disk = written >= 0 && fsync(written) == 0;
      close(written);
      require(on_disk && std::rename(unfinished.c_str(), path.c_str()) == 0, "cannot be written");
    });
  share(s.cart, path, problem);
}

/// Into a state of the same grid. Collective; throws std::runtime_error on all ranks alike.
template <int D>
void load(const std::string& path, const state<D>& s) {
  int rank = 0, size = 0;
  MPI_Comm_rank(s.cart, &rank);
  MPI_Comm_size(s.cart, &size);
  std::unique_ptr<handle> file;
  std::vector<std::unique_ptr<array>> arrays;
  std::string problem;
  if (rank == 0)
    problem = problem_of([&] {
      file = std::make_unique<handle>(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose,
                                      "expected an HDF5 file of this program");
      const array residuals(*file, "residuals");
      const std::vector<hsize_t> n = residuals.sizes();
      require(n.size() == 1 && n[0] > 0, "residuals: expected a list");
      s.residuals.resize(n[0]);
      residuals.read({0}, n, s.residuals.data());
      for (const auto& [name, field] : s.fields) {
        arrays.push_back(std::make_unique<array>(*file, name));
        require(arrays.back()->sizes() == in_file<D>(s.grid),
                std::string(name) + ": expected as many points as grid has");
      }
    });
  share(s.cart, path, problem);
  for (std::size_t f = 0; f < s.fields.size(); ++f) {
    std::vector<double> points(s.own.count);
    for (int to = size - 1; rank == 0 && to >= 0; --to) {
      const block<D> its(s.cart, to, s.grid);
      points.assign(its.count, 0);
      if (problem.empty())
        problem = problem_of(
            [&] { arrays[f]->read(in_file<D>(its.first), in_file<D>(its.points), points.data()); });
      if (to > 0) MPI_Send(points.data(), int(its.count), MPI_DOUBLE, to, 0, s.cart);
    }
    if (rank > 0)
      MPI_Recv(points.data(), int(points.size()), MPI_DOUBLE, 0, 0, s.cart, MPI_STATUS_IGNORE);
    s.own.unpack(points, *s.fields[f].second);
  }
  share(s.cart, path, problem);
  auto n = std::int64_t(s.residuals.size());
  MPI_Bcast(&n, 1, MPI_INT64_T, 0, s.cart);
  s.residuals.resize(std::size_t(n));
  MPI_Bcast(s.residuals.data(), int(n), MPI_DOUBLE, 0, s.cart);
}

}  // namespace checkpoint
