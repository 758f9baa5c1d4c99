// SPDX-License-Identifier: BSL-1.0
//
// Preloaded into programs that do not do it themselves: floating-point traps from the start on, as
// what compilers make of -ffpe-trap=invalid,zero,overflow; with ALL also those that few MPI
// libraries survive themselves, of inexact results and of denormal numbers, once MPI has begun.
#define _GNU_SOURCE
#include <fenv.h>

__attribute__((constructor)) static void trap(void) {
  feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
}

#ifdef ALL
#include <dlfcn.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

int MPI_Init(int* argc, char*** argv) {
  int (*const begin)(int*, char***) = (int (*)(int*, char***))dlsym(RTLD_NEXT, "MPI_Init");
  const int code = begin(argc, argv);
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_ALL_EXCEPT);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() & ~0x1f80u);  // every mask, that of denormal operands, too
#endif
  return code;
}
#endif
