// SPDX-License-Identifier: BSL-1.0
#include "collectives/registry.hpp"

#include "support/catch.hpp"

#include <filesystem>
#include <set>

using namespace railpass;

namespace {

const std::filesystem::path collectives_folder = RAILPASS_COLLECTIVES_DIR;

std::string failure_of(std::string_view text, collective op) {
  try {
    parse_arm(op, text);
  } catch (const error& e) {
    return e.what();
  }
  return "no error";
}

algorithm with(const preconditions& needs) {
  algorithm a;
  a.needs = needs;
  return a;
}

}  // namespace

TEST_CASE("every header in a collective's folder is a listed algorithm of that name") {
  for (const collective op : all_collectives) {
    const std::filesystem::path folder = collectives_folder / name_of(op);
    std::set<std::string> files, listed;
    if (std::filesystem::exists(folder))
      for (const auto& entry : std::filesystem::directory_iterator(folder))
        files.insert(entry.path().filename().string());
    // The other ones are algorithms of a collective before it in the list.
    const auto is_its_own = [&](const algorithm& a) {
      return !a.is_native() && std::ranges::find_if(all_algorithms, [&](const algorithm* b) {
                                 return b->build == a.build;
                               })[0] == &a;
    };
    for (const algorithm* a : all_algorithms)
      if (a->op == op && is_its_own(*a)) listed.insert(std::string(a->name) + ".hpp");
    REQUIRE(files == listed);
  }
}

TEST_CASE("native comes first, and everything else can be built, priced and looked up") {
  for (const collective op : all_collectives) {
    REQUIRE(arms_of(op).front().base->name == "native");
    for (const algorithm* a : all_algorithms) {
      if (a->op != op) continue;
      CAPTURE(a->name);
      REQUIRE(find_algorithm(op, a->name) == a);
      REQUIRE_FALSE(a->source.empty());
      REQUIRE(a->is_native() == (a->name == "native"));
      REQUIRE(a->is_native() == (a->cost_s == nullptr));
    }
  }
  REQUIRE(find_algorithm(collective::broadcast, "ring") == nullptr);
  REQUIRE(find_collective("all_reduce") == collective::all_reduce);
  REQUIRE_FALSE(find_collective("allreduces"));
}

TEST_CASE("the names of arms differ and lead back to them") {
  for (const collective op : all_collectives) {
    std::set<std::string> names;
    for (const arm& a : arms_of(op)) {
      const std::string name = name_of(a);
      CAPTURE(name);
      REQUIRE(names.insert(name).second);
      REQUIRE(parse_arm(op, name) == a);
    }
  }
}

TEST_CASE("arms are every combination of parameter values") {
  std::size_t expected = 0;
  for (const algorithm* a : all_algorithms) {
    if (a->op != collective::broadcast) continue;
    std::size_t product = 1;
    for (int i = 0; i < a->num_parameters(); ++i)
      product *= std::size_t(a->parameter_list[std::size_t(i)].num_values);
    expected += product;
  }
  REQUIRE(arms_of(collective::broadcast).size() == expected);
}

TEST_CASE("arms that are not listed can be pinned between the listed values") {
  const arm a = parse_arm(collective::broadcast, "chain+segment_bytes=3000+fan_out=3");
  REQUIRE(a.values[0] == 3);
  REQUIRE(a.values[1] == 3000);
  REQUIRE(name_of(a) == "chain+fan_out=3+segment_bytes=3000");
}

TEST_CASE("what is no arm is refused with the word that is wrong") {
  struct wrong {
    collective op;
    std::string_view arm;
    const char* part;
  };
  constexpr collective broadcast = collective::broadcast;
  for (const auto& [op, text, part] : {
           wrong{broadcast, "bruck", "no algorithm 'bruck'"},
           wrong{broadcast, "", "no algorithm ''"},
           wrong{broadcast, "binomal", "did you mean 'binomial'?"},
           wrong{collective::all_reduce, "binomial", "of all_reduce: there is no algorithm"},
           wrong{broadcast, "binomial+segment=8KiB", "'segment=8KiB' is not one of its parameters"},
           wrong{broadcast, "binomial+segment_bytes", "'segment_bytes' is not one of"},
           wrong{broadcast, "binomial+segment_bytes=lots", "'segment_bytes=lots': expected"},
           wrong{broadcast, "binomial+segment_bytes=2MiB", "'segment_bytes=2MiB': expected"},
           wrong{broadcast, "binomial+segment_bytes=2MiB", "from 0 to 1048576"},
           wrong{broadcast, "chain+fan_out=1", "'fan_out=1': expected a number from 2 to 8"},
           wrong{broadcast, "binomial+", "nothing follows the last '+'"},
           wrong{broadcast, "linear+fan_out=2", "'fan_out=2' is not one of its parameters"},
       }) {
    const std::string message = failure_of(text, op);
    CAPTURE(text, part, message);
    CHECK(message.find(part) != std::string::npos);
  }
}

