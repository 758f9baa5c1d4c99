// SPDX-License-Identifier: BSL-1.0
//
// Threads of railpass that nobody waits for may need digests while the process ends. A program of
// its own, because only the first use of OpenSSL in a process decides.
#include "lib/store/record.hpp"
#include "support/catch.hpp"

#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

using railpass::internal::store::digest_of;

TEST_CASE("digests can be made until the process has ended") {
  const pid_t child = ::fork();
  if (child == 0) {
    // Handlers run in reverse order, so this handler runs after those of libraries used from here
    // on.
    std::atexit([] { ::_exit(digest_of("abc") == "ba7816bf8f01cfea" ? 0 : 1); });
    if (digest_of("abc").empty()) ::_exit(2);
    std::exit(3);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}
