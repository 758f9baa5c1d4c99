// SPDX-License-Identifier: BSL-1.0
//
// Set-up of a session: all ranks agree, take a lane for their messages, and open rails if settings
// name rails; or the communicator stays native.
#include "lib/rails/agreement.hpp"
#include "lib/rails/communicator/communicator_rails.hpp"
#include "lib/rails/names.hpp"
#include "lib/runtime/process.hpp"
#include "lib/tuner/session.hpp"
#include "lib/tuner/set_up.hpp"
#include "railpass/base/float_environment.hpp"
#include "railpass/base/settings.hpp"
#include "railpass/select/policies.hpp"

#include <functional>
#include <utility>

namespace railpass::internal {

session::outcome session::create(MPI_Comm user, const settings& values, process& owner, bool pays,
                                 bool asked_for, double passed_s, std::optional<told_call> inside) {
  std::unique_ptr<session> made;
  set_up b(user, values, owner, "a communicator", inside);
  const auto own_part = [&] {
    const own_float_environment own;
    int rank = 0, num_ranks = 0;
    PMPI_Comm_rank(user, &rank);
    PMPI_Comm_size(user, &num_ranks);
    b.agreed.set(agreement::no_device, !may_have_device_memory(values.gpu));
    const bool rails = !rails_mark(values.rails).empty();
    b.agreed.set(agreement::names_rails, rails);
    b.agreed.set(agreement::names_no_rails, !rails);
    made.reset(new session(values, owner, rank, num_ranks, name_of_communicator(user)));
    if (rank == 0) owner.know_quarantine();
    made->exclusions_ = owner.exclusions();
    b.agreed.set_exclusions(made->exclusions_.mark());
    if (owner.plan())
      made->plan_ =
          std::make_unique<plan_table>(*owner.plan(), num_ranks, rails_mark(values.rails));
  };
  b.make_part(pays, asked_for, std::ref(own_part));
  auto native = b.agree();
  const auto wants_memory = [&](const base_mapping& mapping) {
    made->know_nodes(mapping);
    return made->may_share_memory(*mapping.of);
  };
  if (!native && !b.agreed.same_exclusions())
    if (const int failure = made->unite_exclusions(least_over(user))) native = {failure};
  if (!native) native = b.take_resources(made->joint_, std::cref(wants_memory));
  if (native) return {nullptr, native->error_code, native->postponed};
  made->joint_.measure_together(b.agreed.same_clock());
  made->joint_.steps().check(values.checks);
  made->times_pinned_ = b.agreed.all(agreement::says_worth) && !made->plan_;
  made->one_thread_ = b.agreed.all(agreement::one_thread);
  made->begin_in_memory(b.slot());
  made->open_rails(user, b.agreed.all(agreement::names_rails),
                   b.agreed.all(agreement::names_no_rails));
  const node_facts& nodes = made->nodes_.facts();
  const bool is_world = made->num_ranks_ == owner.num_ranks();
  if (is_world && nodes.num_nodes > 1 && made->times_pinned_ && made->one_thread_)
    made->joint_.keep_ledger(owner.ledger());
  std::string_view rails;
  if (made->over_rails_) rails = made->over_rails_->rail.names();
  if (made->plan_) {
    made->follow_plan();
    owner.note_plan_followed();
  }
  made->watched_.join(b.agreed.name_of_communicator());
  made->joint_.know_machine({nodes.num_nodes, nodes.most_ranks}, rails, passed_s);
  return {std::move(made)};
}

int session::unite_exclusions(const least_of_ranks& least) {
  if (const int failure = unite(exclusions_, least)) return failure;
  for (const select::exclusion_words& w : exclusions_.all())
    process_.exclude(select::exclusion_of(w));
  return MPI_SUCCESS;
}

void session::open_rails(MPI_Comm user, bool all_name_rails, bool none_names_rails) {
  try {
    if (!all_name_rails && !none_names_rails)
      throw error("RAILPASS_RAILS is set on some ranks only");
    if (all_name_rails) {
      const auto messages = rails_for_collectives(user, process_, joint_.tags_of_rails(),
                                                  settings_.rails, settings_.strategy);
      on_all(user, [&] { run_over(messages); });
    }
  } catch (const error& problem) {  // on all ranks
    over_rails_.reset();
    process_.record("collectives of communicator '" + joint_.communicator() +
                    "' use the MPI library's messages: " + problem.what());
  }
}

// Merges only serve for the news of a GPU driver, if its buffers are not copied.
void session::follow_plan() {
  plan_->keep(nodes_.facts().most_ranks, over_rails_ != nullptr);
  if (settings_.gpu == "stage") joint_.steps().make_no_merges();
}

session::session(const settings& values, process& owner, int rank, int num_ranks,
                 const std::string& name)
    : process_(owner),
      settings_(values),
      arms_(values, owner),
      joint_(values, owner, rank, num_ranks, "communicator '" + name + "'", name,
             {.after = "; calls of this kind and size go to the MPI library"}),
      rank_(rank),
      num_ranks_(num_ranks),
      watched_(joint_.communicator(), rank, num_ranks),
      room_for_nodes_(std::make_shared<placement>(num_ranks)),
      room_for_caches_(std::make_shared<placement>(num_ranks)),
      policies_{values.policy} {
  select::require_policy(values.policy);
  if (values.gpu != "stage" && values.gpu != "native")
    throw error("RAILPASS_GPU='" + values.gpu + "': expected stage or native");
  room_for_regions_.reserve(std::size_t(num_ranks));
  wrong_results_.reserve(most_wrong_results);
  joint_.accompany([this] { return !over_rails_ || keep_rails_on(); });
}

void session::know_nodes(const base_mapping& at) {
  const std::shared_ptr<placement> nodes = std::move(room_for_nodes_),
                                   caches = std::move(room_for_caches_);
  const placement& hosts = *at.of->hosts;
  if (at.ranks.is_same() && num_ranks_ == hosts.num_ranks()) {
    nodes_.become(at.of->hosts);
  } else {
    nodes->set([&](std::int32_t rank) { return hosts.node_of(at.ranks[rank]); });
    nodes_.become(bases::of_process().placements().share(nodes));
  }
  if (!nodes_.facts().matter()) nodes_.forget_order();
  const std::vector<std::int32_t>& cache_of_local_rank = at.of->cache_of_local_rank;
  if (!cache_of_local_rank.empty() && nodes_.facts().num_nodes == 1) {
    caches->set([&](std::int32_t rank) {
      return cache_of_local_rank[std::size_t(hosts.local_rank(at.ranks[rank]))];
    });
    caches_.become(bases::of_process().placements().share(caches));
  }
  if (!caches_.facts().matter()) caches_.forget_order();
  keep_room_for_regions();
}

// Room for the ranks of one host, whose number was unknown until now.
void session::keep_room_for_regions() {
  try {
    cell_regions enough;
    enough.reserve(std::size_t(nodes_.facts().most_ranks));
    room_for_regions_ = std::move(enough);
  } catch (const std::bad_alloc&) {  // the room for all ranks remains
  }
}

void session::begin_in_memory(int slot) {
  if (slot >= 0)
    share_memory(slot);
  else if (may_share_memory(joint_.lane().of()))
    share_memory(take_memory_slot(joint_, {.one_thread = one_thread_, .may_evict = true}));
}

void session::share_memory(int slot) {
  if (slot < 0) return stay_without_memory();
  in_memory_.emplace(joint_.lane(), slot, static_cast<slot_tenant&>(*this),
                     std::move(room_for_regions_));
  if (joint_.steps().copies_refused()) in_memory_->single_copy = false;
  recent_.forget_arms();
  joint_.reconsider();
}

// Meanwhile other communicators may end or become idle.
void session::stay_without_memory() {
  asks_for_memory_at_ = call_number_ + calls_without_memory_;
  calls_without_memory_ *= 2;
}

// Ranks with failures take part, so that all ranks know whether they have a slot.
void session::ask_for_memory() {
  if (joint_.is_gone() || joint_.steps().native_for_good()) return;
  bool ready = !joint_.has_failed();
  try {
    room_for_regions_.reserve(std::size_t(nodes_.facts().most_ranks));
  } catch (const std::bad_alloc&) {
    ready = false;
  }
  const std::uint64_t free = free_slots_on_all(joint_, ready);
  if (joint_.is_gone()) return;
  share_memory(take_memory_slot(joint_, {.free_on_all = free,
                                         .one_thread = one_thread_,
                                         .may_evict = !std::exchange(was_evicted_, false),
                                         .ready = ready}));
}

// A session that loses its slot asks again in the next call, and then goes without for a while.
void session::give_up_slot() {
  in_memory_.reset();
  recent_.forget_arms();
  was_evicted_ = true;
  calls_without_memory_ = first_calls_without_memory;
  asks_for_memory_at_ = call_number_ + 1;
}

void session::run_over(std::shared_ptr<rail_channel> messages) {
  over_rails_ = std::make_unique<rails_of_schedules>(std::move(messages));
}

}  // namespace railpass::internal
