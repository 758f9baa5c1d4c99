// SPDX-License-Identifier: BSL-1.0
//
// Point-to-point messages over all rails at once, in Boost.MPI's signatures with the communicator
// first: world.send(1, 0, x) becomes railpass::send(world, 1, 0, x). All ranks first open the
// communicator's rails with railpass::mpi::open_rails. railpass/rails.hpp says when messages
// advance.
//
// Trivially copyable values travel in their memory layout, all other values as archives. Sender and
// receiver use calls of this header and values of the same type.
#pragma once

#include "railpass/detail/archives.hpp"
#include "railpass/rails.hpp"

#include <boost/mpi/packed_iarchive.hpp>
#include <boost/mpi/packed_oarchive.hpp>
#include <boost/mpi/status.hpp>
#include <boost/optional.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

namespace railpass {

namespace detail {

struct message_state {
  mpi::message message;
  std::vector<char> archive;                     // to send, or received
  std::function<void(std::vector<char>&)> load;  // reads the received archive, once
  std::size_t value_bytes = 1;
};

template <class T>
mpi::message_part part_of(const char* call, const T* values, int n) {
  if (n < 0) throw error(std::string(call) + ": " + std::to_string(n) + " values");
  return {const_cast<T*>(values), sizeof(T) * std::size_t(n)};
}

// Sets the count of a message of `bytes` bytes. A number of values beyond int goes only into MPI's
// status, because Boost's own count is an int.
inline void set_count(boost::mpi::status& s, std::int64_t bytes, std::size_t value_bytes) {
  const std::int64_t values = bytes / std::int64_t(value_bytes);
  s.m_count = values <= std::numeric_limits<int>::max() ? int(values) : -1;
  MPI_Status_set_elements_x(&s.m_status, MPI_BYTE, MPI_Count(bytes));
}

}  // namespace detail

/// A message that is being sent or received; takes the place of boost::mpi::request. Copies refer
/// to the same message: its values have arrived once wait() or test() of any copy says so.
class request {
 public:
  request() = default;  ///< a message that has ended
  explicit request(std::shared_ptr<detail::message_state> s) : state_(std::move(s)) {}

  /// Blocks until the message has ended; see railpass::mpi::message::wait.
  boost::mpi::status wait() {
    if (!state_) return {};
    state_->message.wait();
    if (state_->load) std::exchange(state_->load, nullptr)(state_->archive);
    boost::mpi::status s;
    s.m_status = MPI_Status{};
    s.m_status.MPI_SOURCE = state_->message.source();
    s.m_status.MPI_TAG = state_->message.tag();
    s.m_status.MPI_ERROR = MPI_SUCCESS;
    detail::set_count(s, state_->message.bytes(), state_->value_bytes);
    return s;
  }
  /// Returns the status if the message has ended, else boost::none.
  boost::optional<boost::mpi::status> test() {
    if (state_ && !state_->message.test()) return boost::none;
    return wait();
  }

