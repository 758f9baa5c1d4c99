// SPDX-License-Identifier: BSL-1.0
//
// Every algorithm of every collective, compared with the MPI library's result, byte for byte of the
// whole receive buffer. Roots, counts (also 0), datatypes that differ between ranks and sides,
// displacements, operations and in-place calls are random. The requested arm is the arm that ran.
#include "collectives/registry.hpp"
#include "lib/call/call.hpp"
#include "railpass/mpi.hpp"
#include "railpass/rails.hpp"
#include "support/call_railpass.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"
#include "support/host_facts.hpp"
#include "support/seed.hpp"
#include "support/single_copies.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

// A pair of ints in three descriptions with the same signature: two ints, a contiguous pair, and a
// pair in reverse order with holes and a negative lower bound.
enum layout { ints, pairs, holed };
constexpr int num_layouts = 3;

class datatypes {
 public:
  datatypes() {
    MPI_Type_contiguous(2, MPI_INT, &all_[pairs]);
    MPI_Datatype reversed = MPI_DATATYPE_NULL;
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {8, 0};
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &reversed);
    MPI_Type_create_resized(reversed, -4, 16, &all_[holed]);
    MPI_Type_free(&reversed);
    MPI_Type_commit(&all_[pairs]);
    MPI_Type_commit(&all_[holed]);
  }
  ~datatypes() {
    MPI_Type_free(&all_[pairs]);
    MPI_Type_free(&all_[holed]);
  }
  datatypes(const datatypes&) = delete;
  datatypes& operator=(const datatypes&) = delete;
  MPI_Datatype of(layout l) const { return all_[l]; }
  static int elements_of(layout l, int num_pairs) { return l == ints ? 2 * num_pairs : num_pairs; }
  static int extent_bytes(layout l) { return l == ints ? 4 : l == pairs ? 8 : 16; }

 private:
  MPI_Datatype all_[num_layouts] = {MPI_INT, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
};

// Composition of affine maps modulo 251: associative, not commutative.
void compose(void* left, void* right, int* length, MPI_Datatype* type) {
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(*type, &lower, &extent);
  const int second = extent == 16 ? 0 : 4, first = extent == 16 ? 8 : 0;
  for (int i = 0; i < *length; ++i) {
    const auto at = [&](void* memory, int offset) -> int& {
      return *reinterpret_cast<int*>(static_cast<char*>(memory) + i * extent + offset);
    };
    const unsigned a = unsigned(at(left, first)) % 251, b = unsigned(at(left, second)) % 251;
    const unsigned c = unsigned(at(right, first)) % 251, d = unsigned(at(right, second)) % 251;
    at(right, first) = int(a * c % 251);
    at(right, second) = int((a * d + b) % 251);
  }
}

// One rank's part of a call. Generators are in the same state on all ranks.
struct trial {
  call c;
  std::vector<char> send, receive;
  std::vector<int> send_counts, receive_counts, send_places, receive_places;
  std::vector<MPI_Datatype> send_types, receive_types;
  std::int64_t units = 0;  // as eligibility counts them
  bool commutative = true;
  bool compares = true;
  std::size_t compared_bytes = 0;  // 0: all
};

constexpr std::size_t margin = 64;
#ifdef __SANITIZE_ADDRESS__
constexpr int repetitions = 4;  // they make it slow
#else
constexpr int repetitions = 8;
#endif

