// SPDX-License-Identifier: BSL-1.0
#include "lib/group/node_memory.hpp"

#include "lib/base/descriptor.hpp"
#include "lib/base/file_space.hpp"
#include "lib/exec/single_copy.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace railpass::internal {

namespace {

// Start of each rank's part of the memory.
struct head {
  cpu_set_t cores;  // that the rank may use
  single_copy_probe probe;
  std::uint32_t copies;  // from and to all other ranks: a value below
};
enum : std::uint32_t { not_tried, cannot_copy, can_copy };
constexpr std::int64_t head_bytes = 4096;
static_assert(sizeof(head) <= head_bytes);

constexpr std::int64_t part_bytes(int num_slots) {
  return head_bytes + num_slots * cell_region::bytes;
}

// Older kernels queue at most 128 callers of a socket by default (net.core.somaxconn).
constexpr int callers_of_socket = 64;

// A name that is in no file system, and only in this network namespace.
struct socket_name {
  sockaddr_un address{};
  socklen_t length = 0;
  socket_name(std::uint64_t id, int host, int number) {
    address.sun_family = AF_UNIX;
    const int n =
        std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "railpass-%016llx-%d-%d",
                      static_cast<unsigned long long>(id), host, number);
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

}  // namespace

// A failure on any rank reaches all ranks in the next reduction.
struct node_memory::making::part {
  MPI_Comm comm;
  std::unique_ptr<node_memory> made;
  std::uint64_t id;
  int fullest = 0;  // ranks on any host
  std::int64_t most_bytes;
  std::vector<file_descriptor> listening;  // of the first rank
  file_descriptor socket, memory;
  bool failed = false;
  std::string problem;

  part(MPI_Comm of, std::uint64_t of_all, std::int64_t bytes)
      : comm(of), made(new node_memory), id(of_all), most_bytes(bytes) {}

  bool alone() const { return made->num_local_ < 2; }
  bool leads() const { return made->local_ == 0; }

  void fail(const char* what, int code) {
    failed = true;
    try {
      problem = std::string(what) + ": " + std::generic_category().message(code);
    } catch (const std::bad_alloc&) {
    }
  }
  bool all_well() {
    int ok = failed ? 0 : 1;
    return PMPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && ok != 0;
  }

