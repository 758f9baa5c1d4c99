// SPDX-License-Identifier: BSL-1.0
//
// Two ranks measure the rails between them, with the messages, packets and waiting of any others.
#pragma once

#include "lib/rails/open_transport.hpp"
#include "railpass/transport/sampling.hpp"

namespace railpass::internal {

/// Measures the rails to `peer`, which calls serve_measurement meanwhile. Takes about `budget_s`
/// seconds, or the time of a few messages. No other messages use the rails. Throws error if a rail
/// fails or the peer does not answer.
transport::link_samples measure_link(open_transport& rails, int peer, double budget_s);
void serve_measurement(open_transport& rails, int peer, double budget_s);

}  // namespace railpass::internal
