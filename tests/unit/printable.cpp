// SPDX-License-Identifier: BSL-1.0
#include "railpass/base/printable.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <random>

using railpass::printable;

TEST_CASE("text that commands no terminal is shown as it is") {
  for (const std::string text : {"", "broadcast:binomial+segment_bytes=8KiB", "Größe 漢字 🚂",
                                 "a\\x1b", "\u00a0\u00ff\u2027\ufffd"})
    CHECK(printable(text) == text);
}

TEST_CASE("what terminals obey is shown escaped") {
  CHECK(printable("\033[2J\a") == "\\x1b[2J\\x07");
  CHECK(printable("one\ntwo\tthree\r") == "one\\ntwo\\tthree\\x0d");
  CHECK(printable(std::string_view("\0\x7f", 2)) == "\\x00\\x7f");
  CHECK(printable("\u009b31m") == "\\xc2\\x9b31m");     // the CSI of one code point
  CHECK(printable("a\u202eb") == "a\\xe2\\x80\\xaeb");  // the rest would read from right to left
  CHECK(printable("\u2028") == "\\xe2\\x80\\xa8");
}

TEST_CASE("what is no UTF-8 is shown byte by byte") {
  CHECK(printable("\x9b\xff") == "\\x9b\\xff");
  CHECK(printable("\xc3") == "\\xc3");                             // cut short
  CHECK(printable("\xc0\x9b") == "\\xc0\\x9b");                    // longer than need be
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // half a pair of UTF-16
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // past the last code point
  CHECK(printable("\xe6\xbc"
                  "a") ==
        "\\xe6\\xbc"
        "a");
}

TEST_CASE("any bytes become text that is shown as it is") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 12, ' ');
    for (char& c : bytes) c = char(random() % 4 ? 0x80 + random() % 128 : random());
    const std::string shown = printable(bytes);
    CHECK(printable(shown) == shown);
    CHECK(std::ranges::none_of(shown, [](char c) { return c >= 0 && c < ' '; }));
  }
}
