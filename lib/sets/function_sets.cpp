// SPDX-License-Identifier: BSL-1.0
#include "lib/sets/function_sets.hpp"

#include "collectives/collective.hpp"
#include "lib/call/inside.hpp"
#include "lib/call/neighbor_call.hpp"
#include "lib/group/same_on_all.hpp"
#include "lib/runtime/process.hpp"
#include "lib/runtime/setting_values.hpp"
#include "railpass/select/lockstep/merge_words.hpp"
#include "railpass/select/policies.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace railpass::internal {

namespace {

// Limits of knowledge files.
constexpr std::size_t longest_version = 200, most_sizes = 16;

std::string shown(const set_definition::version& v, const std::vector<std::string>& attributes) {
  std::string text = v.name;
  for (std::size_t x = 0; x < v.values.size(); ++x)
    text += (x ? ", " : " (") + attributes[x] + "=" + v.values[x].text();
  return v.values.empty() ? text : text + ")";
}

}  // namespace

std::string set_named(const std::string& name) { return "function set '" + name + "'"; }

std::string problem_of_name(const std::string& what, const std::string& name, std::size_t longest) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-.=+").find(c) != std::string_view::npos;
  };
  if (!name.empty() && name.size() <= longest && std::ranges::all_of(name, is_good)) return {};
  return what + " '" + name.substr(0, longest) + "': expected a name of 1 to " +
         std::to_string(longest) + " letters, digits and _-.=+";
}

// ---- a set

tuned_set::tuned_set(MPI_Comm comm, const settings& values, process& owner, std::string name,
                     std::vector<std::string> attributes)
    : process_(owner),
      name_(std::move(name)),
      attributes_(std::move(attributes)),
      use_(values.use),
      reproducible_(values.reproducible),
      decider_(comm, values, owner, set_named(name_), "") {}

void tuned_set::define(std::vector<set_definition::version> versions) {
  if (definition_) {
    const auto is_same = [](const auto& a, const auto& b) {
      return a.name == b.name && a.values == b.values;
    };
    if (!std::ranges::equal(versions, definition_->versions, is_same))
      throw error(set_named(name_) + " has other versions on this communicator already");
    return;
  }
  const std::string asked = pinned_version(use_, name_);
  const auto found = std::ranges::find(versions, asked, &set_definition::version::name);
  if (found != versions.end()) {
    pinned_ = int(found - versions.begin());
  } else if (!asked.empty() || reproducible_) {
    pinned_ = 0;
  }
  if (!asked.empty() && found == versions.end())
    process_.warn("RAILPASS_USE: " + set_named(name_) + " has no version '" + asked +
                  "'; its first one is used");
  definition_ = std::make_shared<const set_definition>(
      set_definition{name_, attributes_, std::move(versions)});
}

// ---- of a communicator

bool function_sets::conclude() {
  bool all = true;
  for (const auto& one : sets) all = one->decider().conclude() && all;
  for (const auto& one : regions) all = one->decider().conclude() && all;
  return all;
}

void function_sets::leave() {
  for (const auto& one : sets) one->decider().leave();
  for (const auto& one : regions) one->decider().leave();
}

void function_sets::drop() {
  // MPI may still write to what was under way when this rank failed: that memory is given up.
  const auto drop_all = [](auto& all) {
    for (auto& one : all)
      if (one->decider().has_failed()) new auto(std::move(one));
    all.clear();
  };
  drop_all(sets);
  drop_all(regions);
}

// ---- requests

