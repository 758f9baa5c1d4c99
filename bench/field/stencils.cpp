// SPDX-License-Identifier: BSL-1.0
//
// Exchanges of a block's faces, from field to field, in ways that programs choose from today, and
// by railpass: MPI's neighbourhood collectives, MPI Advance's where it was found (its fixed
// choices), railpass::halo_exchange, and the tuned neighbourhood collective. One line of JSON on
// rank 0.
//
//     mpirun -n 8 field_stencils DIMENSIONS LENGTH ROUNDS CALLS
//
// LENGTH elements of 8 bytes in each dimension of a rank's block. What railpass learns comes first;
// then all ways take turns in an order drawn for each round, CALLS calls in a row, timed by the
// slowest rank. What comes is compared with what must.
#include "railpass/base/statistics.hpp"
#include "railpass/halo_exchange.hpp"
#include "railpass/mpi.hpp"
#include "railpass/select/policy/random.hpp"

#ifdef RAILPASS_HAS_MPI_ADVANCE
#include <locality_aware.h>
#endif

#include <nlohmann/json.hpp>

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace railpass;
using nlohmann::ordered_json;

constexpr int most_learning_calls = 2000;

int rank_here() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int ranks_here() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// A rank's block of `length` in each of D dimensions with a layer of the neighbours' around it, on
/// a grid that is not periodic: no two messages go between the same two ranks.
template <int D>
class block {
 public:
  explicit block(std::int64_t length) : length_(length), side_(length + 2) {
    std::array<int, D> shape{}, open{};
    MPI_Dims_create(ranks_here(), D, shape.data());
    shape_ = shape;
    MPI_Cart_create(MPI_COMM_WORLD, D, shape.data(), open.data(), 0, &grid_);
    for (int k = 0; k < D; ++k)
      for (const int step : {-1, 1}) {
        int from = 0, to = 0;
        MPI_Cart_shift(grid_, k, step, &from, &to);
        if (to != MPI_PROC_NULL) sides_.push_back({k, step, to});
      }
    field_.resize(std::size_t(power(side_, D)));
    face_ = std::size_t(power(length_, D - 1));
    out_.resize(face_ * sides_.size());
    in_.resize(out_.size());
    for (const side& s : sides_) neighbors_.push_back(s.rank);
    counts_.assign(sides_.size(), int(face_));
    for (std::size_t i = 0; i < sides_.size(); ++i) places_.push_back(int(i * face_));
    // As each message's place is that of the rank that it goes to, or comes from.
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, int(neighbors_.size()), neighbors_.data(),
                                   MPI_UNWEIGHTED, int(neighbors_.size()), neighbors_.data(),
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph_);
    for (const side& s : sides_) {
      sent_.push_back(layer(s, false));
      received_.push_back(layer(s, true));
    }
    ones_.assign(sides_.size(), 1);
    zeros_.assign(sides_.size(), 0);
  }
  block(const block&) = delete;
  block& operator=(const block&) = delete;
  ~block() {
    for (auto* types : {&sent_, &received_})
      for (MPI_Datatype& t : *types) MPI_Type_free(&t);
    MPI_Comm_free(&graph_);
    MPI_Comm_free(&grid_);
  }

  double* field() { return field_.data(); }
  std::array<int, D> shape() const { return shape_; }
  std::int64_t length() const { return length_; }
  MPI_Comm graph() const { return graph_; }
  const std::vector<int>& neighbors() const { return neighbors_; }
  const int* counts() const { return counts_.data(); }
  const int* places() const { return places_.data(); }
  const double* out() const { return out_.data(); }
  double* in() { return in_.data(); }

  void pack() {
    double* to = out_.data();
    for (const side& s : sides_)
      for_rows(s, false, [&](double* row, std::int64_t n, std::int64_t stride) {
        for (std::int64_t i = 0; i < n; ++i) *to++ = row[i * stride];
      });
  }
  void unpack() {
    const double* from = in_.data();
    for (const side& s : sides_)
      for_rows(s, true, [&](double* row, std::int64_t n, std::int64_t stride) {
        for (std::int64_t i = 0; i < n; ++i) row[i * stride] = *from++;
      });
  }
  void exchange_by_datatypes() {
    MPI_Neighbor_alltoallw(field_.data(), ones_.data(), zeros_.data(), sent_.data(), field_.data(),
                           ones_.data(), zeros_.data(), received_.data(), graph_);
  }

  /// Elements get a value by rank and place; those of the neighbours a wrong one.
  void reset() {
    for (std::size_t i = 0; i < field_.size(); ++i) field_[i] = value(rank_here(), i);
    for (const side& s : sides_)
      for_rows(s, true, [](double* row, std::int64_t n, std::int64_t stride) {
        for (std::int64_t i = 0; i < n; ++i) row[i * stride] = -1;
      });
  }
  bool is_right() {
    bool right = true;
    for (const side& s : sides_) {
      // Here is the neighbour's opposite layer, the block's length further on.
      const std::int64_t shift = s.step * length_ * stride_of(s.dimension);
      for_rows(s, true, [&](const double* row, std::int64_t n, std::int64_t stride) {
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t at = row + i * stride - field_.data();
          right = right && row[i * stride] == value(s.rank, std::size_t(at - shift));
        }
      });
    }
    return right;
  }

 private:
  struct side {
    int dimension, step, rank;
  };

  static std::int64_t power(std::int64_t base, int n) {
    std::int64_t result = 1;
    while (n-- > 0) result *= base;
    return result;
  }
  static double value(int rank, std::size_t place) { return 1e8 * rank + double(place); }
  std::int64_t stride_of(int dimension) const { return power(side_, D - 1 - dimension); }

  // The first index in the side's dimension: the outermost own layer, or the neighbour's.
  std::int64_t first(const side& s, bool theirs) const {
    if (theirs) return s.step < 0 ? 0 : length_ + 1;
    return s.step < 0 ? 1 : length_;
  }
  // Work on each row of a layer: its elements lie `stride` apart.
  template <class Work>
  void for_rows(const side& s, bool theirs, const Work& work) {
    const int inner = s.dimension == D - 1 ? D - 2 : D - 1;
    const std::int64_t base = first(s, theirs) * stride_of(s.dimension) + stride_of(inner);
    std::int64_t rows = 1;
    if constexpr (D == 3) rows = length_;
    const int outer = 3 - s.dimension - inner;  // of three dimensions
    for (std::int64_t r = 0; r < rows; ++r)
      work(field_.data() + base + (D == 3 ? (r + 1) * stride_of(outer) : 0), length_,
           stride_of(inner));
  }
  MPI_Datatype layer(const side& s, bool theirs) const {
    std::array<int, D> sizes, parts, starts;
    sizes.fill(int(side_));
    parts.fill(int(length_));
    starts.fill(1);
    parts[std::size_t(s.dimension)] = 1;
    starts[std::size_t(s.dimension)] = int(first(s, theirs));
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_subarray(D, sizes.data(), parts.data(), starts.data(), MPI_ORDER_C, MPI_DOUBLE,
                             &type);
    MPI_Type_commit(&type);
    return type;
  }

  std::int64_t length_, side_;
  std::array<int, D> shape_{};
  MPI_Comm grid_ = MPI_COMM_NULL, graph_ = MPI_COMM_NULL;
  std::vector<side> sides_;
  std::vector<double> field_, out_, in_;
  std::size_t face_ = 0;
  std::vector<int> neighbors_, counts_, places_, ones_;
  std::vector<MPI_Aint> zeros_;
  std::vector<MPI_Datatype> sent_, received_;
};

