// SPDX-License-Identifier: BSL-1.0
#include "lib/session/rails.hpp"

#include "lib/session/private_communicator.hpp"
#include "lib/session/process.hpp"
#include "railpass/rails.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace railpass {

namespace {

// What a communicator of the user keeps with it, as its attribute. Messages may outlive it.
struct attribute {
  std::shared_ptr<shared_rails> rails;
  private_communicator comm;  // the lane's
  std::shared_ptr<lane> messages;
  bool for_messages = false;  // open_rails was called
  bool for_collectives = false;
};

int close_attribute(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<attribute> mine(static_cast<attribute*>(value));
  process* const p = process::get();
  if (!p) return MPI_SUCCESS;  // MPI is being finalized, and they were closed at its beginning
  try {
    mine->messages->close();
  } catch (const std::exception& e) {
    p->record(std::string("rails were not closed properly: ") + e.what());
  }
  mine->comm.free();
  if (mine->rails->transport.closed()) p->remove(mine->rails);
  return MPI_SUCCESS;
}

process& required_process(const char* call) {
  process* const p = process::get();
  if (!p) throw error(std::string(call) + ": MPI is not initialised, or already finalized");
  return *p;
}

attribute* find(MPI_Comm comm, const process& p) {
  void* value = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, p.rails_key(), &value, &found);
  return found ? static_cast<attribute*>(value) : nullptr;
}

attribute& required_attribute(const char* call, MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) throw error(std::string(call) + ": the communicator is MPI_COMM_NULL");
  attribute* const found = find(comm, required_process(call));
  if (!found || !found->for_messages)
    throw error(std::string(call) +
                ": the communicator has no rails; all its ranks call railpass::mpi::open_rails");
  return *found;
}

const std::shared_ptr<lane>& required(const char* call, MPI_Comm comm) {
  return required_attribute(call, comm).messages;
}

// What each rank of `comm` is to the transport; empty: not all of them are there.
std::vector<int> members_of(MPI_Comm comm, const open_transport& of) {
  MPI_Group mine = MPI_GROUP_NULL, theirs = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &mine);
  PMPI_Comm_group(of.communicator(), &theirs);
  int n = 0;
  PMPI_Group_size(mine, &n);
  std::vector<int> ranks(static_cast<std::size_t>(n)), members(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  PMPI_Group_translate_ranks(mine, n, ranks.data(), theirs, members.data());
  PMPI_Group_free(&mine);
  PMPI_Group_free(&theirs);
  if (std::ranges::find(members, MPI_UNDEFINED) != members.end()) members.clear();
  return members;
}

// What a lane needs, held; rails: none.
struct place {
  std::shared_ptr<shared_rails> rails;
  std::uint32_t lane = 0;
  std::vector<int> members;
};

// A place on rails of these names that are open between all ranks of `comm` already. Rank 0 chooses
// them, those between most ranks first; all have to find them. Collective.
place place_on_open_rails(const private_communicator& comm, process& p, const std::string& rails,
                          const std::string& strategy, double budget_s) {
  place found;
  std::uint64_t offer[2] = {0, 0};  // the transport, the lane
  const auto try_one = [&](const std::shared_ptr<shared_rails>& r) {
    open_transport& t = r->transport;
    if (t.rails() != rails || t.strategy() != strategy) return false;
    if (comm.rank == 0 ? budget_s > 0 && r->known.links.empty() : t.id() != offer[0]) return false;
    if (!t.hold(comm.rank != 0)) return false;
    found.members = members_of(comm.handle, t);
    const auto number = comm.rank == 0 ? t.new_lane() : std::uint32_t(offer[1]);
    if (found.members.empty() || !number) {
      t.release();
      return false;
    }
    offer[0] = t.id();
    offer[1] = found.lane = *number;
    found.rails = r;
    return true;
  };
  auto open = p.open_rails();
  std::ranges::stable_sort(open, std::greater{},
                           [](const auto& r) { return r->transport.num_ranks(); });
  const auto try_all = [&] {
    for (const auto& r : open)
      if (try_one(r)) return;
  };
  if (comm.rank == 0) try_all();
  PMPI_Bcast(offer, 2, MPI_UINT64_T, 0, comm.handle);
  if (offer[1] == 0) return {};
  if (comm.rank != 0) try_all();
  int all = found.rails ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm.handle);
  if (all) return found;
  if (found.rails) found.rails->transport.release();
  return {};
}