request_state::request_state(function_sets& all, std::string name, MPI_Comm comm,
                             std::vector<std::string> attributes,
                             const function_set_options& options)
    : comm_(comm), process_(*process::get()), verifies_(all.values.verify) {
  std::string problem = problem_of_name("function set", name);
  if (find_collective(name) || is_neighbor_function(name))
    problem = "'" + name + "' is a collective's name";
  if (const std::size_t sizes = options.shape.size() + options.features.size(); sizes > most_sizes)
    problem = "expected a shape and features of at most " + std::to_string(most_sizes) +
              " sizes, found " + std::to_string(sizes);
  if (std::ranges::any_of(options.features, [](std::int64_t f) { return f < 0; }))
    problem = "expected features of 0 or more";
  for (const std::string& attribute : attributes) {
    if (problem.empty()) problem = problem_of_name("attribute", attribute);
    if (problem.empty() && std::ranges::count(attributes, attribute) > 1)
      problem = "attribute '" + attribute + "' is named twice";
  }
  try {
    if (!options.policy.empty()) select::require_policy(options.policy);
  } catch (const error& unknown) {
    if (problem.empty()) problem = unknown.what();
  }
  std::vector<std::string> lines{"function set " + name};
  for (const std::string& attribute : attributes) lines.push_back("attribute " + attribute);
  for (const std::int64_t extent : options.shape)
    lines.push_back("shape " + std::to_string(extent));
  for (const std::int64_t feature : options.features)
    lines.push_back("feature " + std::to_string(feature));
  lines.push_back("policy " + options.policy);
  for (const std::string& version : options.without) lines.push_back("without " + version);
  require_same(comm, set_named(name), lines, problem);

  const auto known = std::ranges::find(all.sets, name, [](const auto& s) { return s->name(); });
  if (known != all.sets.end()) {
    if ((*known)->attributes() != attributes)
      throw error(set_named(name) + " has other attributes on this communicator already");
    set_ = *known;
  } else {
    set_ = std::make_shared<tuned_set>(comm, all.values, process_, std::move(name),
                                       std::move(attributes));
    set_->decider().begin(comm);
    process_.note_set(set_->name());
    const auto lock = process_.hold_statistics();
    all.sets.push_back(set_);
  }
  context_ = {.of = nullptr,
              .shape = options.shape,
              .features = options.features,
              .distance = options.distance,
              .policy = options.policy,
              .without = options.without,
              .lags = {}};
}

request_state::request_state(std::shared_ptr<tuned_set> set, MPI_Comm comm, bool verifies,
                             set_context calls)
    : comm_(comm),
      process_(*process::get()),
      verifies_(verifies),
      set_(std::move(set)),
      context_(std::move(calls)) {}

void request_state::add(std::string version, std::vector<attribute_value> values, double lag) {
  const std::string subject = set_named(set_->name()) + ": version '" + version + "'";
  if (context_.of) throw error(subject + " is added after the first call");
  if (const std::string problem = problem_of_name("version", version, longest_version);
      !problem.empty())
    throw error(set_named(set_->name()) + ": " + problem);
  if (std::ranges::find(versions_, version, &set_definition::version::name) != versions_.end())
    throw error(subject + " is there already");
  if (values.size() != attributes().size())
    throw error(subject + ": expected a value for each of its " +
                std::to_string(attributes().size()) + " attributes, found " +
                std::to_string(values.size()));
  for (const attribute_value& v : values)
    if (const std::string problem = problem_of_name("attribute value", v.text()); !problem.empty())
      throw error(subject + ": " + problem);
  if (versions_.size() == std::size_t(select::plan_words::max_arms))
    throw error(subject + ": expected at most " + std::to_string(select::plan_words::max_arms) +
                " versions");
  versions_.push_back({std::move(version), std::move(values)});
  context_.lags.push_back(lag);
}

std::string request_state::problem_of_versions() const {
  if (versions_.empty()) return "the set has no version";
  for (const std::string& left_out : context_.without) {
    const auto found = std::ranges::find(versions_, left_out, &set_definition::version::name);
    if (found == versions_.end()) return "there is no version '" + left_out + "' to leave out";
    if (found == versions_.begin())
      return "the first version, '" + left_out + "', cannot be left out";
  }
  return {};
}

// The first call: the ranks compare what they have.
void request_state::define() {
  const inside here;
  std::vector<std::string> lines;
  for (const set_definition::version& v : versions_)
    lines.push_back("version " + shown(v, attributes()));
  if (!set_->decider().has_ended())
    require_same(comm_, set_named(set_->name()), lines, problem_of_versions());
  set_->define(versions_);
  versions_.clear();
  context_.of = set_->definition();
  pin();
}

void request_state::pin() {
  context_.pinned = set_->pinned();
  if (context_.pinned < 0 || context_.can_take(context_.pinned)) return;
  process_.warn("RAILPASS_USE: " + set_named(set_->name()) + " has calls that cannot take '" +
                name_of(context_.pinned) + "'; its first version is used");
  context_.pinned = select::native_arm;
}

// By the innermost region with the same ranks, because other regions do not make the same calls.
bool request_state::is_taught_by_region() {
  for (const auto* one = railpass::detail::entered_region::innermost; one; one = one->outer) {
    if (one->region != met_) {
      met_ = one->region;
      met_teaches_ = met_->has_ranks_of(comm_);
      met_context_ = -1;
    }
    if (met_teaches_ && met_->decider().tunes()) return true;
  }
  return false;
}

