// SPDX-License-Identifier: BSL-1.0
//
// Halo exchanges of every version against one computed from global coordinates. All memory of a
// field is compared, so that nothing else may be touched.
#include "models/halo.hpp"

#include "lib/halo/engine.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/halo_exchange.hpp"
#include "railpass/knowledge/set_kind.hpp"
#include "railpass/mpi.hpp"
#include "railpass/select/belief/prior.hpp"
#include "support/catch.hpp"
#include "support/communicators.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace railpass;
using namespace railpass::internal;

namespace {

// Messages that wait for their receiver, as long ones do in any MPI library.
bool synchronous = false;
int synchronous_messages = 0;
bool fails = false;

int heard = MPI_SUCCESS;
void hear(MPI_Comm*, int* code, ...) { heard = *code; }

}  // namespace

extern "C" {
// The library's calls come here.
int PMPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  if (synchronous) {
    ++synchronous_messages;
    return PMPI_Ssend(buffer, count, type, to, tag, comm);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Isend(buffer, count, type, to, tag, comm, &request);
  return code == MPI_SUCCESS ? PMPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}
int PMPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  if (fails) return MPI_ERR_OTHER;
  if (!synchronous) return MPI_Isend(buffer, count, type, to, tag, comm, request);
  ++synchronous_messages;
  return PMPI_Issend(buffer, count, type, to, tag, comm, request);
}
}

namespace {

using random_engine = std::mt19937;

int draw(random_engine& random, int first, int last) {
  return std::uniform_int_distribution(first, last)(random);
}

// A grid of all ranks and what is exchanged over it, the same on all ranks.
struct problem {
  process_grid grid{};
  std::vector<std::int64_t> widths{};
  bool corners = false;

  int dimensions() const { return int(grid.extents.size()); }
  std::string text() const {
    std::string result;
    for (int k = 0; k < dimensions(); ++k) {
      const std::size_t j = std::size_t(k);
      result += std::to_string(grid.extents[j]) + (grid.periodic[j] ? "o" : "-") + " w" +
                std::to_string(widths[j]) + "  ";
    }
    return result + (corners ? "corners" : "faces");
  }
};

// One rank's memory of an array, whose layout is drawn by the rank, and what belongs in it. Where
// each coordinate's block begins is the same on all ranks.
class random_field {
 public:
  random_field(const problem& p, int rank, int number, random_engine& shared, random_engine& own)
      : problem_(p), number_(number) {
    const int d = p.dimensions();
    element_bytes_ = std::array{1, 2, 3, 4, 8, 12, 16, 24}[std::size_t(draw(shared, 0, 7))];
    const std::vector<int> at = p.grid.coordinates(rank);
    for (int k = 0; k < d; ++k) {
      const std::size_t j = std::size_t(k);
      std::int64_t begin = 0;
      for (int c = 0; c < p.grid.extents[j]; ++c) {
        const int least = std::max(1, int(p.widths[j]));
        const int n = draw(shared, least, least + (d < 3 ? 5 : 1));
        if (c == at[j]) {
          begins_.push_back(begin);
          layout_.extents.push_back(n + 2 * p.widths[j]);
        }
        begin += n;
      }
      global_.push_back(begin);
    }
    // Any order of dimensions, gaps, and backwards.
    std::vector<int> order(static_cast<std::size_t>(d));
    for (int k = 0; k < d; ++k) order[std::size_t(k)] = k;
    if (draw(own, 0, 1)) std::shuffle(order.begin(), order.end(), own);
    layout_.strides_bytes.resize(std::size_t(d));
    std::int64_t stride = element_bytes_ + (draw(own, 0, 2) ? 0 : 5), first = 0;
    for (int k = d; k-- > 0;) {
      const std::size_t j = std::size_t(order[std::size_t(k)]);
      const bool backwards = draw(own, 0, 5) == 0;
      layout_.strides_bytes[j] = backwards ? -stride : stride;
      if (backwards) first += stride * (layout_.extents[j] - 1);
      stride = stride * layout_.extents[j] + (draw(own, 0, 2) ? 0 : 7);
    }
    memory_.assign(std::size_t(stride), std::byte(0xEE));
    layout_.data = memory_.data() + first;
    layout_.element_bytes = element_bytes_;
  }

