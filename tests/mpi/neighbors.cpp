// SPDX-License-Identifier: BSL-1.0
//
// Neighbour collectives: every version of every function on grids with extents of 1, 2 and more,
// periodic or not, and on random graphs with loops and multiple edges. The test compares the whole
// receive buffer with the result of the MPI library's own call, byte for byte, and with the sent
// data as far as the MPI standard defines the order.
#include "lib/communicator/communicator_state.hpp"
#include "lib/sets/neighbor_versions.hpp"
#include "railpass/mpi.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/records.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

constexpr int calls_before_tuning = 8;

/// Returns errors on MPI_COMM_WORLD, on which MPI libraries raise errors without a communicator.
class returned_errors {
 public:
  returned_errors() {
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  ~returned_errors() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before_);
    MPI_Errhandler_free(&before_);
  }
  returned_errors(const returned_errors&) = delete;
  returned_errors& operator=(const returned_errors&) = delete;

 private:
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

// ---- topologies

struct topology {
  std::string name;
  MPI_Comm comm = MPI_COMM_NULL;
};

// With threads, the internal communicator cannot be created inside a collective.
void make_base() { mpi::start_tuning(MPI_COMM_WORLD); }

MPI_Comm grid(const std::vector<int>& extents, const std::vector<int>& periods) {
  make_base();
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, int(extents.size()), extents.data(), periods.data(), 0, &comm);
  return comm;
}

// All ranks draw the same edges; each rank lists its own edges in an order of its own.
MPI_Comm random_graph(std::uint32_t seed, double edges_per_rank) {
  make_base();
  int rank = 0, p = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &p);
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> some(0, p - 1);
  std::vector<int> from, to;
  for (int e = 0; e < int(edges_per_rank * p); ++e) {
    const int a = some(random), b = some(random);
    const int times = some(random) % 3 == 0 ? 3 : 1;
    for (int t = 0; t < times; ++t) {
      if (a == rank) to.push_back(b);
      if (b == rank) from.push_back(a);
    }
  }
  std::mt19937 own(seed + 1000u * std::uint32_t(rank + 1));
  std::ranges::shuffle(from, own);
  std::ranges::shuffle(to, own);
  from.reserve(1), to.reserve(1);  // some MPI libraries reject null pointers
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, int(from.size()), from.data(), MPI_UNWEIGHTED,
                                 int(to.size()), to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &comm);
  return comm;
}

// Each rank names the edges of the next rank, so that MPI must redistribute them. Open MPI uses
// tags -50 and -51 of the communicator for that. Its nonblocking collectives (two to four in each
// call that creates a communicator) reach these tags after 23 calls, so MPI hangs now and then
// unless the communicator is new.
MPI_Comm distributed_graph() {
  const communicator unused = communicator::duplicate_of_world();
  int rank = 0, p = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &p);
  const int source = (rank + 1) % p, degree = 5;
  const int to[degree] = {(source + 1) % p, source, (source + 2) % p, (source + 1) % p, source};
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Dist_graph_create(unused, 1, &source, &degree, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  return comm;
}

// Symmetric, because the graph must contain all ranks' neighbours.
MPI_Comm old_graph() {
  int p = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &p);
  std::vector<int> ends, edges;
  for (int r = 0; r < p; ++r) {
    for (const int n : {(r + 1) % p, r, (r + p - 1) % p, (r + 1) % p, (r + p - 1) % p})
      edges.push_back(n);
    ends.push_back(int(edges.size()));
  }
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Graph_create(MPI_COMM_WORLD, p, ends.data(), edges.data(), 0, &comm);
  return comm;
}

