// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cfenv>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace railpass {

/// While one of these lives, this thread computes as C does by default: rounding to nearest,
/// without traps. Then the program's environment is back, with the exceptions that the program has
/// raised and no others. For what railpass computes on a program's threads; never held around
/// operations of the program, nor around MPI calls that run these: their traps and rounding are the
/// program's. Threads begin with the environment of the thread that makes them.
class own_float_environment {
 public:
  own_float_environment() {
#if defined(__x86_64__)
    // Hardly any program changes it, and two of these instructions take about 2 ns. The compiler
    // uses no other unit but for long double, which railpass does not compute with.
    constexpr unsigned raised = 0x3f, by_default = 0x1f80;
    control_ = _mm_getcsr();
    if ((control_ & ~raised) == by_default) return;
    is_changed_ = true;
#endif
    std::fegetenv(&programs_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~own_float_environment() {
#if defined(__x86_64__)
    if (!is_changed_) {
      if (_mm_getcsr() != control_) _mm_setcsr(control_);
      return;
    }
#endif
    std::fesetenv(&programs_);
  }
  own_float_environment(const own_float_environment&) = delete;
  own_float_environment& operator=(const own_float_environment&) = delete;

 private:
#if defined(__x86_64__)
  unsigned control_ = 0;
  bool is_changed_ = false;
#endif
  std::fenv_t programs_{};
};

}  // namespace railpass
