// SPDX-License-Identifier: BSL-1.0
//
// Thresholds, times and sets of rails from samples, compared with networks of known properties.
#include "lib/files/files.hpp"
#include "lib/rails/tcp/choice.hpp"
#include "railpass/transport/sampling.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

#include <functional>
#include <random>

using namespace railpass::transport;

namespace {

using time_of_size = std::function<double(double)>;

struct random_network {
  std::mt19937_64 random;

  double uniform(double a, double b) {
    return std::uniform_real_distribution<double>(a, b)(random);
  }
  double log_uniform(double a, double b) { return std::exp(uniform(std::log(a), std::log(b))); }

  // LogGP with knees: a latency, and seconds per byte that change at random sizes.
  time_of_size piecewise(double latency_s, double s_per_byte, int knees) {
    std::vector<std::pair<double, double>> slopes{{0, s_per_byte}};
    double at = log_uniform(100, 4000);
    for (int k = 0; k < knees; ++k) {
      slopes.push_back({at, s_per_byte * uniform(0.5, 2)});
      at *= uniform(3, 20);
    }
    return [latency_s, slopes](double bytes) {
      double seconds = latency_s;
      for (std::size_t i = 0; i < slopes.size(); ++i) {
        const double end = i + 1 < slopes.size() ? slopes[i + 1].first : 1e300;
        if (bytes > slopes[i].first)
          seconds += (std::min(bytes, end) - slopes[i].first) * slopes[i].second;
      }
      return seconds;
    };
  }
};

std::vector<double> powers_of_two(double from, double to) {
  std::vector<double> sizes;
  for (double s = from; s <= to; s *= 2) sizes.push_back(s);
  return sizes;
}

time_curve sampled(const time_of_size& truth, const std::vector<double>& sizes) {
  time_curve curve;
  for (const double s : sizes) curve.push_back({s, truth(s)});
  return curve;
}

// The largest loss at any size if `before` is used up to the threshold and `after` above it,
// against using the faster one at each size.
double worst_loss(const time_of_size& before, const time_of_size& after, threshold t, double most) {
  double worst = 0;
  for (double s = 16; s <= most; s *= 1.01) {
    const double taken_s = s < t.bytes() ? before(s) : after(s);
    worst = std::max(worst, taken_s / std::min(before(s), after(s)) - 1);
  }
  return worst;
}

}  // namespace

TEST_CASE("a crossing: always, never, in between, and not where one measurement was lucky") {
  const std::vector<double> sizes = powers_of_two(64, 65536);
  const auto flat = sampled([](double) { return 1e-5; }, sizes);
  const auto growing = sampled([](double s) { return 1e-9 * s; }, sizes);
  const threshold found = crossing(growing, flat, 0);
  CHECK(found.bytes() == Approx(10000));
  CHECK(found.up_to(65536) == Approx(10000).margin(1));
  CHECK(found.up_to(4096) == 4096);
  // A required gain moves the crossing up.
  CHECK(crossing(growing, flat, 0.2).bytes() == Approx(12500));
  CHECK(crossing(growing, flat).bytes() == Approx(10000 / (1 - least_gain)));
  // In reverse, the second curve is faster from the start.
  CHECK(crossing(flat, growing).is_always());
  const auto more = sampled([](double s) { return 1e-5 + s * 1e-9; }, sizes);
  CHECK(crossing(more, growing).is_always());
  CHECK(crossing(growing, more).is_never());
  CHECK(crossing(growing, growing).is_never());
  CHECK(crossing({}, growing).is_never());
  CHECK(crossing({}, {}).is_never());
  CHECK(threshold::never().up_to(65536) == 65536);
  CHECK(threshold::always().up_to(65536) == 0);
  // Lucky measurements at the end or at the start make no crossing.
  const auto slower = sampled([](double s) { return 2e-9 * s + 1e-6; }, sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto lucky = slower;
    for (std::size_t k = i; k < std::min(i + 2, sizes.size() - 3); ++k)
      lucky[k].seconds = growing[k].seconds / 2;
    CHECK(crossing(growing, lucky).is_never());
    auto alike = growing;
    alike[i].seconds *= 0.95;
    CHECK(crossing(growing, alike).is_never());
    // A single clear measurement counts if no other contradicts it.
    alike[i].seconds *= 0.98;
    CHECK_FALSE(crossing(growing, alike).is_never());
    // A single measurement does not count if samples scatter that much, there or everywhere.
    alike[i].error_s = 0.05 * alike[i].seconds;
    CHECK(crossing(growing, alike).is_never());
    alike[i].error_s = 0;
    auto scattered = growing;
    for (auto& p : scattered) p.error_s = 0.05 * p.seconds;
    CHECK(crossing(scattered, alike).is_never());
  }
  // Only sizes in both curves count.
  const time_curve few{flat[0], flat[9], flat[10]};
  CHECK(crossing(growing, few).bytes() > 64);
  CHECK(crossing(growing, few).bytes() < sizes[9]);
}