std::vector<topology> all_topologies() {
  int p = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &p);
  std::vector<topology> all;
  for (const int periodic : {0, 1}) {
    const std::string suffix = periodic ? " periodic" : "";
    all.push_back({"line" + suffix, grid({p}, {periodic})});
    if (p > 4 && !periodic) continue;  // with few cores these would take minutes
    all.push_back({"flat" + suffix, grid({1, p, 1}, {periodic, 1 - periodic, periodic})});
    if (p % 2 == 0) all.push_back({"two rows" + suffix, grid({2, p / 2}, {periodic, periodic})});
    std::vector<int> extents(3, 0);
    MPI_Dims_create(p, 3, extents.data());
    all.push_back({"cuboid" + suffix, grid(extents, {periodic, periodic, periodic})});
  }
  for (const std::uint32_t seed : {1u, 2u, 3u})
    if (p <= 4 || seed == 1)
      all.push_back({"graph " + std::to_string(seed), random_graph(seed, 2.5)});
  all.push_back({"sparse graph", random_graph(7, 0.5)});
  all.push_back({"distributed graph", distributed_graph()});
  all.push_back({"old graph", old_graph()});
  return all;
}

// ---- data

// The same ints in three descriptions: pairs of ints, with and without holes, or single ints.
class datatypes {
 public:
  datatypes() {
    MPI_Type_contiguous(2, MPI_INT, &all_[1]);
    MPI_Datatype reversed = MPI_DATATYPE_NULL;
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {8, 0};
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &reversed);
    MPI_Type_create_resized(reversed, -4, 16, &all_[2]);
    MPI_Type_free(&reversed);
    MPI_Type_commit(&all_[1]);
    MPI_Type_commit(&all_[2]);
  }
  ~datatypes() {
    MPI_Type_free(&all_[1]);
    MPI_Type_free(&all_[2]);
  }
  datatypes(const datatypes&) = delete;
  datatypes& operator=(const datatypes&) = delete;

  MPI_Datatype operator[](int layout) const { return all_[layout]; }
  static int elements(int layout, int num_pairs) { return layout == 0 ? 2 * num_pairs : num_pairs; }
  static int extent_bytes(int layout) { return layout == 0 ? 4 : layout == 1 ? 8 : 16; }
  static int pair_bytes(int layout) { return layout == 2 ? 16 : 8; }

 private:
  MPI_Datatype all_[3] = {MPI_INT, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
};

/// One side of a call, with its memory.
struct side {
  std::vector<std::byte> memory;
  int layout = 0;
  int count = 0;  // of each block
  std::vector<int> counts, places;
  std::vector<MPI_Aint> places_bytes;
  std::vector<MPI_Datatype> types;
  std::vector<int> layouts;

  static constexpr int margin_bytes = 16;  // of lower bounds below 0
  std::byte* begin() { return memory.data() + margin_bytes; }
};

// Blocks of `pairs` pairs each, in any order, with gaps.
side make_side(const std::vector<int>& pairs, const datatypes& types, bool mixed, bool in_order,
               std::mt19937& own) {
  side s;
  const std::size_t n = pairs.size();
  s.layout = int(own() % 3);
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  if (!in_order) std::ranges::shuffle(order, own);
  // Open MPI rejects null pointers for tables, even if the tables are empty.
  s.counts.resize(n + 1), s.places.resize(n + 1), s.places_bytes.resize(n + 1);
  s.types.resize(n + 1, MPI_INT);
  s.layouts.assign(n, s.layout);
  int bytes = 0;
  for (const std::size_t i : order) {
    if (mixed) s.layouts[i] = int(own() % 3);
    const int layout = s.layouts[i];
    s.types[i] = types[layout];
    s.counts[i] = datatypes::elements(layout, pairs[i]);
    if (!in_order) bytes += 16 * int(own() % 2);
    s.places_bytes[i] = bytes;
    s.places[i] = bytes / datatypes::extent_bytes(layout);
    bytes += pairs[i] * datatypes::pair_bytes(layout);
    bytes = (bytes + 15) / 16 * (in_order ? 0 : 16) + (in_order ? bytes : 0);
  }
  s.count = n > 0 ? s.counts[0] : 0;
  s.memory.resize(std::size_t(bytes + 2 * side::margin_bytes));
  return s;
}

int first_int_of(const side& s, std::size_t i) {
  // The first int of an element with holes comes second.
  const int offset = s.layouts[i] == 2 ? 8 : 0;
  int value = 0;
  std::memcpy(&value, s.memory.data() + side::margin_bytes + s.places_bytes[i] + offset, 4);
  return value;
}

