// SPDX-License-Identifier: BSL-1.0
//
// What librailpass_preload.so and librailpass.so have in common.
//
// The preload library stands before every MPI, also before one that it was not built for, and must
// then hand all arguments on untouched. So it does not know their types, which differ from MPI to
// MPI (a communicator is a pointer or an int): on the systems railpass runs on (x86-64, AArch64 and
// others whose calling conventions give every integer and pointer a register or 8 bytes of the
// stack) a function of n words receives and passes on whatever a function of n such arguments is
// given.
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
