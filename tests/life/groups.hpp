// SPDX-License-Identifier: BSL-1.0
//
// The groups of operations that can be switched off to find the cause of a failure. A life draws
// the same numbers with and without them.
#pragma once

#include <algorithm>
#include <bitset>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace life {

enum class group {
  threads,      ///< more than one thread
  comms,        ///< communicators are made and freed
  idup,         ///< MPI_Comm_idup under way around collectives
  nonblocking,  ///< nonblocking collectives and messages under way around collectives
  attributes,   ///< attributes are set and deleted
  callbacks,    ///< their callbacks make collectives
  self,         ///< so do delete callbacks of MPI_COMM_SELF, in MPI_Finalize
  errors,       ///< error handlers, and arguments that are wrong on all ranks
  wrong_ops,    ///< among them operations that are not defined for their type
  lone_errors,  ///< arguments that are wrong on one rank, which then repeats the call
  derived,      ///< datatypes other than MPI's
  fresh,        ///< dense datatypes made for one call
  user_ops,     ///< operations of the program
  in_place,     ///< MPI_IN_PLACE
  null_types,   ///< MPI_DATATYPE_NULL where a count is 0, where MPI takes it
  nothing,      ///< one element of a datatype without data where nothing is sent
  free_order,   ///< communicators freed in another order on some ranks, and messages between
  many,         ///< hundreds of communicators at once
  skew,         ///< ranks that come late, also to agreements of a preloaded library
  count
};

constexpr std::string_view group_names[] = {
    "threads",    "comms",     "idup",        "nonblocking", "attributes", "callbacks", "self",
    "errors",     "wrong_ops", "lone_errors", "derived",     "fresh",      "user_ops",  "in_place",
    "null_types", "nothing",   "free_order",  "many",        "skew"};
static_assert(std::size(group_names) == static_cast<std::size_t>(group::count));

class groups {
 public:
  bool has(group which) const { return !off_[static_cast<std::size_t>(which)]; }

  /// Switches off what the list names: "threads,many". Throws std::invalid_argument.
  void switch_off(std::string_view names) {
    while (!names.empty()) {
      const std::string_view name = names.substr(0, names.find(','));
      names.remove_prefix(std::min(names.size(), name.size() + 1));
      std::size_t at = 0;
      while (at < std::size(group_names) && group_names[at] != name) ++at;
      if (at == std::size(group_names))
        throw std::invalid_argument("no group of operations is called '" + std::string(name) + "'");
      off_[at] = true;
    }
  }

 private:
  std::bitset<static_cast<std::size_t>(group::count)> off_;
};

}  // namespace life