void request_state::begin(set_call& c) {
  if (!context_.of) define();
  ++calls_;
  set_decider& own = set_->decider();
  const bool is_pinned = context_.pinned >= 0;
  c.version_ = is_pinned ? context_.pinned : select::native_arm;
  if (own.tunes()) {
    c.is_told_ = true;
    if (is_pinned && !own.times_pinned()) {
      own.begin_call();
    } else if (!is_pinned && is_taught_by_region()) {
      if (met_context_ < 0) met_context_ = met_->decider().context_of(context_);
      c.version_ = met_->choose(met_context_);
      decided(met_, met_->decider(), met_context_);
    } else {
      own.begin_call();
      if (own_context_ < 0) own_context_ = own.context_of(context_);
      if (own_context_ >= 0) {
        const set_choice chosen = own.next_call(own_context_);
        if (!is_pinned) c.version_ = chosen.call.arm;
        c.number_ = chosen.call.number;
        c.timed_ = chosen.call.timed;
        c.notes_end_ = chosen.call.notes_end;
        c.round_ = chosen.round;
        if (!is_pinned) decided(set_, own, own_context_);
      }
    }
  }
  last_ = c.version_;
  c.is_watched_ = c.timed_ || c.notes_end_ || process_.tracing();
  if (c.is_watched_) c.started_s_ = process_.clock()();
}

void request_state::end(const set_call& c, bool threw) {
  if (threw) {
    const inside here;
    if (c.is_told_) leave_others();
  } else if (c.is_watched_) {
    const double ended_s = process_.clock()();
    if (c.timed_ || c.notes_end_)
      set_->decider().record({.call = {.context = own_context_,
                                       .arm = c.version_,
                                       .number = c.number_,
                                       .timed = c.timed_,
                                       .notes_end = c.notes_end_},
                              .round = c.round_},
                             c.started_s_, ended_s);
    if (process_.tracing()) trace(c, ended_s - c.started_s_);
  }
}

void request_state::fail() {
  if (set_->decider().has_ended()) return;
  set_->decider().joint().fail();
  if (decided_.get() != &set_->decider() && met_teaches_) met_->decider().joint().fail();
}

void request_state::leave_others() {
  if (set_->decider().has_ended()) return;
  set_->decider().leave_others();
  if (decided_.get() != &set_->decider() && met_teaches_) met_->decider().leave_others();
}

template <class Owner>
void request_state::decided(const std::shared_ptr<Owner>& owner, const set_decider& by,
                            int context) {
  if (decided_.get() != &by) decided_ = {owner, &by};
  decided_in_ = context;
}

std::string request_state::winner() const {
  if (last_ < 0) return {};
  if (!decided_) return name_of(last_);
  const int version = decided_->settled(decided_in_);
  return version < 0 ? "" : name_of(version);
}

void request_state::note_unverified() {
  process_.record("RAILPASS_VERIFY: the results of " + set_named(set_->name()) +
                  " are not compared: call verify_with to say how");
}

void request_state::settle_results(std::size_t version, const std::string& problem) {
  const inside here;
  if (set_->decider().has_ended()) return;
  require_same(comm_, "RAILPASS_VERIFY: " + set_named(set_->name()), {},
               problem.empty()
                   ? ""
                   : "version '" + name_of(int(version)) + "' " + problem +
                         ", compared with version '" + name_of(select::native_arm) + "'");
}

void request_state::trace(const set_call& c, double seconds) const {
  process_.trace([&] {
    return trace_line{.started_s = c.started_s_,
                      .communicator = set_->decider().communicator(),
                      .call = calls_,
                      .operation = set_->name(),
                      .bytes = 0,
                      .arm = name_of(c.version_),
                      .probability = decided_ ? decided_->share(decided_in_, c.version_) : 1,
                      .timed = c.timed_,
                      .seconds = seconds};
  });
}

}  // namespace railpass::internal

// ---- what the header calls

namespace railpass::detail {

using namespace internal;

set_request::set_request(std::unique_ptr<request_state> state) : state_(std::move(state)) {}
set_request::set_request(set_request&&) noexcept = default;
set_request& set_request::operator=(set_request&&) noexcept = default;
set_request::~set_request() = default;

void set_request::add(std::string version, std::vector<attribute_value> values, double lag) {
  state_->add(std::move(version), std::move(values), lag);
}
const std::vector<std::string>& set_request::attributes() const { return state_->attributes(); }
std::string set_request::winner() const { return state_->winner(); }
std::string set_request::last() const { return state_->last(); }
bool set_request::verifies() const { return state_->verifies(); }
void set_request::note_unverified() { state_->note_unverified(); }
void set_request::settle_results(std::size_t version, const std::string& problem) {
  state_->settle_results(version, problem);
}

set_call::set_call(set_request& of) : of_(*of.state_), exceptions_(std::uncaught_exceptions()) {
  of_.begin(*this);
}
set_call::~set_call() { of_.end(*this, std::uncaught_exceptions() > exceptions_); }

}  // namespace railpass::detail
