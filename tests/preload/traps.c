// SPDX-License-Identifier: BSL-1.0
//
// Preloaded into programs that do not do it themselves: floating-point traps from the start on, as
// what compilers make of -ffpe-trap=invalid,zero,overflow.
#define _GNU_SOURCE
#include <fenv.h>

__attribute__((constructor)) static void trap(void) {
  feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
}