// The lengths of a call in pairs of ints, known to both ends. If several edges join two ranks, the
// MPI library decides which edges match.
struct lengths {
  neighbor_function f;
  std::uint32_t seed;
  int of(int from, int to) const {
    using enum neighbor_function;
    std::uint32_t x = seed;
    if (f != all_to_all && f != all_gather) x += 31u * std::uint32_t(from);
    if (f == all_to_allv || f == all_to_allw) x += 17u * std::uint32_t(to);
    x = x * 2654435761u >> 16;
    const int choices[] = {0, 1, 3, 40, 1500};
    return choices[x % 5];
  }
};

int call(neighbor_function f, bool tuned, side& s, side& r, const datatypes& types, MPI_Comm comm) {
  std::byte *const in = s.begin(), *const out = r.begin();
  const MPI_Datatype st = types[s.layout], rt = types[r.layout];
  using enum neighbor_function;
  switch (f) {
    case all_to_all:
      return (tuned ? mpi::neighbor_all_to_all : MPI_Neighbor_alltoall)(in, s.count, st, out,
                                                                        r.count, rt, comm);
    case all_to_allv:
      return (tuned ? mpi::neighbor_all_to_allv : MPI_Neighbor_alltoallv)(
          in, s.counts.data(), s.places.data(), st, out, r.counts.data(), r.places.data(), rt,
          comm);
    case all_to_allw:
      return (tuned ? mpi::neighbor_all_to_allw : MPI_Neighbor_alltoallw)(
          in, s.counts.data(), s.places_bytes.data(), s.types.data(), out, r.counts.data(),
          r.places_bytes.data(), r.types.data(), comm);
    case all_gather:
      return (tuned ? mpi::neighbor_all_gather : MPI_Neighbor_allgather)(in, s.count, st, out,
                                                                         r.count, rt, comm);
    case all_gatherv:
      return (tuned ? mpi::neighbor_all_gatherv : MPI_Neighbor_allgatherv)(
          in, s.count, st, out, r.counts.data(), r.places.data(), rt, comm);
  }
  return MPI_ERR_INTERN;
}

/// Returns the fault, or an empty text.
std::string try_call(neighbor_function f, MPI_Comm comm, const neighbors& around,
                     const datatypes& types, std::uint32_t seed) {
  using enum neighbor_function;
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const lengths pairs{f, seed};
  std::mt19937 own(seed + 77u * std::uint32_t(rank));
  std::vector<int> sent, received;
  for (const int to : around.destinations) sent.push_back(pairs.of(rank, to));
  for (const int from : around.sources) received.push_back(pairs.of(from, rank));
  const bool gathers = f == all_gather || f == all_gatherv;
  if (gathers) sent = {pairs.of(rank, 0)};
  // Open MPI requires both to be equally long, even if one side is empty, and sends nothing if
  // nothing is to be received.
  if (f == all_to_all && sent.empty()) sent = {pairs.of(0, 0)};
  std::vector<int> places = received;
  if ((f == all_to_all || f == all_gather) && places.empty()) places = {pairs.of(0, 0)};
  side s = make_side(sent, types, f == all_to_allw, f == all_to_all || gathers, own);
  side r = make_side(places, types, f == all_to_allw, f == all_to_all || f == all_gather, own);
  // Each int names its sender and edge.
  for (std::size_t i = 0; i < sent.size(); ++i)
    for (std::size_t b = 0; b < std::size_t(sent[i] * datatypes::pair_bytes(s.layouts[i]));
         b += 4) {
      const int value = 1000 * rank + int(i);
      std::memcpy(s.begin() + s.places_bytes[i] + b, &value, 4);
    }
  std::ranges::fill(r.memory, std::byte{0xee});
  side expected = r;
  if (call(f, false, s, expected, types, comm) != MPI_SUCCESS) return "the MPI library fails";
  if (call(f, true, s, r, types, comm) != MPI_SUCCESS) return "the call fails";
  if (r.memory != expected.memory) return "it differs from the MPI library's";
  for (std::size_t i = 0; i < around.sources.size(); ++i) {
    const int from = around.sources[i];
    if (received[i] == 0) continue;
    const int value = first_int_of(r, i);
    if (from == MPI_PROC_NULL ? value != int(0xeeeeeeee) : value / 1000 != from)
      return "block " + std::to_string(i) + " is not that of rank " + std::to_string(from);
    if (gathers && from != MPI_PROC_NULL && value != 1000 * from) return "a wrong edge";
  }
  return {};
}

