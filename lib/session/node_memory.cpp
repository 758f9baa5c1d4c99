// SPDX-License-Identifier: BSL-1.0
#include "lib/session/node_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace railpass {

namespace {

// Each rank's part begins with the cores it may use.
constexpr std::int64_t head_bytes = 4096;
static_assert(sizeof(cpu_set_t) <= head_bytes);

constexpr std::int64_t part_bytes(int num_slots) {
  return head_bytes + num_slots * cell_region::bytes;
}

class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_(fd) {}
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// A name that is in no file system, and only in this network namespace.
struct socket_name {
  sockaddr_un address{};
  socklen_t length = 0;
  socket_name(std::uint64_t id, int host) {
    address.sun_family = AF_UNIX;
    const int n = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                "railpass-%016llx-%d", static_cast<unsigned long long>(id), host);
    length = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + std::size_t(n));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

bool is_mine(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == ::geteuid();
}

bool send_descriptor(int connection, int fd) {
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  return ::sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}
int receive_descriptor(int connection) {
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
      head->cmsg_len != CMSG_LEN(sizeof(int)))
    return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
  return fd;
}

// What one rank does between the reductions. Whatever fails is told by all in the next one; the
// rest is left out then, but for the reductions.
class making {
 public:
  making(MPI_Comm comm, const socket_name& name, int num_local, bool leads, std::size_t bytes)
      : comm_(comm), name_(name), num_local_(num_local), leads_(leads), bytes_(bytes) {}

  const std::string& problem() const { return problem_; }
  bool alone() const { return num_local_ < 2; }
  int memory() const { return memory_.get(); }

  // The first rank of a host makes the memory and listens.
  void offer() {
    if (alone() || !leads_) return;
    rlimit most{};
    if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < bytes_)
      return fail("ulimit -f", EFBIG);  // going beyond it is a signal
    memory_ = descriptor(::memfd_create("railpass", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (memory_.get() < 0) return fail("memfd_create", errno);
    if (::ftruncate(memory_.get(), off_t(bytes_)) != 0) return fail("ftruncate", errno);
    ::fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    open_socket();
    if (socket_.get() < 0 || ::bind(socket_.get(), name_.get(), name_.length) != 0 ||
        ::listen(socket_.get(), num_local_) != 0)
      fail("listening", errno);
  }
  // The others connect, which waits for nobody.
  void connect() {
    if (alone() || leads_) return;
    open_socket();
    if (socket_.get() < 0 || ::connect(socket_.get(), name_.get(), name_.length) != 0)
      return fail("connecting to the first rank of the host", errno);
    if (!is_mine(socket_.get())) fail("the first rank of the host", EPERM);
  }
  // All have connected. Strangers may have, too.
  void hand_out() {
    if (alone() || !leads_) return;
    for (int served = 1; served < num_local_;) {
      const descriptor peer(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (peer.get() < 0) return fail("accept", errno);
      if (!is_mine(peer.get())) continue;
      if (!send_descriptor(peer.get(), memory_.get())) return fail("sending memory", errno);
      ++served;
    }
  }
  std::byte* map(std::int64_t own_offset, std::int64_t own_bytes) {
    if (alone()) return nullptr;
    if (!leads_) memory_ = descriptor(receive_descriptor(socket_.get()));
    if (memory_.get() < 0) {
      fail("receiving memory", errno);
      return nullptr;
    }
    rlimit most{};
    if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < bytes_) {
      fail("ulimit -f", EFBIG);
      return nullptr;
    }
    // Each rank its own part: the pages are near its core, then.
    if (::fallocate(memory_.get(), 0, own_offset, own_bytes) != 0) {
      fail("fallocate", errno);
      return nullptr;
    }
    void* const place =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    if (place == MAP_FAILED) {
      fail("mmap", errno);
      return nullptr;
    }
    return static_cast<std::byte*>(place);
  }

  // Whether nothing has failed on any rank.
  bool all_well() {
    int ok = problem_.empty() && !failed_ ? 1 : 0;
    return PMPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, comm_) == MPI_SUCCESS && ok != 0;
  }

 private:
  void open_socket() {
    socket_ = descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  void fail(const char* what, int code) {
    failed_ = true;
    try {
      problem_ = std::string(what) + ": " + std::generic_category().message(code);
    } catch (const std::bad_alloc&) {
    }
  }

  MPI_Comm comm_;
  const socket_name& name_;
  int num_local_;
  bool leads_;
  std::size_t bytes_;
  descriptor memory_, socket_;
  bool failed_ = false;
  std::string problem_;
};

int host_of(std::span<const host_run> hosts, int rank) {
  return (std::ranges::upper_bound(hosts, rank, {}, &host_run::first_rank) - 1)->host;
}

}  // namespace