TEST_CASE("thresholds lose little more than the least gain on networks with random knees") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  random_network n{std::mt19937_64(seed)};
  const std::vector<double> sizes = powers_of_two(16, 65536);
  int found = 0;
  for (int round = 0; round < 1000; ++round) {
    INFO("round " << round);
    // Both variants use the same network. One costs more per byte, the other a constant (a copy
    // against a round trip, or against the cost of describing pieces).
    const auto base = n.piecewise(n.log_uniform(1e-6, 1e-4), 1 / n.log_uniform(3e7, 3e9), 3);
    const auto per_byte = n.piecewise(0, 1 / n.log_uniform(4e9, 2e10), 3);
    const double at_once_s = n.log_uniform(5e-8, 5e-5);
    const time_of_size before = [&](double s) { return base(s) + per_byte(s); };
    const time_of_size after = [&](double s) { return base(s) + at_once_s; };
    const threshold t = crossing(sampled(before, sizes), sampled(after, sizes));
    // A gain at a single size must be twice as large.
    CHECK(worst_loss(before, after, t, 65536) <= 3 * least_gain);
    found += !t.is_always() && !t.is_never();
  }
  CHECK(found > 100);
}

namespace {

// The former rule: the first of three consecutive sizes at which `after` is faster.
threshold three_in_a_row(const time_curve& before, const time_curve& after) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    bool quicker = true;
    for (std::size_t k = i; k < std::min(i + 3, before.size()); ++k)
      quicker &= after[k].seconds < before[k].seconds;
    if (quicker) return i == 0 ? threshold::always() : threshold::from(before[i].bytes);
  }
  return threshold::never();
}

}  // namespace

TEST_CASE("noise moves thresholds less than it did, and costs less") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  random_network n{std::mt19937_64(seed)};
  const std::vector<double> sizes = powers_of_two(64, 65536);
  // Octaves between the smallest and largest threshold of several measurements.
  const auto octaves = [](const std::vector<threshold>& all) {
    double least = 1e300, most = 0;
    for (const threshold& t : all) {
      const double bytes = std::clamp(t.bytes(), 64.0, 131072.0);
      least = std::min(least, bytes), most = std::max(most, bytes);
    }
    return std::log2(most / least);
  };
  double moved = 0, moved_before = 0, lost = 0, lost_before = 0;
  int crossed = 0, alike = 0, taken_for_more = 0;
  for (int round = 0; round < 400; ++round) {
    const double latency_s = n.log_uniform(5e-6, 5e-5), s_per_byte = 1 / n.log_uniform(1e8, 3e9);
    // A true crossing somewhere, or two variants within 1 % of each other.
    const bool same = round % 2 == 0;
    const double at = n.log_uniform(300, 20000), per_byte = s_per_byte * n.uniform(0.2, 1);
    const time_of_size before = [&](double s) {
      return latency_s + s * (s_per_byte + (same ? 0 : per_byte));
    };
    const time_of_size after = [&](double s) {
      return same ? before(s) * (1 + 0.01 * std::sin(s)) : before(s) + (at - s) * per_byte;
    };
    const double noise = n.log_uniform(0.005, 0.1);
    const auto measured = [&](const time_of_size& truth) {
      time_curve curve;
      for (const double s : sizes) {
        std::vector<double> times_s(15);
        for (double& x : times_s)
          x = truth(s) * std::exp(std::normal_distribution<double>(0, noise)(n.random)) *
              (n.random() % 10 == 0 ? n.uniform(1, 10) : 1);
        curve.push_back({s, railpass::median(times_s),
                         1.2533 * railpass::robust_spread(times_s) / std::sqrt(15.0)});
      }
      return curve;
    };
    std::vector<threshold> now, then;
    for (int repeat = 0; repeat < 5; ++repeat) {
      const time_curve b = measured(before), a = measured(after);
      now.push_back(crossing(b, a));
      then.push_back(three_in_a_row(b, a));
      lost += worst_loss(before, after, now.back(), 65536);
      lost_before += worst_loss(before, after, then.back(), 65536);
      alike += same;
      taken_for_more += same && !now.back().is_never();
    }
    moved += octaves(now);
    moved_before += octaves(then);
    crossed += !same && !now[0].is_never() && !now[0].is_always();
  }
  INFO("octaves " << moved << ", before " << moved_before << "; lost " << lost << ", before "
                  << lost_before);
  CHECK(moved < 0.5 * moved_before);
  CHECK(lost < lost_before);
  CHECK(taken_for_more < 0.1 * alike);
  CHECK(crossed > 100);
}

