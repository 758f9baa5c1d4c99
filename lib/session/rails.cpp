// SPDX-License-Identifier: BSL-1.0
#include "lib/session/rails.hpp"

#include "lib/session/private_communicator.hpp"
#include "lib/session/process.hpp"
#include "railpass/rails.hpp"

namespace railpass {

namespace {

// What a communicator of the user keeps with it, as its attribute. Messages may outlive it.
struct attribute {
  std::shared_ptr<open_transport> transport;
  private_communicator comm;  // the transport's
  known_rails known;
  bool for_messages = false;  // open_rails was called
  bool for_collectives = false;
};

int close_attribute(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<attribute> rails(static_cast<attribute*>(value));
  process* const p = process::get();
  if (!p) return MPI_SUCCESS;  // MPI is being finalized, and they were closed at its beginning
  p->remove(rails->transport);
  try {
    rails->transport->close();
    rails->comm.free();
  } catch (const std::exception& e) {
    p->record(std::string("rails were not closed properly: ") + e.what());
  }
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

const std::shared_ptr<open_transport>& required(const char* call, MPI_Comm comm) {
  return required_attribute(call, comm).transport;
}

// Throws error on all ranks alike.
attribute& add_rails(MPI_Comm comm, process& p, const std::string& rails,
                     const std::string& strategy, double budget_s) {
  auto made = std::make_unique<attribute>();
  if (const int code = make_private_communicator(comm, made->comm))
    throw error("no communicator for the rails: MPI error " + std::to_string(code));
  try {
    made->transport = std::make_shared<open_transport>(made->comm.handle, rails, strategy);
  } catch (...) {
    made->comm.free();
    throw;
  }
  // If that fails, so have the rails, and others may still use the communicator.
  made->known = learn_rails(*made->transport, made->comm, p,
                            {.budget_s = budget_s, .path = p.values().rails_profile});
  p.add(made->transport);
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
  std::shared_ptr<open_transport> rails;
  transport::operation_ptr operation;
  bool receives = false;
};

namespace {
message made(const std::shared_ptr<open_transport>& rails, transport::operation_ptr op,
             bool receives) {
  return message(std::make_shared<message::state>(message::state{rails, std::move(op), receives}));
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
    if (!options.rails.empty() && options.rails != known->transport->rails())
      throw error("railpass::mpi::open_rails: rails '" + options.rails +
                  "': the communicator's collectives have others: " + known->transport->rails());
    known->for_messages = true;
  } else {
    const double budget_s = options.budget_s < 0 ? p.values().rails_budget : options.budget_s;
    add_rails(comm, p, rails, how, budget_s).for_messages = true;
  }
}

void close_rails(MPI_Comm comm) {
  attribute& rails = required_attribute("railpass::mpi::close_rails", comm);
  if (rails.for_collectives) {
    rails.transport->wait([](transport::transport& t) { return t.all_sent(); });
    rails.for_messages = false;
    return;
  }
  rails.transport->close();
  PMPI_Comm_delete_attr(comm, required_process("railpass::mpi::close_rails").rails_key());
}

message isend(std::span<const message_part> parts, int dest, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner) {
  const std::shared_ptr<open_transport>& rails = required("railpass::mpi::isend", comm);
  if (dest == MPI_PROC_NULL) return {};
  if (dest < 0 || dest >= rails->num_ranks() || tag < 0)
    throw error("railpass::mpi::isend: rank " + std::to_string(dest) + ", tag " +
                std::to_string(tag) + ": expected a rank below " +
                std::to_string(rails->num_ranks()) + " and a tag that is not negative");
  std::vector<transport::piece> pieces = pieces_of("railpass::mpi::isend", parts);
  return made(rails, rails->with([&](transport::transport& t) {
    return t.send(dest, tag, std::move(pieces), std::move(owner));
  }),
              false);
}

message irecv(std::span<const message_part> parts, int source, int tag, MPI_Comm comm) {
  const std::shared_ptr<open_transport>& rails = required("railpass::mpi::irecv", comm);
  if (source == MPI_PROC_NULL) return {};
  const int from = checked_source(source, rails->num_ranks()), with_tag = checked_tag(tag);
  std::vector<transport::piece> pieces = pieces_of("railpass::mpi::irecv", parts);
  return made(rails, rails->with([&](transport::transport& t) {
    return t.receive(from, with_tag, std::move(pieces));
  }),
              true);
}

message irecv(std::vector<char>& whole, int source, int tag, MPI_Comm comm,
              std::shared_ptr<void> owner) {
  const std::shared_ptr<open_transport>& rails = required("railpass::mpi::irecv", comm);
  if (source == MPI_PROC_NULL) return {};
  const int from = checked_source(source, rails->num_ranks()), with_tag = checked_tag(tag);
  return made(rails, rails->with([&](transport::transport& t) {
    return t.receive(from, with_tag, [&whole, owner](std::int64_t bytes) {
      whole.resize(std::size_t(bytes));
      return transport::piece{reinterpret_cast<std::byte*>(whole.data()), whole.size()};
    });
  }),
              true);
}

void message::wait() {
  if (!state_) return;
  state_->rails->wait([this](transport::transport&) { return state_->operation->done(); });
  if (state_->operation->truncated())
    throw error("a message from rank " + std::to_string(source()) + " with tag " +
                std::to_string(tag()) + " is longer than the " + std::to_string(bytes()) +
                " bytes there is room for");
}

bool message::test() {
  if (!state_) return true;
  return state_->rails->with([this](transport::transport& t) {
    if (!state_->operation->done()) t.progress();
    return state_->operation->done();
  });
}

int message::source() const {
  return state_ && state_->receives ? state_->operation->peer() : MPI_PROC_NULL;
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
  const std::shared_ptr<open_transport>& rails = found->transport;
  if (rank < 0 || rank >= rails->num_ranks())
    throw error("railpass::mpi::rails_to: rank " + std::to_string(rank) + ": expected one below " +
                std::to_string(rails->num_ranks()));
  return rails->with([&](transport::transport& t) {
    std::vector<rail_status> result;
    for (std::size_t r = 0; r < t.rails().size(); ++r) {
      const transport::rail_report known = t.report(rank, int(r));
      result.push_back({t.rails()[r]->name(), known.bytes_per_s, known.changes, known.sent_bytes});
    }
    return result;
  });
}

}  // namespace mpi

std::shared_ptr<open_transport> rails_for_collectives(MPI_Comm comm, process& p,
                                                      const std::string& rails,
                                                      const std::string& strategy) {
  attribute* const known = find(comm, p);
  attribute& mine = known ? *known : add_rails(comm, p, rails, strategy, p.values().rails_budget);
  mine.for_collectives = true;
  return mine.transport;
}

std::vector<select::rail_statistics> statistics_of(open_transport& rails) {
  return rails.with([&](transport::transport& t) {
    std::vector<select::rail_statistics> result;
    std::int64_t all_bytes = 0;
    for (std::size_t r = 0; r < t.rails().size(); ++r) {
      select::rail_statistics s{.rails = rails.rails(), .rail = t.rails()[r]->name()};
      std::vector<double> rates, errors, backlogs_s;
      for (int peer = 0; peer < rails.num_ranks(); ++peer) {
        const transport::rail_report known = t.report(peer, int(r));
        s.sent_bytes += known.sent_bytes;
        s.changes += known.changes;
        if (known.prediction_error) errors.push_back(*known.prediction_error);
        if (known.sent_bytes == 0) continue;
        rates.push_back(known.bytes_per_s);
        backlogs_s.push_back(known.backlog_s);
      }
      if (!rates.empty()) s.bytes_per_s = median(rates);
      if (!errors.empty()) s.prediction_error = median(errors);
      if (!backlogs_s.empty()) s.backlog_s = median(backlogs_s);
      all_bytes += s.sent_bytes;
      result.push_back(std::move(s));
    }
    for (select::rail_statistics& s : result)
      if (all_bytes > 0) s.share = double(s.sent_bytes) / double(all_bytes);
    return result;
  });
}

const known_rails& known_rails_of(MPI_Comm comm) {
  return required_attribute("known_rails_of", comm).known;
}

int create_rails_key(int* key) {
  return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_attribute, key, nullptr);
}

}  // namespace railpass
