// SPDX-License-Identifier: BSL-1.0
//
// Preloaded: every fsync() takes a second, as on a disk or a network that is far too busy.
#include <unistd.h>

int fsync(int file) {
  (void)file;
  sleep(1);
  return 0;
}
