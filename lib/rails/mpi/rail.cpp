// SPDX-License-Identifier: BSL-1.0
#include "lib/rails/mpi/rail.hpp"

#include "railpass/base/clock.hpp"

#include <algorithm>
#include <new>

namespace railpass::internal {

static_assert(rail<mpi_rail>);

namespace {

bool is_truncation(int code) {
  int error_class = MPI_SUCCESS;
  return PMPI_Error_class(code, &error_class) == MPI_SUCCESS && error_class == MPI_ERR_TRUNCATE;
}

}  // namespace

int make_byte_type(std::int64_t bytes, std::int64_t largest_count, MPI_Datatype* type) {
  const std::int64_t chunks = bytes / largest_count, rest = bytes % largest_count;
  MPI_Datatype chunk = MPI_DATATYPE_NULL;
  int code = PMPI_Type_contiguous(static_cast<int>(largest_count), MPI_BYTE, &chunk);
  if (code != MPI_SUCCESS) return code;
  int lengths[2] = {static_cast<int>(chunks), static_cast<int>(rest)};
  MPI_Aint displacements[2] = {0, static_cast<MPI_Aint>(chunks * largest_count)};
  MPI_Datatype types[2] = {chunk, MPI_BYTE};
  code = PMPI_Type_create_struct(2, lengths, displacements, types, type);
  PMPI_Type_free(&chunk);
  if (code != MPI_SUCCESS) return code;
  return PMPI_Type_commit(type);
}

mpi_rail::mpi_rail(MPI_Comm communicator, const rank_map* ranks, int first_tag, bool own_core,
                   std::int64_t largest_count)
    : communicator_(communicator),
      ranks_(ranks),
      first_tag_(first_tag),
      largest_count_(largest_count),
      yields_(own_core) {
  PMPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
}

void mpi_rail::reserve(std::size_t messages) {
  requests_.reserve(messages);
  posted_.reserve(messages);
}

post_result mpi_rail::added(int code, MPI_Request request, const posted& what) {
  if (code != MPI_SUCCESS) {
    error_code_ = code;
    return post_result::failed;
  }
  requests_.push_back(request);
  posted_.push_back(what);
  return post_result::pending;
}

post_result mpi_rail::post_send(std::int32_t peer, std::int32_t tag, const std::byte* from,
                                std::int64_t bytes, rail_token token) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  const posted what{.token = token, .peer = peer};
  if (ranks_) peer = (*ranks_)[peer];
  tag += first_tag_;
  if (bytes <= largest_count_) [[likely]] {
    code = PMPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, peer, tag, communicator_, &request);
  } else {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    code = make_byte_type(bytes, largest_count_, &type);
    if (code == MPI_SUCCESS) {
      code = PMPI_Isend(from, 1, type, peer, tag, communicator_, &request);
      PMPI_Type_free(&type);
    }
  }
  return added(code, request, what);
}

post_result mpi_rail::post_receive(std::int32_t peer, std::int32_t tag, std::byte* to,
                                   std::int64_t bytes, rail_token token) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  const posted what{.token = token, .peer = peer, .awaited_bytes = bytes};
  if (ranks_) peer = (*ranks_)[peer];
  tag += first_tag_;
  if (bytes <= largest_count_) [[likely]] {
    code = PMPI_Irecv(to, static_cast<int>(bytes), MPI_BYTE, peer, tag, communicator_, &request);
  } else {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    code = make_byte_type(bytes, largest_count_, &type);
    if (code == MPI_SUCCESS) {
      code = PMPI_Irecv(to, 1, type, peer, tag, communicator_, &request);
      PMPI_Type_free(&type);
    }
  }
  return added(code, request, what);
}

int mpi_rail::poll(std::span<rail_token> completed) {
  // The number that fits into `completed`, in turn, so that every request is tested at some time.
  if (next_tested_ >= requests_.size()) next_tested_ = 0;
  const std::size_t first = next_tested_;
  const std::size_t tested =
      std::min({requests_.size() - first, completed.size(), indices_.size()});
  if (tested == 0) return 0;
  next_tested_ = first + tested;
  int found = 0;
  const int code = PMPI_Testsome(static_cast<int>(tested), requests_.data() + first, &found,
                                 indices_.data(), statuses_.data());
  if (code != MPI_SUCCESS) {
    error_code_ = code;
    if (code == MPI_ERR_IN_STATUS)
      for (int i = 0; i < found; ++i)
        if (const int failure = statuses_[std::size_t(i)].MPI_ERROR; failure != MPI_SUCCESS) {
          error_code_ = failure;
          if (is_truncation(failure))
            note_unlike(posted_[first + std::size_t(indices_[std::size_t(i)])], "more");
        }
    return -1;
  }
  if (found == MPI_UNDEFINED) return 0;
  bool as_posted = true;
  for (int i = 0; i < found; ++i) {
    const posted& what = posted_[first + std::size_t(indices_[std::size_t(i)])];
    completed[std::size_t(i)] = what.token;
    as_posted = has_its_length(what, statuses_[std::size_t(i)]) && as_posted;
  }
  // MPI set what ended to MPI_REQUEST_NULL: fill those gaps from the back.
  for (int i = 0; i < found; ++i) {
    drop_ended_at_back();
    const std::size_t gap = first + std::size_t(indices_[std::size_t(i)]);
    if (gap >= requests_.size()) continue;
    requests_[gap] = requests_.back();
    posted_[gap] = posted_.back();
    requests_.back() = MPI_REQUEST_NULL;
  }
  drop_ended_at_back();
  return as_posted ? found : -1;
}

bool mpi_rail::has_its_length(const posted& what, const MPI_Status& status) {
  if (what.awaited_bytes == posted::sends) return true;
  MPI_Count came = 0;
  PMPI_Get_elements_x(&status, MPI_BYTE, &came);
  if (came == what.awaited_bytes) return true;
  note_unlike(what, std::to_string(came));
  return false;
}

void mpi_rail::note_unlike(const posted& what, std::string_view came) {
  error_code_ = MPI_ERR_TRUNCATE;
  try {
    unlike_ = "rank " + std::to_string(what.peer) + " sent ";
    unlike_.append(came).append(" where this rank expects ");
    unlike_ += std::to_string(what.awaited_bytes) + " bytes";
  } catch (const std::bad_alloc&) {  // the code says it
  }
}

void mpi_rail::drop_ended_at_back() {
  while (!requests_.empty() && requests_.back() == MPI_REQUEST_NULL) {
    requests_.pop_back();
    posted_.pop_back();
  }
}

// A cancelled request ends at once. A message that is arriving ends soon if its sender lives, and
// must not write to memory that the caller has again. Dead ranks are not waited for.
void abandon(std::span<MPI_Request> requests) {
  for (MPI_Request& request : requests)
    if (request != MPI_REQUEST_NULL) PMPI_Cancel(&request);
  constexpr int fewest_tries = 100;
  constexpr double most_s = 0.1;  // on a busy machine a try may take milliseconds
  const double began_s = steady_clock_s();
  for (int i = 0, ended = 0; (i < fewest_tries || steady_clock_s() - began_s < most_s) && !ended;
       ++i) {
    if (PMPI_Testall(int(requests.size()), requests.data(), &ended, MPI_STATUSES_IGNORE) !=
        MPI_SUCCESS)
      break;
    if (!ended) sched_yield();
  }
  for (MPI_Request& request : requests)
    if (request != MPI_REQUEST_NULL) PMPI_Request_free(&request);
}

void mpi_rail::abandon() {
  internal::abandon(requests_);
  requests_.clear();
  posted_.clear();
}

}  // namespace railpass::internal