  const array_layout& layout() const { return layout_; }

  /// Sets this rank's block, and all else to something else; round: other values each time.
  void begin(int round) {
    std::fill(memory_.begin(), memory_.end(), std::byte(0xEE));
    each([&](const std::vector<std::int64_t>& index, std::byte* element) {
      if (dimensions_outside(index) == 0) set(element, global_place(index), round);
    });
    expected_ = memory_;
    each([&](const std::vector<std::int64_t>& index, std::byte* element) {
      const int outside = dimensions_outside(index);
      if (outside == 0 || (outside > 1 && !problem_.corners)) return;
      std::vector<std::int64_t> place = global_place(index);
      for (std::size_t k = 0; k < place.size(); ++k) {
        if (place[k] >= 0 && place[k] < global_[k]) continue;
        if (!problem_.grid.periodic[k]) return;
        place[k] = (place[k] + global_[k]) % global_[k];
      }
      set(expected_.data() + (element - memory_.data()), place, round);
    });
  }
  bool as_expected() const { return memory_ == expected_; }

 private:
  template <class F>
  void each(const F& visit) {
    std::vector<std::int64_t> index(layout_.extents.size());
    for (bool more = true; more;) {
      std::byte* element = static_cast<std::byte*>(layout_.data);
      for (std::size_t k = 0; k < index.size(); ++k) element += index[k] * layout_.strides_bytes[k];
      visit(index, element);
      more = false;
      for (std::size_t k = index.size(); k-- > 0 && !more;) {
        more = ++index[k] < layout_.extents[k];
        if (!more) index[k] = 0;
      }
    }
  }
  int dimensions_outside(const std::vector<std::int64_t>& index) const {
    int count = 0;
    for (std::size_t k = 0; k < index.size(); ++k) {
      const std::int64_t w = problem_.widths[k];
      count += index[k] < w || index[k] >= layout_.extents[k] - w;
    }
    return count;
  }
  std::vector<std::int64_t> global_place(const std::vector<std::int64_t>& index) const {
    std::vector<std::int64_t> place = index;
    for (std::size_t k = 0; k < place.size(); ++k) place[k] += begins_[k] - problem_.widths[k];
    return place;
  }
  void set(std::byte* element, const std::vector<std::int64_t>& place, int round) const {
    std::uint64_t mixed = std::uint64_t(number_ * 1000 + round) * 0x9E3779B97F4A7C15u;
    for (const std::int64_t x : place) mixed = (mixed ^ std::uint64_t(x + 1)) * 0xBF58476D1CE4E5B9u;
    for (std::int64_t b = 0; b < element_bytes_; ++b) {
      mixed = (mixed ^ (mixed >> 29)) * 0x94D049BB133111EBu + std::uint64_t(b);
      element[b] = std::byte(mixed >> 56);
    }
  }

  problem problem_;
  int number_;
  std::int64_t element_bytes_;
  array_layout layout_;
  std::vector<std::int64_t> begins_, global_;
  std::vector<std::byte> memory_, expected_;
};

process_grid random_grid(int dimensions, int num_ranks, random_engine& random) {
  process_grid grid;
  grid.extents.assign(std::size_t(dimensions), 1);
  for (int left = num_ranks, factor = 2; left > 1;) {
    if (left % factor != 0) {
      ++factor;
      continue;
    }
    grid.extents[std::size_t(draw(random, 0, dimensions - 1))] *= factor;
    left /= factor;
  }
  for (int k = 0; k < dimensions; ++k) grid.periodic.push_back(draw(random, 0, 1) == 1);
  return grid;
}

struct seeds {
  random_engine shared, own;
  explicit seeds(int rank) : shared(Catch::rngSeed()), own(Catch::rngSeed() + unsigned(rank) + 1) {}
};

// The same sentence on all ranks, or an empty one.
template <class F>
std::string error_of(MPI_Comm comm, const F& what) {
  std::string text;
  try {
    what();
  } catch (const error& e) {
    text = e.what();
  }
  std::array<char, 300> first{};
  text.copy(first.data(), first.size() - 1);
  MPI_Bcast(first.data(), int(first.size()), MPI_CHAR, 0, comm);
  CHECK(text.substr(0, first.size() - 1) == first.data());
  return text;
}

}  // namespace

