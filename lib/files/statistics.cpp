// SPDX-License-Identifier: BSL-1.0
#include "lib/files/files.hpp"
#include "lib/files/shared_parts.hpp"

namespace railpass::internal::files {

namespace {

constexpr std::string_view format = "railpass statistics";
constexpr int version = 1;

void put_belief(json& j, const char* key, const std::optional<select::belief_record>& b) {
  if (b) j[key] = {{"mean_s", b->mean_s}, {"spread", b->spread}};
}

std::optional<select::belief_record> read_belief(const json_reader& r, std::string_view key) {
  if (!r.has(key)) return std::nullopt;
  const json_reader b = r.field(key);
  b.expect_fields({"mean_s", "spread"});
  return select::belief_record{.mean_s = b.number("mean_s"), .spread = b.number("spread")};
}

void put_quantiles(json& j, const std::optional<select::time_quantiles>& q) {
  if (q) j["quantiles"] = {{"low_s", q->low_s}, {"median_s", q->median_s}, {"high_s", q->high_s}};
}

std::optional<select::time_quantiles> read_quantiles(const json_reader& r) {
  if (!r.has("quantiles")) return std::nullopt;
  const json_reader q = r.field("quantiles");
  q.expect_fields({"low_s", "median_s", "high_s"});
  const select::time_quantiles result{
      .low_s = q.number("low_s"), .median_s = q.number("median_s"), .high_s = q.number("high_s")};
  if (result.median_s < result.low_s) q.field("median_s").fail("expected at least low_s");
  if (result.high_s < result.median_s) q.field("high_s").fail("expected at least median_s");
  return result;
}

std::optional<select::pair_record> read_pairs(const json_reader& r) {
  if (!r.has("pairs")) return std::nullopt;
  const json_reader p = r.field("pairs");
  p.expect_fields({"pairs", "wins", "gain", "deviation"});
  const select::pair_record pairs{.pairs = p.integer("pairs", 1),
                                  .wins = p.integer("wins"),
                                  .gain = p.finite("gain"),
                                  .deviation = p.optional_number("deviation")};
  if (pairs.wins > pairs.pairs) p.field("wins").fail("expected at most pairs");
  return pairs;
}

json arm_json(const select::arm_statistics& a) {
  json j{{"arm", a.arm}, {"calls", a.calls}, {"samples", a.samples}, {"time_s", a.time_s}};
  put_optional(j, "mean_s", a.mean_s);
  put_optional(j, "spread", a.spread);
  put_quantiles(j, a.quantiles);
  put_belief(j, "prior", a.prior);
  put_belief(j, "posterior", a.posterior);
  j["probability"] = a.probability;
  j["exploration_cost_s"] = a.exploration_cost_s;
  if (a.pairs) {
    j["pairs"] = {{"pairs", a.pairs->pairs}, {"wins", a.pairs->wins}, {"gain", a.pairs->gain}};
    put_optional(j["pairs"], "deviation", a.pairs->deviation);
  }
  return j;
}

select::arm_statistics read_arm(const json_reader& r) {
  r.expect_fields({"arm", "calls", "samples", "time_s", "mean_s", "spread", "quantiles", "prior",
                   "posterior", "probability", "exploration_cost_s", "pairs"});
  select::arm_statistics a{.arm = r.name("arm"),
                           .calls = r.integer("calls"),
                           .samples = r.integer("samples"),
                           .time_s = r.number("time_s"),
                           .mean_s = r.optional_number("mean_s"),
                           .spread = r.optional_number("spread"),
                           .quantiles = read_quantiles(r),
                           .prior = read_belief(r, "prior"),
                           .posterior = read_belief(r, "posterior"),
                           .probability = r.number("probability"),
                           .exploration_cost_s = r.finite("exploration_cost_s"),
                           .pairs = read_pairs(r)};
  if (a.probability > 1 + 1e-9) r.field("probability").fail("expected at most 1");
  return a;
}

json context_json(const select::context_statistics& c) {
  json arms = json::array();
  for (const select::arm_statistics& a : c.arms) arms.push_back(arm_json(a));
  json j{{"communicator", c.communicator},
         {"collective", c.collective},
         {"num_ranks", c.num_ranks},
         {"ranks_per_node", c.ranks_per_node},
         {"from_bytes", c.from_bytes},
         {"to_bytes", c.to_bytes},
         {"first_bytes", c.first_bytes},
         {"operation", c.operation},
         {"policy", c.policy},
         {"current_arm", c.current_arm},
         {"reason", c.reason},
         {"calls", c.calls},
         {"time_s", c.time_s},
         {"exploration_cost_s", c.exploration_cost_s}};
  if (!c.rails.empty()) j["rails"] = c.rails;
  if (c.baseline != "native") j["baseline"] = c.baseline;
  put_optional(j, "mean_bytes", c.mean_bytes);
  put_optional(j, "skew_s", c.skew_s);
  put_optional(j, "skew_p90_s", c.skew_p90_s);
  put_optional(j, "core_given_share", c.core_given_share);
  put_optional(j, "cost_share", c.cost_share);
  j["overlapped_share"] = c.overlapped_share;
  put_optional(j, "own_s", c.own_s);
  j["arms"] = std::move(arms);
  return j;
}

select::context_statistics read_context(const json_reader& r) {
  r.expect_fields({"communicator", "collective",         "num_ranks",   "ranks_per_node",
                   "from_bytes",   "to_bytes",           "first_bytes", "operation",
                   "policy",       "current_arm",        "reason",      "calls",
                   "time_s",       "exploration_cost_s", "rails",       "skew_s",
                   "skew_p90_s",   "core_given_share",   "cost_share",  "overlapped_share",
                   "own_s",        "baseline",           "mean_bytes",  "arms"});
  select::context_statistics c{
      .communicator = r.text("communicator"),
      .collective = r.name("collective"),
      .num_ranks = int(r.integer("num_ranks", 1, largest_count)),
      .ranks_per_node = int(r.integer("ranks_per_node", 1, largest_count)),
      .from_bytes = r.integer("from_bytes"),
      .to_bytes = r.integer("to_bytes"),
      .first_bytes = r.integer("first_bytes"),
      .mean_bytes = r.optional_number("mean_bytes"),
      .operation = r.text("operation"),
      .policy = r.text("policy"),
      .current_arm = r.text("current_arm"),
      .reason = r.text("reason"),
      .calls = r.integer("calls"),
      .time_s = r.number("time_s"),
      .exploration_cost_s = r.finite("exploration_cost_s"),
      .skew_s = r.optional_number("skew_s"),
      .skew_p90_s = r.optional_number("skew_p90_s"),
      .core_given_share = r.optional_number("core_given_share"),
      .cost_share = r.optional_number("cost_share"),
      .overlapped_share = r.optional_number("overlapped_share").value_or(0),
      .own_s = r.optional_number("own_s"),
      .arms = {}};
  if (r.has("rails")) c.rails = r.text("rails");
  if (r.has("baseline")) c.baseline = r.name("baseline");
  if (c.overlapped_share > 1) r.field("overlapped_share").fail("expected at most 1");
  if (c.to_bytes < c.from_bytes) r.field("to_bytes").fail("expected at least from_bytes");
  for (const json_reader& a : r.list("arms")) c.arms.push_back(read_arm(a));
  return c;
}

json rail_json(const select::rail_statistics& s) {
  json j{{"rails", s.rails},
         {"rail", s.rail},
         {"sent_bytes", s.sent_bytes},
         {"share", s.share},
         {"bytes_per_s", s.bytes_per_s},
         {"changes", s.changes}};
  put_optional(j, "prediction_error", s.prediction_error);
  j["backlog_s"] = s.backlog_s;
  return j;
}

select::rail_statistics read_rail(const json_reader& r) {
  r.expect_fields({"rails", "rail", "sent_bytes", "share", "bytes_per_s", "changes",
                   "prediction_error", "backlog_s"});
  return {.rails = r.text("rails"),
          .rail = r.text("rail"),
          .sent_bytes = r.integer("sent_bytes"),
          .share = r.number("share"),
          .bytes_per_s = r.number("bytes_per_s"),
          .changes = r.integer("changes"),
          .prediction_error = r.optional_number("prediction_error"),
          .backlog_s = r.number("backlog_s")};
}

}  // namespace

std::string to_json(const select::statistics_dump& d) {
  json contexts = json::array();
  for (const select::context_statistics& c : d.contexts) contexts.push_back(context_json(c));
  json rails = json::array();
  for (const select::rail_statistics& s : d.rails) rails.push_back(rail_json(s));
  return document_text({{"format", format},
                        {"version", version},
                        {"machine_id", fingerprint_json(d.machine_id)},
                        {"written_at", d.written_at},
                        {"merges", d.merges},
                        {"merge_cost_s", d.merge_cost_s},
                        {"contexts", std::move(contexts)},
                        {"rails", std::move(rails)}});
}

select::statistics_dump parse_statistics(std::string_view text, const std::string& name) {
  const json_document document(text, name);
  const json_reader top = document.expect(format, version);
  top.expect_fields({"format", "version", "machine_id", "written_at", "merges", "merge_cost_s",
                     "contexts", "rails"});
  select::statistics_dump d{.machine_id = read_fingerprint(top.field("machine_id")),
                            .written_at = top.text("written_at"),
                            .merges = top.integer("merges"),
                            .merge_cost_s = top.number("merge_cost_s"),
                            .contexts = {},
                            .rails = {}};
  for (const json_reader& c : top.list("contexts")) d.contexts.push_back(read_context(c));
  if (top.has("rails"))  // not in dumps of before there were any
    for (const json_reader& r : top.list("rails")) d.rails.push_back(read_rail(r));
  return d;
}

select::statistics_dump read_statistics(const std::string& path) {
  return parse_statistics(read_text(path), path);
}

}  // namespace railpass::internal::files