struct way {
  std::string name;
  std::function<void()> exchange;
};

#ifdef RAILPASS_HAS_MPI_ADVANCE
/// MPI Advance's choices, which live as long as they are called.
template <int D>
class advance {
 public:
  explicit advance(block<D>& of) : of_(of) {
    MPIL_Info_init(&info_);
    const auto n = int(of.neighbors().size());
    MPIL_Dist_graph_create_adjacent(MPI_COMM_WORLD, n, of.neighbors().data(), MPI_UNWEIGHTED, n,
                                    of.neighbors().data(), MPI_UNWEIGHTED, info_, 0, &comm_);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      MPIL_Set_alltoallv_neighbor_init_alogorithm(i == 0 ? NEIGHBOR_ALLTOALLV_INIT_STANDARD
                                                         : NEIGHBOR_ALLTOALLV_INIT_LOCALITY);
      MPIL_Neighbor_alltoallv_init(of.out(), of.counts(), of.places(), MPI_DOUBLE, of.in(),
                                   of.counts(), of.places(), MPI_DOUBLE, comm_, info_,
                                   &requests_[i]);
    }
  }
  advance(const advance&) = delete;
  advance& operator=(const advance&) = delete;
  ~advance() {
    for (MPIL_Request*& r : requests_) MPIL_Request_free(&r);
    MPIL_Comm_free(&comm_);
    MPIL_Info_free(&info_);
  }

  void add_to(std::vector<way>& ways) {
    for (const bool near : {false, true}) {
      const std::string kind = near ? "locality-aware" : "standard";
      ways.push_back({"MPI Advance, " + kind, [this, near] {
                        MPIL_Set_alltoallv_neighbor_alogorithm(near ? NEIGHBOR_ALLTOALLV_LOCALITY
                                                                    : NEIGHBOR_ALLTOALLV_STANDARD);
                        of_.pack();
                        MPIL_Neighbor_alltoallv(of_.out(), of_.counts(), of_.places(), MPI_DOUBLE,
                                                of_.in(), of_.counts(), of_.places(), MPI_DOUBLE,
                                                comm_);
                        of_.unpack();
                      }});
      ways.push_back({"MPI Advance, " + kind + ", persistent", [this, near] {
                        of_.pack();
                        MPIL_Start(requests_[near]);
                        MPIL_Wait(requests_[near], MPI_STATUS_IGNORE);
                        of_.unpack();
                      }});
    }
  }

 private:
  block<D>& of_;
  MPIL_Info* info_ = nullptr;
  MPIL_Comm* comm_ = nullptr;
  std::array<MPIL_Request*, 2> requests_{};
};
#else
template <int D>
struct advance {
  explicit advance(const block<D>&) {}
  void add_to(std::vector<way>&) const {}
};
#endif

