// SPDX-License-Identifier: BSL-1.0
//
// Values for tests of the Boost.MPI facade: with an MPI datatype of the library, with one of their
// own, and without; each with an operation that is associative and does not commute.
#pragma once

#include "railpass/mpi.hpp"

#include <boost/mpi/communicator.hpp>
#include <boost/mpi/datatype.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>

#include <ostream>
#include <string>
#include <vector>

namespace railpass {

/// With an MPI datatype.
struct affine {
  int factor = 1, offset = 0;
  bool operator==(const affine&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& factor& offset;
  }
};

/// Without an MPI datatype.
struct particle {
  std::string name;
  std::vector<double> history;
  bool operator==(const particle&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& name& history;
  }
};

inline std::ostream& operator<<(std::ostream& out, const affine& a) {
  return out << a.factor << "x+" << a.offset;
}
inline std::ostream& operator<<(std::ostream& out, const particle& p) {
  return out << p.name << "(" << p.history.size() << ")";
}

/// The i-th value, i >= 0; they differ, and those that are serialised in length, too.
template <class T>
T make(int i);
template <>
inline int make<int>(int i) {
  return 7 * i + 1;
}
template <>
inline affine make<affine>(int i) {
  return {i % 13 + 2, i};
}
template <>
inline std::string make<std::string>(int i) {
  return std::string(std::size_t(i * 5 % 11), char('a' + i % 26)) + std::to_string(i);
}
template <>
inline particle make<particle>(int i) {
  return {make<std::string>(i), std::vector<double>(std::size_t(i % 40), i / 2.0)};
}
template <>
inline std::vector<std::string> make<std::vector<std::string>>(int i) {
  return std::vector<std::string>(std::size_t(i % 4), make<std::string>(i));
}

template <class T>
std::vector<T> make_some(int first, int n) {
  std::vector<T> values;
  for (int i = 0; i < n; ++i) values.push_back(make<T>(first + i));
  return values;
}

struct combine {
  // Composition of linear functions modulo 97.
  affine operator()(const affine& a, const affine& b) const {
    return {a.factor * b.factor % 97, (a.offset * b.factor + b.offset) % 97};
  }
  int operator()(int a, int b) const {
    const affine both = (*this)(affine{a / 97 % 97, a % 97}, affine{b / 97 % 97, b % 97});
    return both.factor * 97 + both.offset;
  }
  std::string operator()(const std::string& a, const std::string& b) const { return a + b; }
  particle operator()(const particle& a, const particle& b) const {
    particle both{a.name + b.name, a.history};
    both.history.insert(both.history.end(), b.history.begin(), b.history.end());
    return both;
  }
};

/// An option by which every call is by another arm, and how often a test makes each call.
inline constexpr policy each("round_robin");
inline constexpr int rounds = 4;

/// A communicator that is tuned from its first call on.
inline boost::mpi::communicator tuned_world() {
  const boost::mpi::communicator all, comm(all, boost::mpi::comm_duplicate);
  mpi::start_tuning(comm);
  return comm;
}

}  // namespace railpass

BOOST_IS_MPI_DATATYPE(railpass::affine)