TEST_CASE("the time of a rail is that of its samples, monotone, and without the asking") {
  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  random_network n{std::mt19937_64(seed)};
  for (int round = 0; round < 300; ++round) {
    const auto base = n.piecewise(n.log_uniform(1e-6, 1e-4), 1 / n.log_uniform(3e7, 3e9), 4);
    const double asking = n.log_uniform(1e-6, 1e-4);
    const time_curve eager = sampled(base, powers_of_two(64, 65536));
    const time_curve rendezvous =
        sampled([&](double s) { return base(s) + asking; }, powers_of_two(4096, 1 << 22));
    CHECK(handshake_s(eager, rendezvous) == Approx(asking));
    const transfer_time t = delivery_time(eager, rendezvous);
    for (const auto& p : eager) CHECK(t.time_s(p.bytes) == Approx(p.seconds).epsilon(1e-9));
    for (const auto& p : rendezvous)
      CHECK(t.time_s(p.bytes) == Approx(base(p.bytes)).epsilon(1e-6));
    // Two neighbours do not determine the rate of larger sizes.
    time_curve noisy = rendezvous;
    noisy[noisy.size() - 2].seconds *= 1.1;
    const double beyond = delivery_time(eager, noisy).bytes_per_s();
    CHECK(beyond == Approx(t.bytes_per_s()).epsilon(1e-6));
    for (double s = 0; s < 1e7; s = s * 1.5 + 1) CHECK(t.time_s(s * 1.5 + 1) > t.time_s(s));
    CHECK(t.latency_s() >= 0);
    CHECK(t.latency_s() <= eager.front().seconds);
  }
  CHECK_THROWS_AS(delivery_time({{64, 1e-5}}, {}), railpass::error);
  CHECK(delivery_time({}, {{64, 1e-5}, {128, 2e-5}}).time_s(128) == Approx(2e-5));
}

TEST_CASE("rails that share a bottleneck are not combined") {
  const std::vector<joint_sample> apart{{{0}, 4e7}, {{1}, 1e7}, {{0, 1}, 4.9e7}};
  CHECK(rails_that_combine(apart, 2) == std::vector<int>{0, 1});
  CHECK(additivity(apart, apart[2]).value() == Approx(0.98));
  const std::vector<joint_sample> shared{{{0}, 4e7}, {{1}, 4.1e7}, {{0, 1}, 4.2e7}};
  CHECK(rails_that_combine(shared, 2) == std::vector<int>{1});
  CHECK(additivity(shared, shared[2]).value() == Approx(4.2 / 8.1));
  // Slower together than one alone.
  CHECK(rails_that_combine({{{0}, 4e7}, {{1}, 4e7}, {{0, 1}, 2e7}}, 2) == std::vector<int>{0});
  // Two of three share a link.
  CHECK(rails_that_combine({{{0}, 4e7},
                            {{1}, 4e7},
                            {{2}, 3e7},
                            {{0, 1}, 4e7},
                            {{0, 2}, 7e7},
                            {{1, 2}, 7e7},
                            {{0, 1, 2}, 7.1e7}},
                           3)
            .size() == 2);
  CHECK(rails_that_combine({}, 3) == std::vector<int>{0, 1, 2});
  CHECK(!additivity({{{0, 1}, 1e7}}, {{0, 1}, 1e7}).has_value());
}

namespace {

// Samples of two rails with these rates, as sampling would measure them.
link_samples samples_of(double latency_s, double asking_s, const std::vector<double>& rates,
                        double joint, double copy_s_per_byte = 2e-10) {
  link_samples s;
  const std::vector<double> small = powers_of_two(64, 65536), large = powers_of_two(4096, 1 << 22);
  for (std::size_t r = 0; r < rates.size(); ++r) {
    s.joint.push_back({{int(r)}, rates[r]});
    const auto at = [&, r](double more_s, double s_per_byte) {
      return [=, &rates](double b) { return latency_s + more_s + b / rates[r] + b * s_per_byte; };
    };
    s.rails.push_back({.copied = sampled(at(0, 4e-9), small),
                       .pieces = sampled(at(8e-6, 0), small),
                       .rendezvous = sampled(at(asking_s, 0), large),
                       .two_packets = sampled(at(4e-5, 0), small),
                       .aggregate = sampled(at(0, 4e-9), small)});
  }
  s.memory_copy = sampled([&](double b) { return 1e-7 + copy_s_per_byte * b; }, small);
  if (rates.size() > 1) {
    s.joint.push_back({{0, 1}, joint});
    s.together = sampled([&](double b) { return latency_s + asking_s + b / joint; }, large);
  }
  return s;
}

}  // namespace