TEST_CASE("every version brings the neighbours' elements, and touches nothing else") {
  const communicator world = communicator::duplicate_of_world();
  mpi::configure(world, "rails", "127.0.0.2");
  auto [shared, own] = seeds(world.rank());
  CAPTURE(Catch::rngSeed());
  synchronous_messages = 0;
  for (int trial = 0; trial < 12; ++trial) {
    problem p{.grid = random_grid(1 + trial % 4, world.size(), shared)};
    for (int k = 0; k < p.dimensions(); ++k)
      p.widths.push_back(draw(shared, p.dimensions() > 2 ? 0 : 1, p.dimensions() > 2 ? 2 : 3));
    p.corners = draw(shared, 0, 1) == 1;
    std::vector<random_field> fields;
    const int num_fields = draw(shared, 1, 3);
    for (int f = 0; f < num_fields; ++f) fields.emplace_back(p, world.rank(), f, shared, own);
    mpi::halo_arguments arguments{.comm = world, .grid = p.grid, .widths = p.widths};
    for (const random_field& f : fields) arguments.fields.push_back(f.layout());
    arguments.options.corners = p.corners;
    mpi::halo halo(arguments);
    internal::halo::engine& engine = halo.implementation();
    std::vector<std::size_t> able;
    for (std::size_t c = 0; c < engine.candidates().size(); ++c)
      if (engine.candidates()[c].run) able.push_back(c);
    CHECK(able.front() == 0);
    CHECK(std::ranges::any_of(able, [&](std::size_t c) {
      return engine.candidates()[c].what->primitive == "rail_messages";
    }));
    for (const std::size_t c : able)
      for (int round = 0; round < 2; ++round) {
        synchronous = round == 1;
        for (random_field& f : fields) f.begin(round);
        engine.start(c);
        engine.finish();
        synchronous = false;
        for (std::size_t f = 0; f < fields.size(); ++f) {
          const std::string version = engine.candidates()[c].what->name(), what = p.text();
          CAPTURE(trial, version, what, round, f);
          CHECK(fields[f].as_expected());
        }
      }
    // One after the other without a pause, in any order.
    for (int k = 0; k < 20; ++k) {
      for (random_field& f : fields) f.begin(100 + k);
      const std::size_t c = able[std::size_t(draw(shared, 0, int(able.size()) - 1))];
      engine.start(c);
      engine.finish();
      for (random_field& f : fields) {
        const std::string version = engine.candidates()[c].what->name(), what = p.text();
        CAPTURE(trial, version, what, k);
        CHECK(f.as_expected());
      }
    }
  }
  if (world.size() > 1) CHECK(synchronous_messages > 0);
}

TEST_CASE("elements with an MPI datatype: what it leaves out stays as it is") {
  const communicator world = communicator::duplicate_of_world();
  // The first and the third of three ints.
  MPI_Datatype ends = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &ends);
  MPI_Type_commit(&ends);
  struct element {
    int first, second, third;
    element(int v) : first(v), second(-v), third(v + 1) {}
    element(const element& e) : element(e.first) {}  // not trivially copyable
    element& operator=(const element&) = delete;
  };
  const int p = world.size(), rank = world.rank(), n = 4, w = 2;
  const cartesian<1> ring(world, {p}, periodic);
  for (int c = 0;; ++c) {
    std::vector<element> memory;
    for (int i = 0; i < n + 2 * w; ++i)
      memory.emplace_back(i >= w && i < n + w ? 100 * (rank + 1) + i : -7);
    const array_view<1> view(memory.data(), {n + 2 * w}, {1}, ends);
    halo_exchange<1> halo(ring, {view}, w);
    internal::halo::engine& engine = halo.plain().implementation();
    if (c == int(engine.candidates().size())) break;
    if (!engine.candidates()[std::size_t(c)].run) continue;
    engine.start(std::size_t(c));
    engine.finish();
    const std::string version = engine.candidates()[std::size_t(c)].what->name();
    CAPTURE(version);
    for (int i = 0; i < w; ++i) {
      const int left = 100 * ((rank + p - 1) % p + 1) + n + i,
                right = 100 * ((rank + 1) % p + 1) + w + i;
      const element &l = memory[std::size_t(i)], &r = memory[std::size_t(n + w + i)];
      CHECK(std::array{l.first, l.second, l.third} == std::array{left, 7, left + 1});
      CHECK(std::array{r.first, r.second, r.third} == std::array{right, 7, right + 1});
    }
  }
  MPI_Type_free(&ends);
}

