// SPDX-License-Identifier: BSL-1.0
//
// The calls of railpass/rails.hpp.
#include "lib/group/private_communicator.hpp"
#include "lib/rails/communicator/communicator_rails.hpp"
#include "lib/runtime/process.hpp"
#include "railpass/rails.hpp"

#include <exception>
#include <utility>

namespace railpass::internal {

namespace {

const std::shared_ptr<rail_channel>& required(const char* call, MPI_Comm comm) {
  return required_rails(call, comm).of_user.messages;
}

std::vector<transport::piece> pieces_of(const char* call,
                                        std::span<const mpi::message_part> parts) {
  std::vector<transport::piece> pieces;
  for (const mpi::message_part& p : parts) {
    if (p.bytes > 0 && !p.data) throw error(std::string(call) + ": a part of a message is null");
    if (p.bytes > 0) pieces.push_back({static_cast<std::byte*>(p.data), p.bytes});
  }
  return pieces;
}

int checked_source(int source, int num_ranks) {
  if (source == MPI_ANY_SOURCE) return transport::any_source;
  if (source >= 0 && source < num_ranks) return source;
  throw error("railpass::mpi::irecv: source " + std::to_string(source) +
              ": expected a rank below " + std::to_string(num_ranks) + " or MPI_ANY_SOURCE");
}
int checked_tag(int tag) {
  if (tag == MPI_ANY_TAG) return transport::any_tag;
  if (tag >= 0) return tag;
  throw error("railpass::mpi::irecv: tag " + std::to_string(tag) +
              ": expected one that is not negative, or MPI_ANY_TAG");
}

}  // namespace

}  // namespace railpass::internal

