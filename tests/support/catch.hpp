// SPDX-License-Identifier: BSL-1.0
// Catch2 version 2 (Debian 12) or 3 (newer distributions).
#pragma once

#ifdef RAILPASS_CATCH2_V3
#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>

#include <string>
/// Version 3's name.
inline auto ContainsSubstring(const std::string& text) { return Catch::Contains(text); }
#endif
