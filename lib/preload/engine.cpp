// SPDX-License-Identifier: BSL-1.0
#include "lib/preload/engine.hpp"

#include "lib/session/inside.hpp"
#include "railpass/mpi.hpp"

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
  template <int (*tuned)(Arguments..., const call_options&), auto real_function>
  static int run(std::conditional_t<true, word, Arguments>... words) {
    // Either railpass itself or an MPI library that builds one call upon others.
    if (inside::now()) return (real.*real_function)(words...);
    return tuned(from_word<Arguments>(words)..., {});
  }
};

}  // namespace
}  // namespace railpass::preload

void railpass_preload_attach(const railpass::preload::functions& real,
                             railpass::preload::functions& tuned) {
  namespace preload = railpass::preload;
  preload::real = real;
#define RAILPASS_PRELOADED(name, tuned_name, count)                                  \
  tuned.name = preload::typed<decltype(PMPI_##name)>::run<railpass::mpi::tuned_name, \
                                                          &preload::functions::name>;
#include "lib/preload/functions.def"
#undef RAILPASS_PRELOADED
}
