// SPDX-License-Identifier: BSL-1.0
//
// Who waits for rails sleeps only where all of them can wake it, and looks less long before that
// the less often it was worth it.
#include "lib/rails/waiting.hpp"

#include "support/catch.hpp"

#include <string>
#include <unistd.h>

using namespace railpass;
using namespace railpass::internal;

namespace {

// A rail over which nothing ever comes.
class quiet_rail final : public transport::packet_rail {
 public:
  explicit quiet_rail(int descriptor) : descriptor_(descriptor) {}

  void send(int, std::vector<transport::outgoing>&, transport::packet_sink&) override {}
  std::int64_t under_way_bytes(int) override { return 0; }
  std::int64_t under_way_bytes() override { return 0; }
  bool poll(transport::packet_sink&) override { return false; }
  void abandon() override {}
  int descriptor() const override { return descriptor_; }
  const std::string& name() const override { return name_; }

 private:
  int descriptor_;
  std::string name_ = "quiet";
};

}  // namespace

TEST_CASE("who waits looks for a while, then sleeps, and sooner if nothing came") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::vector<std::unique_ptr<transport::packet_rail>> rails;
  rails.push_back(std::make_unique<quiet_rail>(ends[0]));
  rails.push_back(std::make_unique<quiet_rail>(ends[0]));
  waiting w(rails);
  CHECK(!w.give_way(512));
  CHECK(w.give_way(513));
  CHECK(!w.give_way(256));
  CHECK(w.give_way(257));
  for (int k = 0; k < 3; ++k) {
    CHECK(!w.give_way(128));
    CHECK(w.give_way(129));
  }
  CHECK(w.give_way(3'000'000'000u));  // more than an int holds

  // One that nothing but polling lets advance.
  rails.push_back(std::make_unique<quiet_rail>(-1));
  CHECK(!waiting(rails).give_way(1000000));
  close(ends[0]);
  close(ends[1]);
}
