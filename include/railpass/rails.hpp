// SPDX-License-Identifier: BSL-1.0
//
// Point-to-point messages of railpass over all networks ("rails") between the ranks at once. These
// messages never match MPI's own messages. railpass/point_to_point.hpp has Boost.MPI's signatures.
//
// Messages advance only while a thread of the rank is in a call of this header: a rank that
// computes, or waits in MPI, neither sends the rest of a large message nor receives one.
#pragma once

#include "railpass/base/error.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace railpass::mpi {

struct rails_options {
  std::size_t struct_bytes = sizeof(rails_options);  ///< see options.hpp
  std::string rails;     ///< empty: what RAILPASS_RAILS says; see railpass settings. A network
                         ///< named twice carries two streams (where one alone is held back)
  std::string strategy;  ///< empty: what RAILPASS_STRATEGY says
  double budget_s = -1;  ///< to measure the rails; negative: the value of RAILPASS_RAILS_BUDGET
};

/// Connects all ranks of `comm` over the rails. Collective over `comm`.
///
/// open_rails measures the speed of each rail if the budget allows and RAILPASS_RAILS_PROFILE does
/// not contain the speed. If another communicator with all these ranks has rails of the same names
/// and strategy open, `comm` shares the connections; messages of the two communicators never match.
/// @throws railpass::error on every rank if a rail is missing or a rank cannot be reached
void open_rails(MPI_Comm comm, const rails_options& options = {});

/// Closes the rails of `comm` after all ranks have called it and all messages have arrived.
/// Collective over `comm`. Freeing `comm` does the same.
///
/// The receives must have ended; close_rails drops messages that were never received. Collectives
/// of `comm` keep their rails. A connection ends with the last communicator that uses it if that
/// communicator has all ranks of the connections and no collective uses them; otherwise with MPI.
/// @throws railpass::error on every rank if the rails have failed, or if a message has not arrived
///   10 s after all ranks called; the rails are closed even then, and may be opened again
void close_rails(MPI_Comm comm);

/// A part of a message in memory; a send only reads `data`.
struct message_part {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// A message that is being sent or received. Copies refer to the same message; destroying all
/// copies does not cancel the message.
class message {
 public:
  struct state;

  message() = default;  ///< a message that has ended
  explicit message(std::shared_ptr<state> s) : state_(std::move(s)) {}

  /// Blocks until the memory of a send may be reused or a receive is complete.
  ///
  /// After the end of a send, railpass delivers the message if its receiver asks for it, also while
  /// the sender is in MPI_Finalize. If the rails fail first, the sender reports that on standard
  /// error.
  /// @throws railpass::error if the message was longer than its buffer (which was filled), a rail
  ///   has failed or a rank could not continue; in the last two cases all messages over these rails
  ///   have ended, and railpass no longer accesses their memory
  void wait();
  /// Lets messages advance; returns whether wait() would not block. Throws as wait() does.
  bool test();

  /// Source, tag and length in bytes of a receive that has ended.
  int source() const;
  int tag() const;
  std::int64_t bytes() const;

 private:
  std::shared_ptr<state> state_;
};

/// Starts to send a message of several parts to rank `dest` of `comm`. Local.
/// @param parts memory of the caller, unchanged until the message has ended
/// @param dest may be MPI_PROC_NULL
/// @param comm has open rails
/// @param owner is kept until the message has ended
/// @throws railpass::error if an argument is invalid
message isend(std::span<const message_part> parts, int dest, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner = {});

/// Starts to receive a message into several parts. Local. Messages from one rank are received in
/// the order in which they were sent, as with MPI_Irecv.
/// @param parts memory of the caller; may be divided differently from the sender's parts
/// @param source may be MPI_ANY_SOURCE
/// @param tag may be MPI_ANY_TAG
/// @throws railpass::error if an argument is invalid
message irecv(std::span<const message_part> parts, int source, int tag, MPI_Comm comm);

/// Starts to receive a message of any size. Otherwise as above.
/// @param whole receives the message; must live until the message has ended
message irecv(std::vector<char>& whole, int source, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner = {});

/// The state of a rail to another rank.
struct rail_status {
  std::string name;             ///< interface and address
  double bytes_per_s = 0;       ///< estimated rate of messages to the other rank
  int changes = 0;              ///< number of times that the estimated rate changed
  std::int64_t sent_bytes = 0;  ///< of messages to the other rank
};

/// Returns the rails from this rank to rank `rank`. Local.
/// @return the rails used by messages and collectives of all communicators that share them
std::vector<rail_status> rails_to(int rank, MPI_Comm comm);

}  // namespace railpass::mpi