TEST_CASE("computation goes on between begin and end") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size(), n = 3;
  const cartesian<2> grid(world, {p, 1}, {true, false});
  std::vector<double> field(std::size_t((n + 2) * (n + 2)), -1);
  const auto at = [&](int i, int k) -> double& { return field[std::size_t(i * (n + 2) + k)]; };
  halo_exchange<2> halo(grid, field.data(), {n, n}, 1);
  for (int step = 0; step < 30; ++step) {
    for (int i = 1; i <= n; ++i)
      for (int k = 1; k <= n; ++k) at(i, k) = 1000 * step + 10 * world.rank() + i;
    halo.begin();
    double sum = 0;
    for (int k = 1; k <= n; ++k) sum += at(2, k);
    halo.end();
    CHECK(sum == 3.0 * (1000 * step + 10 * world.rank() + 2));
    for (int k = 1; k <= n; ++k) {
      CHECK(at(0, k) == 1000 * step + 10 * ((world.rank() + p - 1) % p) + n);
      CHECK(at(n + 1, k) == 1000 * step + 10 * ((world.rank() + 1) % p) + 1);
      CHECK(at(k, 0) == -1);
      CHECK(at(k, n + 1) == -1);
    }
  }
  CHECK_THROWS_WITH(halo.end(), ContainsSubstring("no exchange has begun"));
  halo.begin();
  CHECK_THROWS_WITH(halo.begin(), ContainsSubstring("not ended"));
  halo.end();
  halo_exchange<2> moved = std::move(halo);
  moved();
}

namespace {

// A ring of blocks of 3 elements, whose values say who sent them and when.
struct ring {
  explicit ring(MPI_Comm comm, halo_options options = {})
      : grid(comm, {size_of(comm)}, periodic), halo(grid, field.data(), {3}, 1, options) {}
  static int size_of(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
  }
  void fill(int round) {
    for (int i = 1; i <= 3; ++i) field[std::size_t(i)] = 1000 * round + 10 * grid.rank() + i;
  }
  bool is_right(int round) const {
    const int p = grid.size(), left = (grid.rank() + p - 1) % p, right = (grid.rank() + 1) % p;
    return field[0] == 1000 * round + 10 * left + 3 && field[4] == 1000 * round + 10 * right + 1;
  }

  std::array<int, 5> field{};
  cartesian<1> grid;
  halo_exchange<1> halo;
};

}  // namespace

TEST_CASE("calls are tuned: a policy's versions are all taken, on all ranks alike") {
  const communicator world = communicator::duplicate_of_world();
  ring r(world, {.policy = "round_robin"});
  std::size_t num_versions = 0;
  for (const auto& c : r.halo.plain().implementation().candidates())
    num_versions += c.run != nullptr;
  CHECK(r.halo.last().empty());
  std::set<std::string> taken;
  std::string names;
  for (int k = 0; k < 100 || (k < 20000 && taken.size() < num_versions && world.size() > 1); ++k) {
    r.fill(k);
    const bool in_two_parts = k % 2 == 1;
    if (in_two_parts) {
      r.halo.begin();
      r.halo.end();
    } else {
      r.halo();
      taken.insert(r.halo.last());
      names += r.halo.last() + ' ';
    }
    CHECK(r.is_right(k));
  }
  const std::size_t hash = std::hash<std::string>{}(names);
  std::size_t of_first = hash;
  MPI_Bcast(&of_first, sizeof of_first, MPI_BYTE, 0, world);
  CHECK(hash == of_first);
  if (world.size() > 1) CHECK(taken.size() == num_versions);
}