class generator {
 public:
  generator(unsigned seed, MPI_Comm comm, const datatypes& types, MPI_Op composition)
      : random_(seed), types_(types), composition_(composition) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &p_);
  }

  int below(int n) { return int(random_() % unsigned(n)); }

  trial draw(collective op, MPI_Comm comm) {
    trial t;
    t.c.op = op;
    t.c.comm = comm;
    const promise what = describe(op).what;
    const promise_traits traits = traits_of(op);
    t.c.root = traits.rooted ? below(p_) : 0;
    const bool at_root = rank_ == t.c.root;
    if (what == promise::all_arrive) return t.compares = false, t;
    bool in_place = below(3) == 0 && what != promise::root_to_all;
#ifdef MPICH
    // MPI_Reduce of MPICH 4.0 in place reads invalid memory on 7 and more ranks of a node.
    if (what == promise::reduce_to_root) in_place = false;
#endif
    const bool unequal = describe(op).lengths != block_lengths::equal;
    const int most = below(4) == 0 ? 3000 : 9;
    // From rank i to rank j; rows or columns are equal if only one of i and j matters.
    std::vector<int> lengths(std::size_t(p_) * std::size_t(p_));
    const int same = below(most + 1);
    for (int& n : lengths) n = unequal ? (below(3) == 0 ? 0 : below(most + 1)) : same;
    const auto from_to = [&](int i, int j) { return lengths[std::size_t(i * p_ + j)]; };

    if (traits.reduces) {
      const int kind = below(4);
      // Reductions of MPICH 4.0 write behind their buffers for types with a negative lower bound.
#ifdef MPICH
      const layout l = kind == 0 ? ints : pairs;
#else
      const layout l = kind == 0 ? ints : kind == 3 ? holed : pairs;
#endif
      t.c.operation = kind == 0 ? MPI_SUM : kind == 1 ? MPI_MINLOC : composition_;
      t.c.receive.type = kind == 1 ? MPI_2INT : types_.of(l);
      t.commutative = kind < 2;
      const bool blocks = what == promise::reduce_to_blocks;
      int all = 0;
      for (int k = 0; k < p_; ++k) {
        t.receive_counts.push_back(datatypes::elements_of(l, from_to(0, k)));
        all += t.receive_counts.back();
      }
      if (!blocks) all = t.receive_counts[0];
      t.c.receive.count = t.receive_counts[0];
      t.units = all;
      if (unequal) t.c.receive.counts = t.receive_counts.data();
      t.send = bytes_for(all, l);
      t.receive = bytes_for(all, l);
      const bool mine = in_place && (traits.in_place == in_place_ranks::root ? at_root : true);
      t.c.send.memory = mine ? MPI_IN_PLACE : t.send.data() + margin;
      t.c.receive.memory = t.receive.data() + margin;
      t.compares = what != promise::reduce_to_root || at_root;
      // Data behind the result of a reduce_scatter in place are undefined.
      if (blocks && mine)
        t.compared_bytes =
            margin + std::size_t(t.receive_counts[std::size_t(rank_)] * datatypes::extent_bytes(l));
      return t;
    }

    const bool per_pair = op == collective::all_to_allw;
    // MPI_Allgatherv of Open MPI 4.1 multiplies the send type's size by the receive counts, and
    // hangs if ranks thereby choose different algorithms: here all types have one size.
    // MPI_Allgatherv of MPICH 4.0 sometimes truncates messages on 7 ranks: here all types are
    // equal.
    const bool careful = op == collective::all_gatherv;
    layout send_layout = own_layout(), receive_layout = own_layout();
#ifdef MPICH
    if (careful) send_layout = receive_layout = pairs;
#else
    if (careful) send_layout = std::max(send_layout, pairs);
    if (careful) receive_layout = std::max(receive_layout, pairs);
#endif
    const bool to_blocks = what == promise::root_to_blocks;
    // This rank's outgoing and incoming blocks.
    std::vector<int> out, in;
    for (int k = 0; k < p_; ++k) {
      out.push_back(what == promise::blocks_to_blocks ? from_to(rank_, k)
                    : to_blocks                       ? from_to(0, k)
                                                      : from_to(0, rank_));
      in.push_back(what == promise::blocks_to_blocks ? from_to(k, rank_)
                   : to_blocks                       ? from_to(0, rank_)
                                                     : from_to(0, k));
    }
    lay_out(t.c.send, t.send, out, what == promise::blocks_to_blocks || to_blocks, unequal,
            per_pair, send_layout, t.send_counts, t.send_places, t.send_types);
    lay_out(t.c.receive, t.receive, in,
            what != promise::root_to_blocks && what != promise::root_to_all, unequal, per_pair,
            receive_layout, t.receive_counts, t.receive_places, t.receive_types);
    // all_to_all in place exchanges equal blocks.
    const bool may = traits.in_place != in_place_ranks::none || op == collective::all_to_all;
    const bool mine = in_place && may && (traits.in_place != in_place_ranks::root || at_root);
    if (mine && to_blocks)
      t.c.receive.memory = MPI_IN_PLACE;
    else if (mine)
      t.c.send.memory = MPI_IN_PLACE;
    t.compares = (what != promise::blocks_to_root || at_root) && !(mine && to_blocks);
    for (int k = 0; k < p_; ++k) t.units += from_to(0, k) * 8;
    if (what == promise::root_to_all) t.units = from_to(0, 0) * 8;
    return t;
  }

 private:
  // The layouts of all ranks are drawn, so that the generators stay in step.
  layout own_layout() {
    layout mine = ints;
    for (int r = 0; r < p_; ++r)
      if (const int drawn = below(num_layouts); r == rank_) mine = layout(drawn);
    return mine;
  }
  std::vector<char> bytes_for(int elements, layout l) {
    std::vector<char> memory(2 * margin + std::size_t(elements * datatypes::extent_bytes(l)));
    std::mt19937 own(random_() + unsigned(rank_));
    for (char& byte : memory) byte = char(own() % 7);
    return memory;
  }
  // One block, or blocks of all ranks; with gaps between them and in any order for the v-forms.
  void lay_out(call_side& side, std::vector<char>& memory, const std::vector<int>& lengths,
               bool all, bool unequal, bool per_pair, layout l, std::vector<int>& counts,
               std::vector<int>& places, std::vector<MPI_Datatype>& types) {
    std::vector<int> order(std::size_t(p_), 0);
    for (int k = 0; k < p_; ++k) order[std::size_t(k)] = k;
    if (below(2) == 0) std::shuffle(order.begin(), order.end(), random_);
    const bool gaps = below(2) == 0;
    places.assign(std::size_t(p_), 0);
    int end = 0, longest = 0;
    for (const int k : order) {
      counts.push_back(datatypes::elements_of(l, lengths[std::size_t(counts.size())]));
      longest = std::max(longest, datatypes::elements_of(l, lengths[std::size_t(k)]));
      places[std::size_t(k)] = end;
      end += datatypes::elements_of(l, lengths[std::size_t(k)]) + (gaps ? k % 3 : 0);
    }
    memory = bytes_for(std::max(end, p_ * longest), l);
    side.memory = memory.data() + margin;
    // A rank with one block has its length.
    side.count = counts[0];
    side.type = types_.of(l);
    if (!all || !unequal) return;
    side.counts = counts.data();
    side.displacements = places.data();
    if (!per_pair) return;
    for (int& place : places) place *= datatypes::extent_bytes(l);
    types.assign(std::size_t(p_), types_.of(l));
    side.types = types.data();
  }

  std::mt19937 random_;
  const datatypes& types_;
  MPI_Op composition_;
  int rank_ = 0, p_ = 1;
};