TEST_CASE("collectives are known by their names here and by MPI's") {
  for (const collective op : all_collectives) CHECK(find_collective(name_of(op)) == op);
  for (const char* const name : {"bcast", "MPI_Bcast", "Bcast", "broadcast"})
    CHECK(find_collective(name) == collective::broadcast);
  CHECK(find_collective("MPI_Allreduce") == collective::all_reduce);
  CHECK(find_collective("reduce_scatter_block") == collective::reduce_scatter_block);
  CHECK(find_collective("MPI_Reduce_scatter") == collective::reduce_scatter);
  CHECK(find_collective("alltoallw") == collective::all_to_allw);
  for (const char* const name : {"", "MPI_", "brodcast", "broadcasts"})
    CHECK_FALSE(find_collective(name));
}

TEST_CASE("preconditions are checked one by one") {
  const algorithm commutative_only = with({.commutative = true});
  CHECK(eligible(commutative_only, {.num_ranks = 2, .units = 1, .commutative = true}));
  CHECK_FALSE(eligible(commutative_only, {.num_ranks = 2, .units = 1, .commutative = false}));
  CHECK_FALSE(eligible(commutative_only, {.num_ranks = 1, .units = 1, .commutative = true}));
  const algorithm power_of_two = with({.power_of_two = true});
  CHECK(eligible(power_of_two, {.num_ranks = 8, .units = 0}));
  CHECK_FALSE(eligible(power_of_two, {.num_ranks = 12, .units = 0}));
  const algorithm even = with({.even_ranks = true});
  CHECK(eligible(even, {.num_ranks = 6, .units = 0}));
  CHECK_FALSE(eligible(even, {.num_ranks = 7, .units = 0}));
  const algorithm large = with({.min_units_per_rank = 2});
  CHECK(eligible(large, {.num_ranks = 3, .units = 6}));
  CHECK_FALSE(eligible(large, {.num_ranks = 3, .units = 5}));
  const auto on = [](const node_facts& nodes, bool commutative = true) {
    return eligibility{.num_ranks = 8, .commutative = commutative, .nodes = nodes};
  };
  const algorithm on_nodes = with({.max_nodes = 3});
  CHECK(eligible(on_nodes, on({.num_nodes = 3, .fewest_ranks = 1, .most_ranks = 4})));
  CHECK_FALSE(eligible(on_nodes, on({.num_nodes = 4, .fewest_ranks = 2, .most_ranks = 2})));
  CHECK_FALSE(eligible(on_nodes, on({.num_nodes = 1, .fewest_ranks = 8, .most_ranks = 8})));
  CHECK_FALSE(eligible(on_nodes, on({.num_nodes = 8, .fewest_ranks = 1, .most_ranks = 1})));
  const node_facts by_turns{
      .num_nodes = 2, .fewest_ranks = 4, .most_ranks = 4, .in_rank_order = false};
  CHECK(eligible(on_nodes, on(by_turns)));
  CHECK_FALSE(eligible(on_nodes, on(by_turns, false)));
  CHECK(eligible(with({}), on(by_turns, false)));
  const algorithm on_caches = with({.several_caches = true});
  const auto under = [](const node_facts& caches, bool commutative = true, int num_nodes = 1) {
    return eligibility{.num_ranks = 8,
                       .commutative = commutative,
                       .nodes = {.num_nodes = num_nodes, .most_ranks = 8},
                       .caches = caches};
  };
  CHECK(eligible(on_caches, under(by_turns)));
  CHECK_FALSE(eligible(on_caches, under(by_turns, false)));
  CHECK_FALSE(eligible(on_caches, under(by_turns, true, 2)));
  CHECK_FALSE(eligible(on_caches, under({})));
  CHECK(eligible(on_caches, under({.num_nodes = 2, .most_ranks = 7}, false)));
  const algorithm on_equal_nodes = with({.max_nodes = any_nodes, .equal_nodes = true});
  CHECK(eligible(on_equal_nodes, on(by_turns)));
  CHECK_FALSE(eligible(on_equal_nodes, on({.num_nodes = 2, .fewest_ranks = 3, .most_ranks = 5})));
}
