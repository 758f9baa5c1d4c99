// SPDX-License-Identifier: BSL-1.0
#include "lib/preload/engine.hpp"

#include "lib/session/arguments.hpp"
#include "lib/session/inside.hpp"

#include <type_traits>

namespace railpass::preload {
namespace {

functions real;

template <class T>
T from_word(word w) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<T>(w);
  else
    return static_cast<T>(w);  // the upper half of an int's word is anything
}

// The tuned call behind a function of words. MPI's own type of the function says what they are.
template <class Function>
struct typed;
template <class... Arguments>
struct typed<int(Arguments...)> {
  template <auto call_with, auto real_function>
  static int run(std::conditional_t<true, word, Arguments>... words) {
    // Either railpass itself or an MPI library that builds one call upon others.
    if (inside::now()) return (real.*real_function)(words...);
    call c = call_with(from_word<Arguments>(words)...);
    // The forms with large counts have an argument for one, or for many.
    c.is_large =
        ((std::is_same_v<Arguments, MPI_Count> || std::is_same_v<Arguments, const MPI_Count*>) ||
         ...);
    return run_call(c, {});
  }
};

}  // namespace
}  // namespace railpass::preload

void railpass_preload_attach(const railpass::preload::functions& real,
                             railpass::preload::functions& tuned) {
  namespace preload = railpass::preload;
  preload::real = real;
#define RAILPASS_PRELOADED(name, arguments, count)                                            \
  tuned.name = preload::typed<decltype(PMPI_##name)>::run<&railpass::arguments_of::arguments, \
                                                          &preload::functions::name>;
#include "lib/preload/functions.def"
#undef RAILPASS_PRELOADED
}