TEST_CASE("an exchange made anew for another size begins with what near ones have learnt") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() == 1) return;  // no messages
  const cartesian<2> grid(world, {world.size(), 1}, {true, false});
  // How many versions were thought to take something before they ran.
  const auto told_of = [&](int columns, int calls) {
    std::vector<double> field(std::size_t(3 * columns));
    halo_exchange<2> halo(grid, field.data(), {1, columns}, {1, 0}, {.name = "mesh"});
    for (int k = 0; k < calls; ++k) halo();
    std::ptrdiff_t told = 0;
    const std::string kind = "set+shape=0x0+features=" + std::to_string(8 * columns);
    for (const auto& c : process::get()->statistics().contexts)
      if (c.collective == "mesh" && c.operation == kind)
        told = std::ranges::count_if(c.arms, [](const auto& a) { return a.prior.has_value(); });
    MPI_Bcast(&told, sizeof told, MPI_BYTE, 0, world);
    return told;
  };
  CHECK(told_of(1000, 60) == 0);
  CHECK(told_of(1100, 1) > 0);
  CHECK(told_of(100000, 1) == 0);
}

TEST_CASE("what a suggestion looks for is what exchanges are kept as") {
  const communicator world = communicator::duplicate_of_world();
  const bool corners = GENERATE(false, true);
  const machine_model machine = select::generic_machine();
  const grid_query query{.machine = machine,
                         .global = {30, 25},
                         .periodic = {true, false},
                         .width = 2,
                         .element_bytes = 4,
                         .corners = corners,
                         .host_of_rank = std::vector<int>(std::size_t(world.size()))};
  const std::vector<int> extents = best_grid(query);
  const cartesian<2> grid(world, {extents[0], extents[1]}, {true, false});
  const auto at = grid.coordinates();
  const std::int64_t rows = block_elements(30, extents[0], at[0]),
                     columns = block_elements(25, extents[1], at[1]);
  std::vector<float> field(std::size_t((rows + 4) * (columns + 4)));
  const std::string name = corners ? "kept_with_corners" : "kept";
  halo_exchange<2> halo(grid, field.data(), {rows, columns}, 2, {.corners = corners, .name = name});
  halo();
  if (world.rank() != 0) return;
  const knowledge::set_kind kind{
      .shape = {0, corners},
      .features =
          message_lengths(query, {extents, {true, false}}, railpass::internal::halo::most_lengths)};
  const auto contexts = process::get()->statistics().contexts;
  const auto kept = std::ranges::find(contexts, name, &select::context_statistics::collective);
  REQUIRE(kept != contexts.end());
  CHECK(kept->operation == kind.text());
}

TEST_CASE("versions that cannot run are never taken, and others' calls are not kept from them") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() == 1) return;  // which needs no windows
  // Two fields in turns in memory: no windows of them.
  std::array<int, 10> both{};
  const cartesian<1> grid(world, {world.size()}, periodic);
  const array_view<1> u(both.data(), {5}, {2}), v(both.data() + 1, {5}, {2});
  mpi::configure(world, "use", "halo:put_fence_at_once_derived");
  halo_exchange<1> halo(grid, {u, v}, 1);
  ring r(world);
  const auto& candidates = halo.plain().implementation().candidates();
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const std::string name = candidates[c].what->name();
    CAPTURE(name);
    const bool of_fields = candidates[c].what->in == railpass::internal::halo::layout::derived &&
                           (name.starts_with("put") || name.starts_with("get"));
    if (of_fields) CHECK_FALSE(candidates[c].run);
    CHECK((candidates[c].run == nullptr) == !candidates[c].why_not.empty());
  }
  halo();
  CHECK(halo.last() == "isend_irecv_at_once_packed");
  r.halo();
  bool makes_windows = false;
  for (const auto& c : r.halo.plain().implementation().candidates())
    makes_windows = makes_windows || (c.what->name() == "put_fence_at_once_derived" && c.run);
  CHECK(r.halo.last() ==
        (makes_windows ? "put_fence_at_once_derived" : "isend_irecv_at_once_packed"));
}

TEST_CASE("settings pin a version, and have results compared") {
  for (const char* version : {"send_recv_by_pairs_derived", "neighbor_alltoallw_at_once_packed"}) {
    const communicator world = communicator::duplicate_of_world();
    mpi::configure(world, "use", std::string("halo:") + version);
    ring r(world);
    for (int k = 0; k < 20; ++k) {
      r.fill(k);
      r.halo();
      CHECK(r.is_right(k));
      CHECK(r.halo.last() == version);
    }
    CHECK(r.halo.winner() == version);
  }
  const communicator world = communicator::duplicate_of_world();
  mpi::configure(world, "verify", "on");
  ring r(world, {.policy = "round_robin"});
  for (int k = 0; k < 100; ++k) {
    r.fill(k);
    CHECK_NOTHROW(r.halo());
    CHECK(r.is_right(k));
  }
}