TEST_CASE("samples become thresholds, a smallest part, and a plan") {
  const link_findings f = analyse(samples_of(2e-5, 3e-5, {5e7, 1.25e7}, 6.25e7));
  // The size from which a constant cost is clearly less than a cost per byte.
  const auto from = [](double at_once_s, double rate) {
    const double part = 1 - least_gain;
    return (2e-5 + at_once_s - part * 2e-5) / (part * (1 / rate + 4e-9) - 1 / rate);
  };
  for (std::size_t r = 0; r < 2; ++r) {
    const double rate = r == 0 ? 5e7 : 1.25e7;
    CHECK(f.rails[r].pieces.bytes() == Approx(from(8e-6, rate)));
    CHECK(f.rails[r].two_packets.bytes() == Approx(from(4e-5, rate)));
    CHECK(f.rails[r].rendezvous.is_never());  // within the eager limit
    CHECK(f.profile.rails[r].thresholds.aggregate_bytes == Approx(from(4e-5, rate)).margin(1));
  }
  // Splitting pays once 3 % of the time exceeds the cost of asking; larger messages are never
  // eager.
  CHECK(f.split.bytes() > 4096);
  CHECK(f.split.bytes() < 65536);
  for (const rail_profile& p : f.profile.rails) {
    CHECK(!p.spare);
    CHECK(p.handshake_s == Approx(3e-5 - 8e-6));
    // A rail carries whole messages only up to the size of a part of its own.
    CHECK(p.thresholds.eager_bytes == f.profile.least_bytes);
    CHECK(p.thresholds.copy_bytes == f.profile.least_bytes);
    CHECK(p.thresholds.eager_bytes <= std::int64_t(f.split.bytes()));
  }
  CHECK(f.profile.least_bytes == Approx(f.split.bytes() / 5).epsilon(0.05));
  const message_plan small = plan_of(f.profile, 1000), large = plan_of(f.profile, 10000000);
  CHECK(small.eager);
  CHECK(small.bytes == std::vector<std::int64_t>{1000, 0});
  CHECK(!large.eager);
  CHECK(large.bytes[0] == Approx(8000000).epsilon(0.01));
  CHECK(large.bytes[0] + large.bytes[1] == 10000000);
  CHECK(large.seconds == Approx(5e-5 + 1e7 / 6.25e7).epsilon(0.01));

  // Rails with a common bottleneck: the slower rail is spare, and eager messages go as far as
  // useful.
  const link_findings shared = analyse(samples_of(2e-5, 5e-5, {5e7, 4.8e7}, 5e7, 4e-9));
  CHECK(!shared.profile.rails[0].spare);
  CHECK(shared.profile.rails[1].spare);
  CHECK(shared.split.is_never());
  const double asked_first =
      (7e-5 - (1 - least_gain) * 2.81e-5) / ((1 - least_gain) * 2.4e-8 - 2e-8);
  CHECK(shared.rails[0].rendezvous.bytes() == Approx(asked_first).epsilon(0.01));
  CHECK(shared.profile.rails[0].thresholds.eager_bytes == Approx(asked_first).epsilon(0.01));
  CHECK(plan_of(shared.profile, 10000000).bytes == std::vector<std::int64_t>{10000000, 0});

  // One rail.
  const link_findings one = analyse(samples_of(1e-5, 1e-3, {5e7}, 0));
  CHECK(one.rails[0].rendezvous.is_never());
  CHECK(one.profile.rails[0].thresholds.eager_bytes == 65536);
  CHECK(plan_of(one.profile, 10000000).bytes == std::vector<std::int64_t>{10000000});
  link_samples none;
  none.rails.resize(1);
  CHECK_THROWS_AS(analyse(none), railpass::error);
}

