// SPDX-License-Identifier: BSL-1.0
//
// The interface between librailpass_preload.so and librailpass.so.
//
// The preload library intercepts every MPI library, even a library for which it was not built, and
// must then pass all arguments on unchanged. So it does not know the types of arguments, which
// differ between MPI libraries (a communicator is a pointer or an int). On the systems of railpass
// (x86-64, AArch64, and others whose calling conventions give every integer and pointer a register
// or 8 bytes of the stack), a function of n words passes on the arguments of any function with n
// such arguments.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace railpass::internal::preload {

using word = std::uintptr_t;

namespace detail {
template <std::size_t>
using a_word = word;
template <class Indices>
struct function_of_words;
template <std::size_t... index>
struct function_of_words<std::index_sequence<index...>> {
  using type = int (*)(a_word<index>...);
};
}  // namespace detail

/// Pointer to a function of `count` words that returns an MPI error code.
template <std::size_t count>
using word_function = typename detail::function_of_words<std::make_index_sequence<count>>::type;

/// One way to do all of the calls.
struct functions {
#define RAILPASS_PRELOADED(name, tuned, count) word_function<count> name = nullptr;
#include "lib/preload/functions.def"
#undef RAILPASS_PRELOADED
};

}  // namespace railpass::internal::preload

/// Exported by librailpass for the preload library, which alone calls it, once: `real` are the MPI
/// library's own functions. Fills in the tuned ones.
extern "C" void railpass_preload_attach(const railpass::internal::preload::functions& real,
                                        railpass::internal::preload::functions& tuned);

/// Exported by librailpass for the program `railpass`, which is linked with no MPI library: the
/// name and version of the MPI library that librailpass was built for.
extern "C" const char* railpass_engine_built_for();
