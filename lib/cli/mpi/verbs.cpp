// SPDX-License-Identifier: BSL-1.0
#include "lib/cli/verb.hpp"

namespace railpass::internal::cli {

std::span<const named_verb> verbs() {
  static constexpr named_verb all[] = {
#define RAILPASS_VERB(name, summary) {#name, summary, true, &name##_verb, nullptr},
#define RAILPASS_MPI_VERB(name, summary) {#name, summary, true, &name##_verb, nullptr},
#define RAILPASS_BUILD_VERB(name, summary) {#name, summary, false, &name##_verb, nullptr},
#include "lib/cli/verbs.def"
#undef RAILPASS_VERB
#undef RAILPASS_MPI_VERB
#undef RAILPASS_BUILD_VERB
  };
  return all;
}

}  // namespace railpass::internal::cli
