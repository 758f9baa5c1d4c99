// SPDX-License-Identifier: BSL-1.0
#ifndef RAILPASS_CATCH2_V3
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
