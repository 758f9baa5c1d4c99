// SPDX-License-Identifier: BSL-1.0
#include "railpass/base/units.hpp"

#include "support/catch.hpp"

using namespace railpass;

TEST_CASE("sizes are read with binary and decimal units") {
  CHECK(parse_bytes("0") == 0);
  CHECK(parse_bytes("512B") == 512);
  CHECK(parse_bytes("8KiB") == 8192);
  CHECK(parse_bytes("64K") == 65536);
  CHECK(parse_bytes("2MB") == 2000000);
  CHECK(parse_bytes("1GiB") == 1 << 30);
}

TEST_CASE("what is not a size is refused") {
  for (const char* text : {"", "K", "-1", "1.5K", "8 KiB", "8kib", "9223372036854775807K", "0x10"})
    CHECK_FALSE(parse_bytes(text).has_value());
}

TEST_CASE("formatted sizes are read back exactly") {
  for (std::int64_t bytes : {0LL, 1LL, 1000LL, 1024LL, 65536LL, 65537LL, 3LL << 20, 5LL << 40})
    CHECK(parse_bytes(format_bytes(bytes)) == bytes);
  CHECK(format_bytes(8192) == "8KiB");
}

TEST_CASE("times are shown with three digits") {
  CHECK(format_seconds(0.0000123) == "12.3 us");
  CHECK(format_seconds(0.00099999) == "1.00 ms");
  CHECK(format_seconds(178.3e-3) == "178 ms");
}