  void listen() {
    for (int first = 0; first < made->num_local_ && !failed; first += callers_of_socket) {
      const socket_name name(id, made->host_, int(listening.size()));
      const int fd = listening.emplace_back(open_socket()).get();
      if (fd < 0 || ::bind(fd, name.get(), name.length) != 0 ||
          ::listen(fd, callers_of_socket) != 0)
        fail("listening", errno);
    }
  }
  // The first rank makes the memory while the other ranks connect, which does not block.
  void meet() {
    if (leads()) return make_memory();
    const socket_name name(id, made->host_, made->local_ / callers_of_socket);
    socket = open_socket();
    if (socket.get() < 0 || ::connect(socket.get(), name.get(), name.length) != 0)
      return fail("connecting to the first rank of the host", errno);
    if (!is_mine(socket.get())) fail("the first rank of the host", EPERM);
  }
  void make_memory() {
    memory = file_descriptor(::memfd_create("railpass", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (memory.get() < 0) return fail("memfd_create", errno);
    if (exceeds_file_size(made->bytes_)) return fail("ulimit -f", EFBIG);
    if (::ftruncate(memory.get(), off_t(made->bytes_)) != 0) return fail("ftruncate", errno);
    ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  }
  // All ranks have connected, and perhaps strangers. A peer that is not served sees its connection
  // end.
  void hand_out() {
    const std::vector<file_descriptor> sockets = std::exchange(listening, {});
    for (int served = 1; served < made->num_local_;) {
      const int at = sockets[std::size_t(served / callers_of_socket)].get();
      const file_descriptor peer(::accept4(at, nullptr, nullptr, SOCK_CLOEXEC));
      if (peer.get() < 0) return fail("accept", errno);
      if (!is_mine(peer.get())) continue;
      if (!send_descriptor(peer.get(), memory.get())) return fail("sending memory", errno);
      ++served;
    }
  }
  void take() {
    // The descriptor is on its way. If the first rank fails, its end of the connection closes.
    pollfd waits{.fd = socket.get(), .events = POLLIN, .revents = 0};
    while (::poll(&waits, 1, -1) < 0 && errno == EINTR) {
    }
    memory = file_descriptor(receive_descriptor(socket.get()));
    if (memory.get() < 0) fail("receiving memory", errno);
  }
  void map() {
    const std::int64_t own_bytes = part_bytes(made->num_slots_);
    if (exceeds_file_size(made->bytes_)) return fail("ulimit -f", EFBIG);
    // Each rank allocates its own part, so that the pages are near its core.
    if (!allocate(memory.get(), made->local_ * own_bytes, own_bytes))
      return fail("fallocate", errno);
    void* const mapped =
        ::mmap(nullptr, made->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (mapped == MAP_FAILED) return fail("mmap", errno);
    made->memory_ = static_cast<std::byte*>(mapped);
    head& mine = *new (part_of(made->local_)) head{};
    sched_getaffinity(0, sizeof mine.cores, &mine.cores);
    mine.probe = single_copy_probe::of(made->word_);
    for (int slot = 0; slot < made->num_slots_; ++slot)
      made->region(made->local_, slot).set_process(mine.probe.process);
  }
  // Called after all ranks have mapped the memory.
  void look_at_others() {
    cpu_set_t all;
    CPU_ZERO(&all);
    bool copies = true;
    for (int r = 0; r < made->num_local_; ++r) {
      CPU_OR(&all, &all, &head_of(r).cores);
      copies = copies && (r == made->local_ || head_of(r).probe.can_copy());
    }
    made->core_per_rank_ = CPU_COUNT(&all) >= made->num_local_;
    verdict_of(made->local_).store(copies ? can_copy : cannot_copy, std::memory_order_release);
    // All other ranks are about to store theirs. Some may still wait for MPI messages from this
    // rank.
    made->single_copy_ = true;
    for (int r = 0; r < made->num_local_; ++r) {
      std::uint32_t theirs = not_tried;
      while ((theirs = verdict_of(r).load(std::memory_order_acquire)) == not_tried) {
        int ignored = 0;
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &ignored, MPI_STATUS_IGNORE);
        sched_yield();
      }
      made->single_copy_ = made->single_copy_ && theirs == can_copy;
    }
  }
  std::byte* part_of(int local) { return made->memory_ + local * part_bytes(made->num_slots_); }
  std::atomic_ref<std::uint32_t> verdict_of(int local) {
    return std::atomic_ref(head_of(local).copies);
  }
  head& head_of(int local) { return *std::launder(reinterpret_cast<head*>(part_of(local))); }

  static file_descriptor open_socket() {
    return file_descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
};

node_memory::making::making(MPI_Comm comm, std::shared_ptr<const placement> hosts, std::uint64_t id,
                            std::int64_t most_bytes) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  const int host = hosts->node_of(rank);
  mine_ = std::make_unique<part>(comm, id, most_bytes);
  mine_->fullest = hosts->facts().most_ranks;
  node_memory& made = *mine_->made;
  made.host_ = host;
  made.local_ = hosts->local_rank(rank);
  made.num_local_ = hosts->ranks_on(host);
  made.hosts_ = std::move(hosts);
  made.word_ = id + std::uint64_t(made.local_);  // differs on each rank
  if (!mine_->alone() && mine_->leads() && most_bytes > 0) mine_->listen();
}

node_memory::making::~making() = default;

std::int64_t node_memory::making::offered_bytes() const {
  return mine_->failed ? 0 : mine_->most_bytes;
}

std::unique_ptr<node_memory> node_memory::making::finish(std::int64_t agreed_bytes,
                                                         std::string& problem) {
  part& mine = *mine_;
  problem = mine.problem;
  if (mine.fullest < 2) return nullptr;
  const std::int64_t of_each = agreed_bytes / mine.fullest - head_bytes;
  const std::int64_t slots = std::clamp<std::int64_t>(of_each / cell_region::bytes, 0, most_slots);
  if (slots == 0) return nullptr;
  mine.made->num_slots_ = int(slots);
  mine.made->bytes_ = std::size_t(part_bytes(int(slots))) * std::size_t(mine.made->num_local_);
  if (!mine.alone()) mine.meet();
  bool well = mine.all_well();
  if (well) {
    if (!mine.alone()) {
      mine.leads() ? mine.hand_out() : mine.take();
      if (!mine.failed) mine.map();
    }
    well = mine.all_well();
  }
  problem = mine.problem;
  if (!well) return nullptr;
  if (!mine.alone()) mine.look_at_others();
  return std::move(mine.made);
}

node_memory::~node_memory() {
  if (memory_) ::munmap(memory_, bytes_);
}

cell_region node_memory::region(int local, int slot) const {
  return cell_region(memory_ + local * part_bytes(num_slots_) + head_bytes +
                     slot * cell_region::bytes);
}

node_memory::use::use(node_memory& of, int slot, const rank_map& ranks, int num_ranks,
                      cell_regions room)
    : regions_(std::move(room)) {
  for (int r = 0; r < num_ranks; ++r) {
    const int local = of.local_of(ranks[r]);
    if (local < 0) continue;
    regions_.add(r, of.memory_ ? of.region(local, slot) : cell_region());
    if (local == of.local_) rank_ = r;
  }
  // Map the pages now, so that the first calls are no slower than later calls. Kernels that lack
  // this advice leave the first calls slower.
  for (const cell_regions::entry& e : regions_)
    if (e.region.memory())
      ::madvise(e.region.memory(), std::size_t(cell_region::bytes),
                e.rank == rank_ ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

std::uint64_t node_memory::use::leave() {
  std::uint64_t others = 0;
  for (const cell_regions::entry& e : regions_) {
    if (e.rank == rank_ || !e.region.memory()) continue;
    e.region.readers_left().fetch_add(1, std::memory_order_release);
    ++others;
  }
  return others;
}

}  // namespace railpass::internal