std::unique_ptr<node_memory> node_memory::make(MPI_Comm comm, std::span<const host_run> hosts,
                                               std::uint64_t id, std::int64_t most_bytes,
                                               std::string& problem) {
  int rank = 0, num_ranks = 1;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &num_ranks);
  std::unique_ptr<node_memory> result;
  int host = 0, fullest = 0;
  try {
    result.reset(new node_memory);
    result->usage_.resize(most_slots);
    result->local_of_rank_.assign(std::size_t(num_ranks), -1);
    host = host_of(hosts, rank);
    std::vector<int> ranks_on(std::size_t(num_ranks), 0);
    for (int r = 0; r < num_ranks; ++r) {
      const int theirs = host_of(hosts, r);
      if (theirs == host) result->local_of_rank_[std::size_t(r)] = ranks_on[std::size_t(theirs)];
      ++ranks_on[std::size_t(theirs)];
    }
    fullest = *std::ranges::max_element(ranks_on);
    result->local_ = result->local_of_rank_[std::size_t(rank)];
    result->num_local_ = ranks_on[std::size_t(host)];
  } catch (const std::bad_alloc&) {
    most_bytes = 0;
    result.reset();
  }
  if (PMPI_Allreduce(MPI_IN_PLACE, &most_bytes, 1, MPI_INT64_T, MPI_MIN, comm) != MPI_SUCCESS ||
      !result || fullest < 2)
    return nullptr;
  const std::int64_t of_each = most_bytes / fullest - head_bytes;
  const int num_slots = int(std::clamp<std::int64_t>(of_each / cell_region::bytes, 0, most_slots));
  if (num_slots == 0) return nullptr;
  result->num_slots_ = num_slots;
  result->bytes_ = std::size_t(part_bytes(num_slots)) * std::size_t(result->num_local_);

  const socket_name name(id, host);
  const bool leads = result->local_ == 0;
  making work(comm, name, result->num_local_, leads, result->bytes_);
  const std::int64_t own_offset = result->local_ * part_bytes(num_slots);
  bool well = true;
  const auto next = [&](auto&& part) {
    if (!well) return;
    part();
    well = work.all_well();
  };
  next([&] { work.offer(); });
  next([&] { work.connect(); });
  next([&] { work.hand_out(); });
  next([&] {
    result->memory_ = work.map(own_offset, part_bytes(num_slots));
    if (!result->memory_) return;
    cpu_set_t mine;
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof mine, &mine);
    std::memcpy(result->memory_ + own_offset, &mine, sizeof mine);
  });
  if (!well) {
    problem = work.problem();
    return nullptr;
  }
  if (!work.alone()) {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int r = 0; r < result->num_local_; ++r) {
      cpu_set_t theirs;
      std::memcpy(&theirs, result->memory_ + r * part_bytes(num_slots), sizeof theirs);
      CPU_OR(&all, &all, &theirs);
    }
    result->core_per_rank_ = CPU_COUNT(&all) >= result->num_local_;
  }
  return result;
}

node_memory::~node_memory() {
  if (memory_) ::munmap(memory_, bytes_);
}

cell_region node_memory::region(int local, int slot) const {
  return cell_region(memory_ + local * part_bytes(num_slots_) + head_bytes +
                     slot * cell_region::bytes);
}

bool node_memory::has(const rank_map& ranks, int num_ranks) const {
  for (int r = 0; r < num_ranks; ++r)
    if (local_of_rank_[std::size_t(ranks[r])] < 0) return false;
  return memory_ != nullptr;
}

bool node_memory::is_free(int slot) {
  usage& u = usage_[std::size_t(slot)];
  if (!u.used) return true;
  const cell_region mine = region(local_, slot);
  if (mine.readers_left().load(std::memory_order_acquire) != u.readers) return false;
  mine.reset();
  u.used = false;
  return true;
}

node_memory::use::use(node_memory& of, int slot, const rank_map& ranks, int num_ranks,
                      std::vector<cell_region> room)
    : regions_(std::move(room)) {
  for (int r = 0; r < num_ranks; ++r) {
    const int local = of.local_of_rank_[std::size_t(ranks[r])];
    regions_.push_back(of.region(local, slot));
    if (local == of.local_) rank_ = r;
  }
  usage& u = of.usage_[std::size_t(slot)];
  u.used = true;
  u.readers += std::uint64_t(num_ranks - 1);
}

node_memory::use::~use() {
  for (std::size_t r = 0; r < regions_.size(); ++r)
    if (r != std::size_t(rank_)) regions_[r].readers_left().fetch_add(1, std::memory_order_release);
}

}  // namespace railpass