TEST_CASE("a file of samples is read back as it was, and refused where it is damaged") {
  rails_measurement m{
      .railpass_version = "0.1.0",
      .measured_at = "2026-01-31T12:00:00Z",
      .links = {{.same_host = false,
                 .marks = {"a: eth0 10.0.0.1/8", "a: eth1 10.1.0.1/8", "b: eth0", "b"},
                 .samples = samples_of(2e-5, 3e-5, {5e7, 1.25e7}, 6.25e7)}}};
  const std::string text = railpass::internal::files::to_json(m);
  const rails_measurement read = railpass::internal::files::parse_rails(text, "file");
  CHECK(railpass::internal::files::to_json(read) == text);
  CHECK(read.links[0].marks == m.links[0].marks);
  // Bitwise equal, so that all ranks compute the same.
  const link_profile a = analyse(m.links[0].samples).profile,
                     b = analyse(read.links[0].samples).profile;
  CHECK(a.least_bytes == b.least_bytes);
  CHECK(a.rails[0].time.bytes_per_s() == b.rails[0].time.bytes_per_s());
  CHECK(a.rails[1].thresholds.eager_bytes == b.rails[1].thresholds.eager_bytes);

  const auto refused = [&](const std::string& from, const std::string& to, const char* why) {
    std::string damaged = text;
    const std::size_t at = damaged.find(from);
    REQUIRE(at != std::string::npos);
    damaged.replace(at, from.size(), to);
    try {
      railpass::internal::files::parse_rails(damaged, "file");
      FAIL_CHECK("accepted: " << to);
    } catch (const railpass::error& e) {
      INFO(e.what());
      CHECK(std::string(e.what()).find(why) != std::string::npos);
      CHECK(std::string(e.what()).find("file") == 0);
    }
  };
  refused("\"railpass rails\"", "\"railpass profile\"", "expected a file of format");
  refused("\"version\": 1", "\"version\": 2", "newer");
  refused("\"same_host\": false", "\"same_host\": 0", "true or false");
  refused("\"bytes\": 128", "\"bytes\": 32", "growing");
  refused("\"seconds\": ", "\"seconds\": -", "links[0]");
  refused("\"error_s\": ", "\"error_s\": -1", "error_s");
  refused("\"joint\"", "\"joined\"", "joined");
  refused("\"bytes_per_s\": 5", "\"bytes_per_s\": -5", "bytes_per_s");

  const auto seed = railpass::test::new_seed();
  INFO("repeat with TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 500; ++round) {
    std::string damaged = text.substr(0, round % 2 == 0 ? text.size() : random() % text.size());
    for (unsigned i = 0; i < 3 && !damaged.empty(); ++i)
      damaged[random() % damaged.size()] = char(random());
    try {
      for (const measured_link& l : railpass::internal::files::parse_rails(damaged, "file").links)
        plan_of(analyse(l.samples).profile, 1 << 20);  // of everything that could be read
    } catch (const railpass::error&) {
    }
  }
}

TEST_CASE("networks in which all hosts have one address are rails") {
  using railpass::internal::tcp::host_interface;
  const auto at = [](const char* host, const char* name, const char* address, const char* network) {
    return host_interface{host, name, address, network, std::string(name) == "lo", ""};
  };
  const std::vector<std::string> hosts{"a", "b", "c"};
  std::vector<host_interface> all;
  for (const char* h : {"a", "b", "c"}) {
    all.push_back(at(h, "lo", "127.0.0.1", "127.0.0.0/8"));
    all.push_back(at(h, "eth0", (std::string("10.0.0.") + h).c_str(), "10.0.0.0/24"));
    all.push_back(at(h, "docker0", "172.17.0.1", "172.17.0.0/16"));
  }
  all.push_back(at("a", "eth1", "10.1.0.1", "10.1.0.0/24"));
  all.push_back(at("b", "eth1", "10.1.0.2", "10.1.0.0/24"));
  for (const char* h : {"a", "b", "c"}) {
    all.push_back(at(h, "eth2", (std::string("10.2.0.") + h).c_str(), "10.2.0.0/24"));
    all.push_back(at(h, "eth3", (std::string("10.2.0.1") + h).c_str(), "10.2.0.0/24"));
  }
  for (const host_interface& i : all) {
    const auto v = verdict_on(i, all, hosts);
    INFO(i.host << ' ' << i.name << ": " << v.why);
    CHECK(v.used == (i.name == "eth0"));
    CHECK(verdict_on(i, all, {"a"}).used == false);
    const char* const why = i.name == "lo"        ? "this host only"
                            : i.name == "docker0" ? "172.17.0.1"
                            : i.name == "eth0"    ? "all 3 hosts"
                            : i.name == "eth1"    ? "host c has no address"
                                                  : "several addresses";
    CHECK(v.why.find(why) != std::string::npos);
  }
}