/// MPI_Neighbor_alltoallw of MPICH 4.0 loses blocks if the numbers of sources and destinations
/// differ.
bool is_w_broken(MPI_Comm comm, const neighbors& around) {
#ifdef MPICH_VERSION
  int differs = around.sources.size() == around.destinations.size() ? 0 : 1;
  MPI_Allreduce(MPI_IN_PLACE, &differs, 1, MPI_INT, MPI_MAX, comm);
  return differs != 0;
#else
  (void)comm, (void)around;
  return false;
#endif
}

std::vector<neighbor_function> functions_on(MPI_Comm comm, const neighbors& around) {
  using enum neighbor_function;
  if (is_w_broken(comm, around)) return {all_to_all, all_to_allv, all_gather, all_gatherv};
  return {all_to_all, all_to_allv, all_to_allw, all_gather, all_gatherv};
}

tuned_set* set_of(MPI_Comm comm, neighbor_function f) {
  int code = MPI_SUCCESS;
  communicator_state* const state = communicator_state::of(comm, code);
  for (const auto& one : state->sets().sets)
    if (one->name() == name_of(f)) return one.get();
  return nullptr;
}

}  // namespace

TEST_CASE("every version brings what the MPI library's own call brings") {
  const datatypes types;
  std::vector<topology> all = all_topologies();
  for (topology& t : all) {
    const neighbors around = neighbors::of(t.comm);
    const std::vector<neighbor_function> functions = functions_on(t.comm, around);
    for (const std::string_view version : neighbor_version_names) {
      MPI_Comm copy = MPI_COMM_NULL;
      MPI_Comm_dup(t.comm, &copy);
      const communicator comm(copy);
      std::string use;
      for (const neighbor_function f : functions)
        use += (use.empty() ? "" : ",") + std::string(name_of(f)) + ":" + std::string(version);
      mpi::configure(comm, "use", use);
      for (const neighbor_function f : functions) {
        CAPTURE(t.name, version, std::string(name_of(f)));
        std::string problem;
        for (std::uint32_t n = 0; n < calls_before_tuning + 4; ++n)
          if (const std::string found = try_call(f, comm, around, types, 100 * n + 5);
              problem.empty() && !found.empty())
            problem = found + " (call " + std::to_string(n) + ")";
        CHECK(problem == "");
        if (comm.size() < 2) continue;
        const tuned_set* const set = set_of(comm, f);
        CHECK(set != nullptr);
        CHECK((set && neighbor_version_names[std::size_t(set->pinned())] == version));
      }
    }
    MPI_Comm_free(&t.comm);
  }
}

TEST_CASE("versions take turns, and all ranks take the same one") {
  const datatypes types;
  const communicator comm(random_graph(11, 3));
  const neighbors around = neighbors::of(comm);
  const std::vector<neighbor_function> functions = functions_on(comm, around);
  mpi::configure(comm, "policy", "round_robin");
  for (std::uint32_t n = 0; n < 60; ++n)
    for (const neighbor_function f : functions) {
      CAPTURE(n, std::string(name_of(f)));
      CHECK(try_call(f, comm, around, types, 10 * n + 1) == "");
    }
  if (comm.size() < 2 || comm.rank() > 0) return;
  for (const neighbor_function f : functions) {
    select::statistics_dump told;
    set_of(comm, f)->decider().joint().add_statistics(told);
    REQUIRE(told.contexts.size() == 1);
    const auto& context = told.contexts.front();
    CHECK(context.collective == name_of(f));
    CHECK(context.baseline == "native");
    CHECK(context.operation.starts_with("set+shape="));
    CHECK(context.calls == 60 - calls_before_tuning + 1);
    CHECK(std::ranges::count_if(context.arms, [](const auto& a) { return a.calls > 0; }) >= 5);
  }
}

