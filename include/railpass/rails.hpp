// SPDX-License-Identifier: BSL-1.0
//
// Point-to-point messages of railpass' own, over all networks ("rails") between the ranks at once.
// They never meet MPI's own messages. railpass/point_to_point.hpp has Boost.MPI's signatures.
//
// Messages advance only while one of the ranks' threads is in a call of this header: a rank that
// computes, or waits in MPI, neither sends the rest of a large message nor takes one in.
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
  double budget_s = -1;  ///< to measure the rails; negative: what RAILPASS_RAILS_BUDGET says
};

/// Connects all ranks of `comm` over the rails, and measures how quick they are, if there is a
/// budget for that and it is not known (RAILPASS_RAILS_PROFILE). If another communicator with all
/// these ranks has rails of the same names and strategy open, `comm` uses those: messages of both
/// take the same connections, and never meet. Collective over `comm`. Throws error, on all ranks
/// alike, if a rail is not there or a rank cannot be reached.
void open_rails(MPI_Comm comm, const rails_options& options = {});

/// Ends what open_rails began, once all ranks have come here and all messages have arrived;
/// receives must have ended, and messages that nobody has received are dropped. Collectives of
/// `comm` keep their rails. Connections end with the last communicator that uses them, if it has
/// all ranks between which they are and no collectives go over them, else with MPI. Collective over
/// `comm`; freeing `comm` does the same. Throws error, on all ranks alike, if the rails have
/// failed, or if a message is still under way 10 s after all were here; even then they are closed,
/// and may be opened again.
void close_rails(MPI_Comm comm);

/// A part of a message in memory; of one that is sent, it is only read.
struct message_part {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// A message that is being sent or received. May be copied; may be dropped before it has ended.
class message {
 public:
  struct state;

  message() = default;  ///< one that has ended
  explicit message(std::shared_ptr<state> s) : state_(std::move(s)) {}

  /// Blocks until the memory of what is sent may be used again, or what is received is there. A
  /// message whose send has ended is delivered if its receiver asks for it, also while the sender
  /// is in MPI_Finalize; if the rails fail first, that rank says so on standard error. Throws error
  /// if the message was longer than the memory for it (which was filled), or if a rail has failed
  /// or some rank could not go on; then all messages over these rails have ended, and nobody
  /// touches their memory any more.
  void wait();
  /// Whether wait would not block; lets messages advance. Throws error as wait does.
  bool test();

  /// Of a receive that has ended: who sent it, its tag, its bytes.
  int source() const;
  int tag() const;
  std::int64_t bytes() const;

 private:
  std::shared_ptr<state> state_;
};

/// Begins to send a message of several parts to rank `dest` of `comm`, whose rails are open. The
/// memory stays the caller's and must not change until the message has ended. `dest` may be
/// MPI_PROC_NULL. `owner` is kept until the message has ended. Throws error if an argument is
/// wrong.
message isend(std::span<const message_part> parts, int dest, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner = {});

/// Begins to receive a message into several parts, which need not be those of the sender. `source`
/// and `tag` may be MPI_ANY_SOURCE and MPI_ANY_TAG. Messages of one rank are received in the order
/// in which they were sent, as with MPI_Irecv.
message irecv(std::span<const message_part> parts, int source, int tag, MPI_Comm comm);

/// The same for a message of any size; `whole` gets it and must live until then.
message irecv(std::vector<char>& whole, int source, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner = {});

/// What is known of a rail to another rank.
struct rail_status {
  std::string name;             ///< interface and address
  double bytes_per_s = 0;       ///< of messages to the other rank, as estimated now
  int changes = 0;              ///< how often the rate was found to have changed
  std::int64_t sent_bytes = 0;  ///< of messages to the other rank
};

/// The rails from this rank to another one, of messages and of collectives of all communicators
/// that share them. Local.
std::vector<rail_status> rails_to(int rank, MPI_Comm comm);

}  // namespace railpass::mpi