/// Seconds per call, of the slowest rank.
double seconds_of(const way& w, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double began_s = MPI_Wtime();
  for (int i = 0; i < calls; ++i) w.exchange();
  double took_s = (MPI_Wtime() - began_s) / calls;
  MPI_Allreduce(MPI_IN_PLACE, &took_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return took_s;
}

template <int D>
ordered_json run(std::int64_t length, int rounds, int calls) {
  block<D> of(length);
  advance<D> other(of);
  std::vector<way> ways{{"MPI_Neighbor_alltoallw, datatypes", [&] { of.exchange_by_datatypes(); }},
                        {"MPI_Neighbor_alltoallv, packed", [&] {
                           of.pack();
                           MPI_Neighbor_alltoallv(of.out(), of.counts(), of.places(), MPI_DOUBLE,
                                                  of.in(), of.counts(), of.places(), MPI_DOUBLE,
                                                  of.graph());
                           of.unpack();
                         }}};
  other.add_to(ways);
  const std::size_t num_others = ways.size();
  ways.push_back({"railpass::mpi::neighbor_all_to_allv, packed", [&] {
                    of.pack();
                    mpi::neighbor_all_to_allv(of.out(), of.counts(), of.places(), MPI_DOUBLE,
                                              of.in(), of.counts(), of.places(), MPI_DOUBLE,
                                              of.graph());
                    of.unpack();
                  }});
  const cartesian<D> grid(MPI_COMM_WORLD, extents<D>(of.shape()));
  extents<D> interior{};
  for (int k = 0; k < D; ++k) interior[k] = length;
  halo_exchange<D> halo(grid, of.field(), interior, 1);
  ways.push_back({"railpass::halo_exchange", [&] { halo(); }});

  int right = 1;
  for (const way& w : ways) {
    of.reset();
    w.exchange();
    if (!of.is_right()) right = 0;
  }
  MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!right) throw error("an exchange brought something wrong");

  // Until the exchange has settled, and the neighbourhood collective as long.
  int learning = 0;
  double learning_s = 0;
  while (learning < most_learning_calls && halo.winner().empty()) {
    learning_s += 50 * seconds_of(ways.back(), 50);
    learning += 50;
  }
  const double neighbors_learning_s =  // none if a version is pinned
      learning > 0 ? learning * seconds_of(ways[num_others], learning) : 0;

  std::vector<std::vector<double>> times(ways.size());
  std::vector<std::size_t> order(ways.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  select::random_stream random(11);
  for (int round = 0; round < rounds; ++round) {
    random.shuffle(order);
    for (const std::size_t w : order) times[w].push_back(seconds_of(ways[w], calls));
  }
  ordered_json of_ways = ordered_json::object();
  for (std::size_t w = 0; w < ways.size(); ++w) of_ways[ways[w].name] = times[w];
  return {{"dimensions", D},
          {"length", length},
          {"ranks", ranks_here()},
          {"grid", of.shape()},
          {"seconds", of_ways},
          {"learning",
           {{"calls", learning}, {"halo_s", learning_s}, {"neighbor_s", neighbors_learning_s}}},
          {"winner", halo.winner()}};
}

int number(const char* text, int most) {
  char* end = nullptr;
  const long n = std::strtol(text, &end, 10);
  if (*end || n < 1 || n > most)
    throw error("expected a number from 1 to " + std::to_string(most) + ", got " + text);
  return int(n);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int code = 0;
  try {
    if (argc != 5) throw error("expected DIMENSIONS LENGTH ROUNDS CALLS");
    const int dimensions = number(argv[1], 3), length = number(argv[2], 4096),
              rounds = number(argv[3], 10000), calls = number(argv[4], 10000);
    if (dimensions < 2) throw error("expected 2 or 3 dimensions");
    const ordered_json found =
        dimensions == 2 ? run<2>(length, rounds, calls) : run<3>(length, rounds, calls);
    if (rank_here() == 0) std::cout << found.dump() << '\n';
  } catch (const std::exception& problem) {
    std::cerr << "field_stencils: " << problem.what() << '\n';
    code = 1;
  }
  MPI_Finalize();
  return code;
}