TEST_CASE("ranks that have nothing to do with each other may exchange different lengths") {
  make_base();
  int rank = 0, p = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &p);
  const int partner = (rank ^ 1) < p ? rank ^ 1 : rank;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &partner, MPI_UNWEIGHTED, 1, &partner,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
  const communicator comm(made);
  mpi::configure(comm, "policy", "round_robin");
  const int pair = std::min(rank, partner);
  bool right = true;
  for (int n = 0; n < 60; ++n) {
    const auto exchange = [&](auto call, int sent, int received) {
      const std::vector<int> in(std::size_t(sent), 1000 * rank + n);
      std::vector<int> out(std::size_t(received), -1);
      right = call(in.data(), sent, MPI_INT, out.data(), received, MPI_INT, comm) == MPI_SUCCESS &&
              out == std::vector<int>(std::size_t(received), 1000 * partner + n) && right;
    };
    exchange(mpi::neighbor_all_to_all, 1 + 100 * pair + n % 3, 1 + 100 * pair + n % 3);
    // A rank may send and receive different amounts, too (but Open MPI requires equal amounts for
    // MPI_Neighbor_alltoall).
    exchange(mpi::neighbor_all_gather, 1 + 100 * rank + n % 3, 1 + 100 * partner + n % 3);
  }
  CHECK(right);
}

TEST_CASE("absolute addresses") {
  int p = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &p);
  const communicator comm(grid({p}, {1}));
  const std::string version = GENERATE("isend_irecv", "send_irecv", "isend_recv", "pairwise");
  mpi::configure(comm, "use", "MPI_Neighbor_alltoallw:" + version);  // MPI's name is known, too
  const int rank = comm.rank();
  int in[2] = {}, out[2] = {};
  MPI_Aint from[2], to[2];
  for (int i = 0; i < 2; ++i) {
    MPI_Get_address(&in[i], &from[i]);
    MPI_Get_address(&out[i], &to[i]);
  }
  const int ones[2] = {1, 1};
  const MPI_Datatype ints[2] = {MPI_INT, MPI_INT};
  bool right = true;
  for (int n = 0; n < 20; ++n) {
    in[0] = in[1] = 100 * rank + n;
    out[0] = out[1] = -1;
    const int code =
        mpi::neighbor_all_to_allw(MPI_BOTTOM, ones, from, ints, MPI_BOTTOM, ones, to, ints, comm);
    right = code == MPI_SUCCESS && out[0] == 100 * ((rank + p - 1) % p) + n &&
            out[1] == 100 * ((rank + 1) % p) + n && right;
  }
  CHECK(right);
  if (const tuned_set* const set = set_of(comm, neighbor_function::all_to_allw))
    CHECK(neighbor_version_names[std::size_t(set->pinned())] == version);
  else
    CHECK(p == 1);  // never tuned
}

TEST_CASE("results are compared with those of the MPI library where that is asked for") {
  const test::records said;
  const datatypes types;
  const communicator comm(random_graph(5, 2));
  const neighbors around = neighbors::of(comm);
  const std::vector<neighbor_function> functions = functions_on(comm, around);
  mpi::configure(comm, "policy", "round_robin");
  mpi::configure(comm, "verify", "on");
  for (std::uint32_t n = 0; n < 40; ++n)
    for (const neighbor_function f : functions)
      CHECK(try_call(f, comm, around, types, 10 * n + 3) == "");
  CHECK(said.texts.empty());
}