TEST_CASE("messages and communicators of exchanges and of the program never meet") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size(), next = (world.rank() + 1) % p, before = (world.rank() + p - 1) % p;
  const cartesian<1> ring(world, {p}, periodic);
  std::array<int, 3> a{-1, world.rank(), -1}, b{-1, 100 + world.rank(), -1};
  halo_exchange<1> first(ring, a.data(), {1}, 1), second(ring, b.data(), {1}, 1);
  std::array<int, 2> got{-1, -1};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &request);
  first.begin();
  second.begin();
  const int mine = 1000 + world.rank();
  MPI_Send(&mine, 1, MPI_INT, next, 0, world);
  second.end();
  first.end();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(got[0] == 1000 + before);
  CHECK(a == std::array{before, world.rank(), next});
  CHECK(b == std::array{100 + before, 100 + world.rank(), 100 + next});
}

TEST_CASE("wrong arguments are an error on all ranks, wherever they are wrong") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size(), last = p - 1;
  const bool is_last = world.rank() == last;
  std::vector<double> memory(10000);
  const cartesian<2> grid(world, {p, 1}, periodic);
  const auto make = [&](std::int64_t nx, std::int64_t ny, std::int64_t width, halo_options o) {
    halo_exchange<2>(grid, memory.data(), {nx, ny}, width, std::move(o))();
  };
  const std::string prefix = "halo_exchange: ", suffix = " (on rank " + std::to_string(last) + ")";
  CHECK_THAT(error_of(world, [&] { make(4, 4, is_last ? -1 : 1, {}); }),
             ContainsSubstring(prefix + "width -1 in dimension 0; expected 0 or more" +
                               (world.size() > 1 ? suffix : "")));
  CHECK_THAT(error_of(world, [&] { make(is_last ? 1 : 4, 4, 2, {}); }),
             ContainsSubstring(prefix + "field 0: 1 elements of its own in dimension 0; expected "
                                        "at least 2"));
  CHECK_THAT(error_of(world,
                      [&] {
                        halo_exchange<2>(grid, is_last ? nullptr : memory.data(), {4, 4}, 1);
                      }),
             ContainsSubstring(prefix + "field 0: the address is null"));
  CHECK_THAT(error_of(world, [&] { halo_exchange<2>(grid, {}, 1); }),
             ContainsSubstring("expected at least one field"));
  if (p > 1) {
    for (const bool corners : {true, false})
      CHECK_THAT(error_of(world, [&] { make(4, 4, 1, {.corners = is_last ? !corners : corners}); }),
                 ContainsSubstring("the ranks differ: rank 0 has"));
    CHECK_THAT(error_of(world, [&] { make(4, 4, is_last ? 2 : 1, {}); }),
               ContainsSubstring("the ranks differ: rank 0 has"));
    CHECK_THAT(error_of(world, [&] { make(4, 4, 1, {.name = is_last ? "a" : "b"}); }),
               ContainsSubstring("the ranks differ: rank 0 has"));
    // Blocks of different lengths go together, faces of different lengths do not.
    CHECK(error_of(world, [&] { make(is_last ? 5 : 4, 4, 1, {}); }).empty());
    CHECK_THAT(error_of(world, [&] { make(4, is_last ? 5 : 4, 1, {}); }),
               ContainsSubstring("over there"));
  }
  if (p > 1)
    CHECK_THROWS_WITH(cartesian<2>(world, {p, 2}),
                      ContainsSubstring("the communicator has " + std::to_string(p)));
  CHECK_THROWS_WITH(cartesian<2>(world, {0, p}), ContainsSubstring("0 ranks in dimension 0"));
  CHECK_THROWS_WITH(cartesian<2>(world, {p + 1, 1}), ContainsSubstring("ranks in dimension 0"));
  make(4, 4, 1, {});
}