namespace railpass::mpi {

using namespace internal;

struct message::state {
  std::shared_ptr<rail_channel> from;
  transport::operation_ptr operation;
  bool receives = false;
};

namespace {
message made(const std::shared_ptr<rail_channel>& from, transport::operation_ptr op,
             bool receives) {
  return message(std::make_shared<message::state>(message::state{from, std::move(op), receives}));
}

std::string any_or(int value, int any) { return value == any ? "any" : std::to_string(value); }

int own_rank_of(const message::state& s) { return s.from->rank_of(s.from->transport().rank()); }

std::string hang_of(const message::state& s, double after_s) {
  const transport::operation& o = *s.operation;
  const int peer = o.peer() == transport::any_source ? o.peer() : s.from->rank_of(o.peer());
  return "rank " + std::to_string(own_rank_of(s)) + " of " + std::to_string(s.from->num_ranks()) +
         " waits for more than " + railpass::detail::show_setting(after_s) +
         " s for a message over rails '" + s.from->transport().rails() + "' " +
         (s.receives ? "from" : "to") + " rank " + any_or(peer, transport::any_source) +
         " with tag " + any_or(o.tag(), transport::any_tag);
}

void check_whole(const message& m, const transport::operation& o) {
  if (o.truncated())
    throw error("a message from rank " + std::to_string(m.source()) + " with tag " +
                std::to_string(m.tag()) + " is longer than the " + std::to_string(m.bytes()) +
                " bytes there is room for");
}
}  // namespace

void open_rails(MPI_Comm comm, const rails_options& options) {
  process& p = required_process("railpass::mpi::open_rails");
  require_intra_communicator(comm, "railpass::mpi::open_rails");
  const std::string& rails = options.rails.empty() ? p.values().rails : options.rails;
  const std::string& how = options.strategy.empty() ? p.values().strategy : options.strategy;
  const double budget_s = options.budget_s < 0 ? p.values().rails_budget : options.budget_s;
  if (const communicator_rails* const known = find_rails(comm)) {
    if (known->of_user)
      throw error("railpass::mpi::open_rails: the communicator has rails already");
    if (!options.rails.empty() && known->of_collectives &&
        options.rails != known->of_collectives.rails->transport.rails())
      throw error("railpass::mpi::open_rails: rails '" + options.rails +
                  "': the communicator's collectives have others: " +
                  known->of_collectives.rails->transport.rails());
  }
  give_tenancy(comm, [&](const communicator_rails& mine) {
    const rail_tenant who{.comm = mine.comm.handle};
    return mine.of_collectives ? tenancy_beside(mine.of_collectives, who, p, budget_s)
                               : tenancy_on(who, p, rails, how, budget_s);
  });
}

void close_rails(MPI_Comm comm) {
  required_rails("railpass::mpi::close_rails", comm);
  try {
    end_tenancy(comm, required_process("railpass::mpi::close_rails"));
  } catch (const std::exception& e) {
    throw error(std::string("railpass::mpi::close_rails: ") + e.what());
  }
}

message isend(std::span<const message_part> parts, int dest, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner) {
  const std::shared_ptr<rail_channel>& to = required("railpass::mpi::isend", comm);
  if (dest == MPI_PROC_NULL) return {};
  if (dest < 0 || dest >= to->num_ranks() || tag < 0)
    throw error("railpass::mpi::isend: rank " + std::to_string(dest) + ", tag " +
                std::to_string(tag) + ": expected a rank below " + std::to_string(to->num_ranks()) +
                " and a tag that is not negative");
  return made(to, to->send(dest, tag, pieces_of("railpass::mpi::isend", parts), std::move(owner)),
              false);
}

message irecv(std::span<const message_part> parts, int source, int tag, MPI_Comm comm) {
  const std::shared_ptr<rail_channel>& from = required("railpass::mpi::irecv", comm);
  if (source == MPI_PROC_NULL) return {};
  const int rank = checked_source(source, from->num_ranks()), with_tag = checked_tag(tag);
  return made(from, from->receive(rank, with_tag, pieces_of("railpass::mpi::irecv", parts)), true);
}

message irecv(std::vector<char>& whole, int source, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner) {
  const std::shared_ptr<rail_channel>& from = required("railpass::mpi::irecv", comm);
  if (source == MPI_PROC_NULL) return {};
  const int rank = checked_source(source, from->num_ranks()), with_tag = checked_tag(tag);
  const auto allocate = [&whole, owner = std::move(owner)](std::int64_t bytes) {
    whole.resize(std::size_t(bytes));
    return transport::piece{reinterpret_cast<std::byte*>(whole.data()), whole.size()};
  };
  return made(from, from->receive(rank, with_tag, allocate), true);
}

void message::wait() {
  if (!state_) return;
  open_transport& over = state_->from->transport();
  const auto done = [this](transport::transport&) { return state_->operation->done(); };
  process* const p = process::get();
  const double began_s = steady_clock_s();
  for (double after_s = p ? p->values().hang_report : 0;
       after_s > 0 && !over.wait(done, began_s + after_s); after_s *= 2)
    p->report_wait(over.with([&](transport::transport&) { return hang_of(*state_, after_s); }),
                   own_rank_of(*state_), after_s);
  over.wait(done);
  check_whole(*this, *state_->operation);
}

bool message::test() {
  if (!state_) return true;
  const bool done = state_->from->transport().with([this](transport::transport& t) {
    if (!state_->operation->done()) t.progress();
    return state_->operation->done();
  });
  if (done) check_whole(*this, *state_->operation);
  return done;
}

int message::source() const {
  return state_ && state_->receives ? state_->from->rank_of(state_->operation->peer())
                                    : MPI_PROC_NULL;
}
int message::tag() const {
  return state_ && state_->receives ? state_->operation->tag() : MPI_ANY_TAG;
}
std::int64_t message::bytes() const {
  return state_ && state_->receives ? state_->operation->bytes() : 0;
}

std::vector<rail_status> rails_to(int rank, MPI_Comm comm) {
  communicator_rails* found = nullptr;
  if (comm != MPI_COMM_NULL) {
    required_process("railpass::mpi::rails_to");
    found = find_rails(comm);
  }
  if (!found) throw error("railpass::mpi::rails_to: the communicator has no rails");
  const rail_channel& to = *(found->of_user ? found->of_user : found->of_collectives).messages;
  if (rank < 0 || rank >= to.num_ranks())
    throw error("railpass::mpi::rails_to: rank " + std::to_string(rank) + ": expected one below " +
                std::to_string(to.num_ranks()));
  return to.transport().with([&](transport::transport& t) {
    std::vector<rail_status> result;
    for (std::size_t r = 0; r < t.rails().size(); ++r) {
      const transport::rail_report known = t.report(to.peer_of(rank), int(r));
      result.push_back({t.rails()[r]->name(), known.bytes_per_s, known.changes, known.sent_bytes});
    }
    return result;
  });
}

}  // namespace railpass::mpi