// Opens the rails for the ranks of `comm`. Throws error on all ranks alike.
place place_on_new_rails(const private_communicator& comm, process& p, const std::string& rails,
                         const std::string& strategy, double budget_s) {
  MPI_Comm own = MPI_COMM_NULL;
  if (const int code = PMPI_Comm_dup(comm.handle, &own))
    throw error("no communicator for the rails: MPI error " + std::to_string(code));
  place found;
  try {
    found.rails = std::make_shared<shared_rails>(own, rails, strategy);
  } catch (...) {
    PMPI_Comm_free(&own);
    throw;
  }
  if (const std::string& why = found.rails->transport.board_problem(); !why.empty())
    p.record("other processes are not shown what the rails carry: " + why);
  // If that fails, so have the rails, and others may still use the communicator.
  found.rails->known = learn_rails(found.rails->transport, comm, p,
                                   {.budget_s = budget_s, .path = p.values().rails_profile});
  found.rails->transport.hold(true);
  found.lane = open_transport::founding_lane;
  found.members.resize(std::size_t(comm.num_ranks));
  std::iota(found.members.begin(), found.members.end(), 0);
  p.add(found.rails);
  return found;
}

// Throws error on all ranks alike.
attribute& add_rails(MPI_Comm comm, process& p, const std::string& rails,
                     const std::string& strategy, double budget_s) {
  auto made = std::make_unique<attribute>();
  if (const int code = make_private_communicator(comm, made->comm))
    throw error("no communicator for the rails: MPI error " + std::to_string(code));
  place found = place_on_open_rails(made->comm, p, rails, strategy, budget_s);
  try {
    if (!found.rails) found = place_on_new_rails(made->comm, p, rails, strategy, budget_s);
  } catch (...) {
    made->comm.free();
    throw;
  }
  made->rails = std::move(found.rails);
  made->messages =
      std::make_shared<lane>(std::shared_ptr<open_transport>(made->rails, &made->rails->transport),
                             made->comm.handle, found.lane, std::move(found.members));
  PMPI_Comm_set_attr(comm, p.rails_key(), made.get());
  return *made.release();
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

namespace mpi {

struct message::state {
  std::shared_ptr<lane> from;
  transport::operation_ptr operation;
  bool receives = false;
};

namespace {
message made(const std::shared_ptr<lane>& from, transport::operation_ptr op, bool receives) {
  return message(std::make_shared<message::state>(message::state{from, std::move(op), receives}));
}
}  // namespace

void open_rails(MPI_Comm comm, const rails_options& options) {
  process& p = required_process("railpass::mpi::open_rails");
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter) throw error("railpass::mpi::open_rails: expected an intra-communicator");
  const std::string& rails = options.rails.empty() ? p.values().rails : options.rails;
  const std::string& how = options.strategy.empty() ? p.values().strategy : options.strategy;
  if (attribute* const known = find(comm, p)) {
    if (known->for_messages)
      throw error("railpass::mpi::open_rails: the communicator has rails already");
    if (!options.rails.empty() && options.rails != known->rails->transport.rails())
      throw error(
          "railpass::mpi::open_rails: rails '" + options.rails +
          "': the communicator's collectives have others: " + known->rails->transport.rails());
    known->for_messages = true;
  } else {
    const double budget_s = options.budget_s < 0 ? p.values().rails_budget : options.budget_s;
    add_rails(comm, p, rails, how, budget_s).for_messages = true;
  }
}

void close_rails(MPI_Comm comm) {
  attribute& mine = required_attribute("railpass::mpi::close_rails", comm);
  if (mine.for_collectives) {
    mine.messages->wait_until_sent(traffic::user);
    mine.for_messages = false;
    return;
  }
  mine.messages->close();
  PMPI_Comm_delete_attr(comm, required_process("railpass::mpi::close_rails").rails_key());
}

message isend(std::span<const message_part> parts, int dest, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner) {
  const std::shared_ptr<lane>& to = required("railpass::mpi::isend", comm);
  if (dest == MPI_PROC_NULL) return {};
  if (dest < 0 || dest >= to->num_ranks() || tag < 0)
    throw error("railpass::mpi::isend: rank " + std::to_string(dest) + ", tag " +
                std::to_string(tag) + ": expected a rank below " + std::to_string(to->num_ranks()) +
                " and a tag that is not negative");
  return made(to,
              to->send(traffic::user, dest, tag, pieces_of("railpass::mpi::isend", parts),
                       std::move(owner)),
              false);
}

message irecv(std::span<const message_part> parts, int source, int tag, MPI_Comm comm) {
  const std::shared_ptr<lane>& from = required("railpass::mpi::irecv", comm);
  if (source == MPI_PROC_NULL) return {};
  const int rank = checked_source(source, from->num_ranks()), with_tag = checked_tag(tag);
  return made(
      from, from->receive(traffic::user, rank, with_tag, pieces_of("railpass::mpi::irecv", parts)),
      true);
}

message irecv(std::vector<char>& whole, int source, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner) {
  const std::shared_ptr<lane>& from = required("railpass::mpi::irecv", comm);
  if (source == MPI_PROC_NULL) return {};
  const int rank = checked_source(source, from->num_ranks()), with_tag = checked_tag(tag);
  const auto allocate = [&whole, owner](std::int64_t bytes) {
    whole.resize(std::size_t(bytes));
    return transport::piece{reinterpret_cast<std::byte*>(whole.data()), whole.size()};
  };
  return made(from, from->receive(traffic::user, rank, with_tag, allocate), true);
}

void message::wait() {
  if (!state_) return;
  state_->from->transport().wait(
      [this](transport::transport&) { return state_->operation->done(); });
  if (state_->operation->truncated())
    throw error("a message from rank " + std::to_string(source()) + " with tag " +
                std::to_string(tag()) + " is longer than the " + std::to_string(bytes()) +
                " bytes there is room for");
}

bool message::test() {
  if (!state_) return true;
  return state_->from->transport().with([this](transport::transport& t) {
    if (!state_->operation->done()) t.progress();
    return state_->operation->done();
  });
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
  attribute* const found =
      comm == MPI_COMM_NULL ? nullptr : find(comm, required_process("railpass::mpi::rails_to"));
  if (!found) throw error("railpass::mpi::rails_to: the communicator has no rails");
  const lane& to = *found->messages;
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

}  // namespace mpi

std::shared_ptr<lane> rails_for_collectives(MPI_Comm comm, process& p, const std::string& rails,
                                            const std::string& strategy) {
  attribute* const known = find(comm, p);
  attribute& mine = known ? *known : add_rails(comm, p, rails, strategy, p.values().rails_budget);
  mine.for_collectives = true;
  return mine.messages;
}

std::vector<select::rail_statistics> statistics_of(open_transport& rails) {
  return rails.with([&](transport::transport& t) {
    std::vector<select::rail_statistics> result;
    std::int64_t all_bytes = 0;
    for (std::size_t r = 0; r < t.rails().size(); ++r) {
      const transport::rail_report known = t.report(int(r));
      select::rail_statistics s{.rails = rails.rails(),
                                .rail = t.rails()[r]->name(),
                                .sent_bytes = known.sent_bytes,
                                .bytes_per_s = known.bytes_per_s,
                                .changes = known.changes,
                                .prediction_error = known.prediction_error,
                                .backlog_s = known.backlog_s};
      all_bytes += s.sent_bytes;
      result.push_back(std::move(s));
    }
    for (select::rail_statistics& s : result)
      if (all_bytes > 0) s.share = double(s.sent_bytes) / double(all_bytes);
    return result;
  });
}

const known_rails& known_rails_of(MPI_Comm comm) {
  return required_attribute("known_rails_of", comm).rails->known;
}

int create_rails_key(int* key) {
  return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_attribute, key, nullptr);
}

}  // namespace railpass
