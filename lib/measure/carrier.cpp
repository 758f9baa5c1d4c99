// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/carrier.hpp"

namespace railpass::internal::measure {

carrier::carrier(const std::string& rails) : over_rails_(!rails.empty()) {
  int bounds[2] = {over_rails_ ? 1 : 0, over_rails_ ? -1 : 0};
  MPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (bounds[0] != -bounds[1])
    throw error("RAILPASS_RAILS: expected a value on all ranks or on no rank");
  if (!over_rails_) return;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  mpi::open_rails(comm_, {.rails = rails, .strategy = {}});
}

carrier::~carrier() {
  if (over_rails_) MPI_Comm_free(&comm_);
}

void carrier::send(const char* from, std::int64_t bytes, int to, int tag) {
  if (!over_rails_) {
    MPI_Send(from, int(bytes), MPI_BYTE, to, tag, comm_);
    return;
  }
  in_flight one(*this);
  one.send(from, bytes, to, tag);
  one.wait();
}

void carrier::receive(char* into, std::int64_t bytes, int from, int tag) {
  if (!over_rails_) {
    MPI_Recv(into, int(bytes), MPI_BYTE, from, tag, comm_, MPI_STATUS_IGNORE);
    return;
  }
  in_flight one(*this);
  one.receive(into, bytes, from, tag);
  one.wait();
}

void carrier::send_synchronous(const char* from, std::int64_t bytes, int to, int tag) {
  if (over_rails_)
    send(from, bytes, to, tag);
  else
    MPI_Ssend(from, int(bytes), MPI_BYTE, to, tag, comm_);
}

void carrier::exchange(const char* out, int to, char* in, int from, std::int64_t bytes, int tag) {
  if (!over_rails_) {
    MPI_Sendrecv(out, int(bytes), MPI_BYTE, to, tag, in, int(bytes), MPI_BYTE, from, tag, comm_,
                 MPI_STATUS_IGNORE);
    return;
  }
  in_flight both(*this);
  both.receive(in, bytes, from, tag);
  both.send(out, bytes, to, tag);
  both.wait();
}

void in_flight::send(const char* from, std::int64_t bytes, int to, int tag) {
  if (carrier_.over_rails_) {
    const mpi::message_part part{const_cast<char*>(from), std::size_t(bytes)};
    messages_.push_back(mpi::isend({&part, 1}, to, tag, carrier_.comm_));
  } else {
    MPI_Isend(from, int(bytes), MPI_BYTE, to, tag, carrier_.comm_, &requests_.emplace_back());
  }
}

void in_flight::receive(char* into, std::int64_t bytes, int from, int tag) {
  if (carrier_.over_rails_) {
    const mpi::message_part part{into, std::size_t(bytes)};
    messages_.push_back(mpi::irecv({&part, 1}, from, tag, carrier_.comm_));
  } else {
    MPI_Irecv(into, int(bytes), MPI_BYTE, from, tag, carrier_.comm_, &requests_.emplace_back());
  }
}

void in_flight::wait() {
  if (!requests_.empty()) MPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  for (mpi::message& m : messages_) m.wait();
  requests_.clear();
  messages_.clear();
}

bool in_flight::test() {
  int all = 1;
  if (!requests_.empty())
    MPI_Testall(int(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE);
  for (mpi::message& m : messages_) all = all && m.test();
  return all != 0;
}

}  // namespace railpass::internal::measure
