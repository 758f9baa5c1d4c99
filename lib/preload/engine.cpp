// SPDX-License-Identifier: BSL-1.0
#include "lib/preload/engine.hpp"

#include "lib/call/arguments.hpp"
#include "lib/call/inside.hpp"
#include "lib/communicator/communicator_state.hpp"
#include "lib/group/base.hpp"
#include "lib/preload/mpi_of_build.hpp"
#include "lib/runtime/hang_watch.hpp"
#include "lib/runtime/process.hpp"

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

namespace railpass::internal::preload {
namespace {

functions real;

template <class T>
T from_word(word w) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<T>(w);
  else
    return static_cast<T>(w);  // the upper half of an int's word is anything
}

// Functions with large counts. Types do not suffice: a count may have the type of displacements.
constexpr bool has_large_counts(std::string_view name) { return name.ends_with("_c"); }

// The tuned call behind a function of words. The type of MPI's function gives their meaning.
template <class Function>
struct typed;
template <class... Arguments>
struct typed<int(Arguments...)> {
  template <auto call_with, auto real_function, bool is_large>
  [[gnu::hot]] static int run(std::conditional_t<true, word, Arguments>... words) {
    if (inside::now()) {
      if (!inside::was_handed_on()) return (real.*real_function)(words...);
      const outside there;
      return (real.*real_function)(words...);
    }
    auto c = call_with(from_word<Arguments>(words)...);
    c.is_large = is_large;
    return run_call(c);
  }

  template <auto watch, auto real_function>
  static int pass_on(std::conditional_t<true, word, Arguments>... words) {
    const auto go_on = [&] { return (real.*real_function)(words...); };
    return inside::now() ? go_on() : watch(go_on, from_word<Arguments>(words)...);
  }
};

// Actions of railpass around calls that only pass through, with the names of the calls.
namespace watch {

constexpr auto Init = [](const auto& go_on, auto...) {
  const int code = go_on();
  if (code != MPI_SUCCESS) return code;
  const inside here;
  if (process* const mine = process::get(); mine && mine->values().all_ranks) {
    const settings& values = mine->values();
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::array<char, 160> doing{};
    std::snprintf(doing.data(), doing.size(),
                  "rank %d waits inside MPI_Init for ranks without railpass, though "
                  "RAILPASS_ALL_RANKS=on says that all ranks have railpass,",
                  rank);
    const hang_watch::wait in_mpi(rank, doing.data());
    // All ranks have the same mark if its smallest value and its complement's still fit. Pins and
    // fixed reductions come before a plan, so no communicator is left out of it.
    const bool plan_is_first = values.use.empty() && !values.reproducible;
    const std::uint64_t excluded = mine->exclusions().mark();
    bases::words_of_world words{values.first_call ? 1u : 0u, plan_is_first ? mine->plan_mark() : 0,
                                plan_is_first ? ~mine->plan_mark() : 0, excluded, ~excluded};
    if (bases::of_process().make_for_world(values.enable, values.shared_memory, words)) {
      mine->share_knowledge();
      mine->share_exclusions(words[3] == ~words[4]);
      const bool avoids_native = mine->exclusions().has_native();
      if (mine->plan() && words[1] == ~words[2] && !avoids_native) mine->follow_plan_on_all_ranks();
      if (words[0] != 0 || avoids_native) mine->begin_at_first_calls();
    }
  }
  return code;
};
constexpr auto Init_thread = Init;

constexpr auto Finalize = [](const auto& go_on) {
  int rank = 0;
  {
    const inside here;
    process::end();
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  }
  std::array<char, 64> doing{};
  std::snprintf(doing.data(), doing.size(), "rank %d is inside MPI_Finalize", rank);
  const hang_watch::wait in_mpi(rank, doing.data());
  return go_on();
};

constexpr auto Comm_free = [](const auto& go_on, const MPI_Comm* comm) {
  const communicator_state::freeing this_one(comm ? *comm : MPI_COMM_NULL);
  return this_one.invalid() == MPI_SUCCESS ? go_on() : this_one.invalid();
};
constexpr auto Comm_disconnect = Comm_free;

constexpr auto Comm_idup = [](const auto& go_on, auto...) {
  bases::of_process().make_none_inside();
  return go_on();
};
[[maybe_unused]] constexpr auto Comm_idup_with_info = Comm_idup;

}  // namespace watch

}  // namespace
}  // namespace railpass::internal::preload

void railpass_preload_attach(const railpass::internal::preload::functions& real,
                             railpass::internal::preload::functions& tuned) {
  namespace preload = railpass::internal::preload;
  preload::real = real;
#define RAILPASS_PRELOADED(name, arguments, count)                                             \
  tuned.name =                                                                                 \
      preload::typed<decltype(PMPI_##name)>::run<&railpass::internal::arguments_of::arguments, \
                                                 &preload::functions::name,                    \
                                                 preload::has_large_counts(#name)>;
#define RAILPASS_WATCHED(name, count)                                               \
  tuned.name = preload::typed<decltype(PMPI_##name)>::pass_on<preload::watch::name, \
                                                              &preload::functions::name>;
#include "lib/preload/functions.def"
#undef RAILPASS_PRELOADED
}

const char* railpass_engine_built_for() {
  static const std::string name = railpass::internal::mpi_of_build();
  return name.c_str();
}