 private:
  std::shared_ptr<detail::message_state> state_;
};

/// Waits for all requests of a range.
template <class Iterator>
void wait_all(Iterator first, Iterator last) {
  for (; first != last; ++first) first->wait();
}

/// Starts to send `n` values, which must not change until the message has ended.
template <class T>
request isend(const boost::mpi::communicator& comm, int dest, int tag, const T* values, int n) {
  mpi::message_part part = detail::part_of("railpass::isend", values, n);
  const auto state = std::make_shared<detail::message_state>();
  if constexpr (!std::is_trivially_copyable_v<T>) {
    boost::mpi::packed_oarchive archive(comm);
    detail::save(archive, values, n);
    const auto* const bytes = static_cast<const char*>(archive.address());
    state->archive.assign(bytes, bytes + archive.size());
    part = {state->archive.data(), state->archive.size()};
    // The archive must live as long as the message, even without the request.
    state->message = mpi::isend({&part, 1}, dest, tag, comm, state);
  } else {
    state->message = mpi::isend({&part, 1}, dest, tag, comm);
  }
  return request(state);
}

/// Starts to receive up to `n` values; exactly `n` values of a type that travels as an archive.
template <class T>
request irecv(const boost::mpi::communicator& comm, int source, int tag, T* values, int n) {
  const mpi::message_part part = detail::part_of("railpass::irecv", values, n);
  const auto state = std::make_shared<detail::message_state>();
  if constexpr (std::is_trivially_copyable_v<T>) {
    state->value_bytes = sizeof(T);
    state->message = mpi::irecv({&part, 1}, source, tag, comm);
  } else {
    if (source != MPI_PROC_NULL)  // from there nothing comes
      state->load = [comm, values, n](std::vector<char>& bytes) {
        boost::mpi::packed_iarchive archive(comm, bytes.size());
        std::copy(bytes.begin(), bytes.end(), static_cast<char*>(archive.address()));
        detail::load(archive, values, n);
      };
    state->message = mpi::irecv(state->archive, source, tag, comm, state);
  }
  return request(state);
}

template <class T>
request isend(const boost::mpi::communicator& comm, int dest, int tag, const T& value) {
  return isend(comm, dest, tag, &value, 1);
}
template <class T>
request irecv(const boost::mpi::communicator& comm, int source, int tag, T& value) {
  return irecv(comm, source, tag, &value, 1);
}
/// Messages without values.
inline request isend(const boost::mpi::communicator& comm, int dest, int tag) {
  return isend(comm, dest, tag, static_cast<const char*>(nullptr), 0);
}
inline request irecv(const boost::mpi::communicator& comm, int source, int tag) {
  return irecv(comm, source, tag, static_cast<char*>(nullptr), 0);
}

/// Blocking forms of isend and irecv.
template <class... Values>
void send(const boost::mpi::communicator& comm, int dest, int tag, const Values&... values) {
  isend(comm, dest, tag, values...).wait();
}
template <class... Values>
boost::mpi::status recv(const boost::mpi::communicator& comm, int source, int tag,
                        Values&&... values) {
  return irecv(comm, source, tag, std::forward<Values>(values)...).wait();
}

/// A message of several segments, which are sent from or received into their segments of memory.
/// The receiver's segments need the same number of bytes in total, but may be divided differently.
/// Values must be trivially copyable.
template <bool sends>
class segments {
 public:
  segments(const boost::mpi::communicator& comm, int peer, int tag)
      : comm_(comm), peer_(peer), tag_(tag) {}

  template <class T>
  segments& add(std::conditional_t<sends, const T, T>* values, int n) {
    static_assert(std::is_trivially_copyable_v<T>, "segments are sent in their memory layout");
    parts_.push_back(detail::part_of(sends ? "railpass::pack" : "railpass::unpack", values, n));
    return *this;
  }
  template <class T>
  segments& operator<<(const T& value) requires sends {
    return add<T>(&value, 1);
  }
  template <class T>
  segments& operator>>(T& value) requires(!sends) {
    return add<T>(&value, 1);
  }

  /// Starts to send or receive the added segments.
  request begin() const {
    const auto state = std::make_shared<detail::message_state>();
    if constexpr (sends)
      state->message = mpi::isend(parts_, peer_, tag_, comm_);
    else
      state->message = mpi::irecv(parts_, peer_, tag_, comm_);
    return request(state);
  }
  /// Blocks until the message has been sent or received.
  boost::mpi::status run() const { return begin().wait(); }

 private:
  boost::mpi::communicator comm_;
  int peer_, tag_;
  std::vector<mpi::message_part> parts_;
};

/// pack(comm, dest, tag) << head << body, then begin() or run().
using pack = segments<true>;
/// unpack(comm, source, tag) >> head >> body, then begin() or run().
using unpack = segments<false>;

}  // namespace railpass