TEST_CASE("a failed MPI call goes to the caller's error handler, then to the caller") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() == 1) return;  // which sends nothing
#ifdef MPICH
  return;  // its windows are left behind, with which Debian's UCX does not end
#endif
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(world, handler);
  std::vector<double> field(6);
  halo_exchange<1> halo(cartesian<1>(world, {world.size()}, periodic), field.data(), {4}, 1);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&handler);
  internal::halo::engine& engine = halo.plain().implementation();
  fails = true;
  CHECK_THROWS_WITH(engine.start(0), ContainsSubstring("'halo': MPI_Isend: "));
  fails = false;
  CHECK(heard == MPI_ERR_OTHER);
  CHECK_THROWS_WITH(engine.start(0), ContainsSubstring("an earlier exchange has failed"));
}

TEST_CASE("a grid is that of MPI's Cartesian communicator, or the one suggested") {
  const communicator world = communicator::duplicate_of_world();
  const int p = world.size();
  std::array<int, 3> shape{}, periods{1, 0, 1};
  MPI_Dims_create(p, 3, shape.data());
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Cart_create(world, 3, shape.data(), periods.data(), 0, &made);
  const communicator topology(made);
  const auto grid = cartesian<3>::of(topology);
  for (int rank = 0; rank < p; ++rank) {
    std::array<int, 3> at{};
    MPI_Cart_coords(topology, rank, 3, at.data());
    CHECK(grid.coordinates(rank) == at);
    CHECK(grid.rank_at(at) == rank);
  }
  CHECK(grid.coordinates() == grid.coordinates(world.rank()));
  for (int k = 0; k < 3; ++k) {
    int source = 0, destination = 0;
    MPI_Cart_shift(topology, k, 1, &source, &destination);
    std::array<int, 3> steps{};
    steps[std::size_t(k)] = 1;
    CHECK(grid.neighbour(steps) == destination);
    steps[std::size_t(k)] = -1;
    CHECK(grid.neighbour(steps) == source);
    CHECK(grid.is_periodic(k) == (periods[std::size_t(k)] == 1));
    CHECK(grid.extent(k) == shape[std::size_t(k)]);
  }
  CHECK_THROWS_WITH(cartesian<2>::of(topology), ContainsSubstring("has 3 dimensions"));
  CHECK_THROWS_WITH(cartesian<2>::of(world), ContainsSubstring("no Cartesian topology"));

  CHECK(cartesian<2>::suggest(world, {100000, 10}).extent(0) == p);
  CHECK(cartesian<2>::suggest(world, {10, 100000}, periodic).extent(1) == p);
  CHECK(cartesian<2>::suggest(world, {10, 100000}, periodic).is_periodic(0));
  CHECK_THAT(error_of(world, [&] { cartesian<1>::suggest(world, {p}, {}, {.width = 2}); }),
             ContainsSubstring("less than 2 elements"));
  CHECK_THROWS_WITH(cartesian<1>::suggest(world, {0}), ContainsSubstring("0 elements"));
  CHECK_THROWS_WITH(mpi::suggest_grid(world, {}, {}, {}), ContainsSubstring("0 dimensions"));
  const std::array<std::int64_t, 2> global{10, 10};
  CHECK_THROWS_WITH(mpi::suggest_grid(world, global, {true}, {}),
                    ContainsSubstring("one for each dimension"));
  CHECK_THROWS_WITH(cartesian<1>::of(MPI_COMM_NULL), ContainsSubstring("no Cartesian topology"));
  CHECK_THROWS_WITH(cartesian<1>::suggest(MPI_COMM_NULL, {10}),
                    ContainsSubstring("expected an intra-communicator"));
}

TEST_CASE("an inter-communicator has no grid") {
  const communicator world = communicator::duplicate_of_world();
  if (world.size() < 2) return;
  const bool is_odd = world.rank() % 2 == 1;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(world, is_odd, 0, &made);
  const communicator half(made);
  MPI_Intercomm_create(half, 0, world, is_odd ? 0 : 1, 0, &made);
  const communicator bridge(made);
  CHECK_THROWS_WITH(cartesian<1>::of(bridge), ContainsSubstring("no Cartesian topology"));
  CHECK_THROWS_WITH(cartesian<1>::suggest(bridge, {10}),
                    ContainsSubstring("expected an intra-communicator"));
}