// Points a call at a copy of the receive buffer.
call with_receive(const call& c, std::vector<char>& memory) {
  call other = c;
  if (!c.receive.in_place()) other.receive.memory = memory.data() + margin;
  return other;
}

unsigned agreed_seed(MPI_Comm comm) {
  unsigned seed = railpass::test::new_seed();
  MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, comm);
  return seed;
}

}  // namespace

TEST_CASE("every algorithm of every collective does what the MPI library does") {
  // In reverse order of MPI_COMM_WORLD, which determines the hosts of ranks.
  const auto reversed = [] {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    return comm;
  };
  const communicator world(reversed()), apart(reversed());
  const node_facts hosts = test::facts_of_hosts(world), caches = test::facts_of_caches(world);
  // With rails, ranks of a single host share no memory; with several hosts, each host's ranks do.
  const bool one_host = hosts.num_nodes == 1;
  const bool in_memory = one_host ? !std::getenv("RAILPASS_RAILS") : hosts.most_ranks > 1;
  const bool copies = one_host && in_memory && test::single_copies(world);
  REQUIRE(mpi::start_tuning(world) == MPI_SUCCESS);
  const datatypes types;
  MPI_Op composition = MPI_OP_NULL;
  MPI_Op_create(compose, 0, &composition);
  const unsigned seed = agreed_seed(world);
  INFO("repeat with TEST_SEED=" << seed);
  generator draws(seed, world, types, composition);
  for (const collective op : all_collectives) {
    const std::vector<arm> arms = arms_of(op);
    for (const algorithm* a : all_algorithms) {
      if (a->op != op || (std::getenv("TEST_SHARED_ONLY") && !a->needs.shared_memory)) continue;
      std::vector<arm> mine;
      std::copy_if(arms.begin(), arms.end(), std::back_inserter(mine),
                   [&](const arm& one) { return one.base == a; });
      for (int repetition = 0; repetition < repetitions; ++repetition) {
        const arm& chosen = repetition < repetitions / 2
                                ? mine[0]
                                : mine[std::size_t(draws.below(int(mine.size())))];
        const std::string name = name_of(chosen);
        trial t = draws.draw(op, world);
        std::vector<char> theirs = t.receive;
        const call native = with_receive(t.c, theirs);
        CAPTURE(name_of(op), name, repetition, t.c.root, t.units, t.c.send.in_place(),
                t.c.receive.in_place(), t.commutative);
        CHECK(call_railpass(t.c, collect(use(name))) == MPI_SUCCESS);
        call same = native;
        same.comm = apart;
        CHECK(run_native(same) == MPI_SUCCESS);
        if (t.compares) {
          const std::size_t bytes = t.compared_bytes ? t.compared_bytes : t.receive.size();
          const bool equal = std::memcmp(t.receive.data(), theirs.data(), bytes) == 0;
          CHECK(equal);
        }
        const bool always = describe(op).lengths == block_lengths::of_pair ||
                            describe(op).what == promise::all_arrive;
        if (world.size() < 2 || (t.units == 0 && !always)) continue;
        const bool native_in_place =
            always && describe(op).what == promise::blocks_to_blocks && t.c.send.in_place();
        const bool runs = eligible(*a, {.num_ranks = world.size(),
                                        .units = always ? 0 : t.units,
                                        .commutative = t.commutative,
                                        .shared_memory = in_memory,
                                        .single_copy = copies,
                                        .nodes = hosts,
                                        .caches = caches}) &&
                          !native_in_place;
        CHECK(mpi::last_arm(world) == (runs ? name : "native"));
      }
    }
  }
  MPI_Op_free(&composition);
  if (std::getenv("RAILPASS_RAILS") && world.size() > 1) {
    std::int64_t sent_bytes = 0;
    for (int peer = 0; peer < world.size(); ++peer)
      for (const mpi::rail_status& r : mpi::rails_to(peer, world)) sent_bytes += r.sent_bytes;
    CHECK(sent_bytes > 0);
  }
}