TEST_CASE("blocks that are one element of a datatype without data") {
  const test::records said;
  int p = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &p);
  MPI_Datatype none = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &none);
  MPI_Type_commit(&none);
  const int ones[2] = {1, 1}, places[2] = {0, 1};
  const MPI_Aint places_bytes[2] = {0, 4};
  const MPI_Datatype types[2] = {none, none};
  const int in[2] = {1, 2};
  int out[2] = {3, 4};
  for (const char* verify : {"off", "on"}) {
    const communicator comm(grid({p}, {1}));
    mpi::configure(comm, "policy", "round_robin");
    mpi::configure(comm, "verify", verify);
    bool right = true;
    const auto note = [&](int code) { right = right && code == MPI_SUCCESS; };
    for (int n = 0; n < 40; ++n) {
      note(mpi::neighbor_all_to_all(in, 1, none, out, 1, none, comm));
      note(mpi::neighbor_all_to_allv(in, ones, places, none, out, ones, places, none, comm));
      note(mpi::neighbor_all_to_allw(in, ones, places_bytes, types, out, ones, places_bytes, types,
                                     comm));
      note(mpi::neighbor_all_gather(in, 1, none, out, 1, none, comm));
      note(mpi::neighbor_all_gatherv(in, 1, none, out, ones, places, none, comm));
    }
    CHECK(right);
  }
  CHECK((out[0] == 3 && out[1] == 4));
  CHECK(said.texts.empty());
  MPI_Type_free(&none);
}

TEST_CASE("settings leave calls to the MPI library") {
  const datatypes types;
  struct setting {
    const char *name, *value;
    bool has_set;
  };
  for (const setting s :
       {setting{"enable", "0", false}, setting{"collectives", "broadcast", false},
        setting{"collectives", "neighbor_all_gather", true}, setting{"reproducible", "on", true}}) {
    CAPTURE(s.name, s.value);
    const test::records said;
    const communicator comm(random_graph(5, 2));
    const neighbors around = neighbors::of(comm);
    mpi::configure(comm, s.name, s.value);
    for (std::uint32_t n = 0; n < 20; ++n)
      CHECK(try_call(neighbor_function::all_gather, comm, around, types, n) == "");
    if (comm.size() > 1)
      CHECK((set_of(comm, neighbor_function::all_gather) != nullptr) == s.has_set);
    CHECK(said.texts.empty());
  }
}

TEST_CASE("a communicator without topology gets the MPI library's error") {
  const returned_errors guard;
  const communicator comm = communicator::duplicate_of_world();
  int in = 0, out[4] = {};
  for (int n = 0; n < 12; ++n) {
    int expected = 0, found = 0;
    MPI_Error_class(MPI_Neighbor_allgather(&in, 1, MPI_INT, out, 1, MPI_INT, comm), &expected);
    MPI_Error_class(mpi::neighbor_all_gather(&in, 1, MPI_INT, out, 1, MPI_INT, comm), &found);
    CHECK(expected != MPI_SUCCESS);
    CHECK(found == expected);
  }
}

TEST_CASE("a message that is too long is an error, nobody hangs, and the ranks recover") {
  const test::records said;
  int p = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &p);
  if (p < 2) return;
  const returned_errors guard;
  for (const char* version : {"isend_irecv", "send_irecv", "isend_recv", "pairwise"}) {
    CAPTURE(version);
    const communicator comm(grid({p}, {1}));
    mpi::configure(comm, "use", std::string("neighbor_all_to_allv:") + version);
    const int rank = comm.rank();
    const int counts[2] = {2, 2}, fewer[2] = {1, 1}, places[2] = {0, 2};
    int in[4] = {rank, rank, rank, rank}, out[4];
    const auto exchange = [&](const int* received) {
      return mpi::neighbor_all_to_allv(in, counts, places, MPI_INT, out, received, places, MPI_INT,
                                       comm);
    };
    for (int n = 0; n < calls_before_tuning + 2; ++n) CHECK(exchange(counts) == MPI_SUCCESS);
    MPI_Barrier(comm);  // a rank a few calls behind would hear of the failure there
    const int code = exchange(rank == 0 ? fewer : counts);
    if (rank == 0) {
      int found = 0;
      MPI_Error_class(code, &found);
      CHECK(found == MPI_ERR_TRUNCATE);
    }
    // Calls may fail until the next synchronisation reports the failure to all ranks. Afterwards
    // they go to the MPI library.
    int failures = 1;
    for (int n = 0; n < 2000 && failures > 0; ++n) {
      std::ranges::fill(out, -1);
      failures = exchange(counts) == MPI_SUCCESS ? 0 : 1;
      if (failures == 0) CHECK((out[0] == (rank + p - 1) % p && out[2] == (rank + 1) % p));
      MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    CHECK(failures == 0);
  }
}
