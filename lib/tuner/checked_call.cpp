// SPDX-License-Identifier: BSL-1.0
#include "lib/tuner/checked_call.hpp"

#include "lib/buffers/elements.hpp"
#include "lib/call/eligibility.hpp"
#include "railpass/base/float_environment.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>

namespace railpass::internal {

namespace {

bool is_sum_of_integers(const call& c) {
  return c.is_reduction() && c.operation == MPI_SUM && is_integer(c.receive.type);
}

number_kind kind_of_numbers(MPI_Datatype type) {
  if (type == MPI_CHAR) return number_kind::other;  // MPI libraries may differ
  if (is_floating(type)) return number_kind::floating;
  if (!is_integer(type)) return number_kind::other;
  return is_unsigned(type) ? number_kind::unsigned_integer : number_kind::signed_integer;
}

extreme extreme_of(const call& c) {
  if (!c.is_reduction() || (c.operation != MPI_MIN && c.operation != MPI_MAX)) return {};
  return {c.operation == MPI_MAX, kind_of_numbers(c.receive.type), c.element_bytes};
}

lawful_call lawful(const call& c, const calling_rank& at) {
  lawful_call l{.what = describe(c.op).what,
                .rank = at.rank,
                .num_ranks = at.num_ranks,
                .root = c.root,
                .width = is_sum_of_integers(c) ? std::size_t(c.element_bytes) : 0,
                .own_block_stays = c.receive.in_place()};
  if (l.what == promise::reduce_to_blocks)
    for (int i = 0; i < at.rank; ++i)
      l.first_element += std::uint64_t(c.receive.counts ? c.receive.counts[i] : c.receive.count);
  return l;
}

}  // namespace

// Open MPI adds integers of 8 and 16 bits with or without saturation, as processor and number of
// elements want (https://github.com/open-mpi/ompi/issues/8045).
check_kind kind_of_check(const call& c) {
  constexpr std::int64_t least_integer_bytes = 4;
  if (describe(c.op).what == promise::all_arrive) return check_kind::none;
  if (!c.is_reduction()) return check_kind::law;
  if (!is_builtin(c.operation)) return check_kind::none;
  if (c.op == collective::all_reduce && extreme_of(c).is_known()) return check_kind::extreme;
  if (!is_sum_of_integers(c)) return check_kind::repetition;
  return c.element_bytes < least_integer_bytes ? check_kind::none : check_kind::law;
}

bool may_check(const select::context_key& key) {
  return describe(key.op).what != promise::all_arrive &&
         (key.operation == select::operation_class::none ||
          key.operation == select::operation_class::builtin);
}

checked_call::checked_call(const call& c, const calling_rank& at, std::int64_t most_bytes)
    : call_(c),
      at_(at),
      kind_(kind_of_check(c)),
      most_bytes_(most_bytes),
      able_(most_bytes > 0),
      kept_(c, at),
      lawful_(lawful(c, at)),
      extreme_(extreme_of(c)) {}

template <class Work>
void checked_call::attempt(const Work& work) {
  if (!able_) return;
  try {
    able_ = work() == MPI_SUCCESS;
  } catch (const std::exception&) {  // no memory
    able_ = false;
  }
}

void checked_call::begin() {
  attempt([&] {
    std::size_t result = 0;
    if (const int failure = kept_.result_bytes(result)) return failure;
    if (const int failure = sent_blocks(call_, at_, blocks_)) return failure;
    const std::size_t input = packed_bytes(blocks_);
    const std::size_t copies = kind_ == check_kind::law ? input : 3 * input + most_runs * result;
    if (copies > std::size_t(most_bytes_)) return int(MPI_ERR_NO_MEM);
    if (const int failure = kept_.keep_input()) return failure;
    if (kind_ == check_kind::law) return add_terms(true);
    if (extreme_.is_known())
      if (const int failure = keep_compared_input()) return failure;
    if (kind_ == check_kind::extreme) return int(MPI_SUCCESS);
    for (std::vector<std::byte>& r : results_) r.reserve(result);
    return int(MPI_SUCCESS);
  });
}

void checked_call::note_run(int code) {
  able_ = able_ && code == MPI_SUCCESS;
  const int run = runs_++;
  attempt([&] {
    if (kind_ == check_kind::law) return add_terms(false);
    if (kind_ == check_kind::extreme) return compare_result();
    return kept_.keep_result(results_[std::size_t(run)]);
  });
}

void checked_call::prepare_next_run() {
  attempt([&] {
    if (judges_one_run())
      if (const int failure = kept_.keep_result(results_[std::size_t(runs_ - 1)])) return failure;
    return kept_.restore_input();
  });
}

void checked_call::sum_magnitudes() {
  const int code = kept_.sum_magnitudes();
  able_ = able_ && code == MPI_SUCCESS;
}

int checked_call::spans_of(const std::vector<user_block>& blocks) {
  spans_.clear();
  bool packed = true;
  for (const user_block& b : blocks) packed = packed && b.is_packed();
  if (!packed)
    if (const int failure = pack_blocks(blocks, packed_, at_.own)) return failure;
  std::size_t at = 0;
  for (const user_block& b : blocks) {
    const auto bytes = std::size_t(b.bytes());
    const std::byte* const memory = packed ? b.memory : packed_.data() + at;
    spans_.push_back(bytes == 0 ? std::span<const std::byte>() : std::span(memory, bytes));
    at += bytes;
  }
  return MPI_SUCCESS;
}

int checked_call::add_terms(bool of_input) {
  if (of_input) {
    if (const int failure = sent_blocks(call_, at_, blocks_)) return failure;
    if (const int failure = spans_of(blocks_)) return failure;
    add_input(input_, lawful_, spans_);
    return MPI_SUCCESS;
  }
  if (const int failure = result_blocks(call_, at_, false, blocks_)) return failure;
  if (const int failure = spans_of(blocks_)) return failure;
  terms_ = input_;
  subtract_result(terms_, lawful_, spans_);
  return MPI_SUCCESS;
}

// An input with NaN cannot be judged.
int checked_call::keep_compared_input() {
  if (const int failure = sent_blocks(call_, at_, blocks_)) return failure;
  if (const int failure = spans_of(blocks_)) return failure;
  const own_float_environment own;
  compared_input_ = extreme_.comparable(spans_[0]);
  const std::int64_t elements = call_.message_bytes / call_.element_bytes;
  marks_.resize(std::size_t(elements + 63) / 64);
  return extreme_.has_nan(compared_input_) ? MPI_ERR_OTHER : MPI_SUCCESS;
}

int checked_call::compare_result() {
  is_missed_ = false;
  if (const int failure = result_blocks(call_, at_, false, blocks_)) return failure;
  if (const int failure = spans_of(blocks_)) return failure;
  const own_float_environment own;
  compared_result_ = extreme_.comparable(spans_[0]);
  terms_ = {};
  add_common_result(terms_, lawful_, compared_result_);
  terms_.sums.of[0] = extreme_.beyond(compared_input_, compared_result_);
  return terms_.sums.of[0] > 0 ? test_operation() : MPI_SUCCESS;
}

int checked_call::test_operation() {
  std::vector<std::byte> combined = compared_result_;
  const int code = in_portions(
      call_.message_bytes / call_.element_bytes, call_.element_bytes, call_.element_bytes,
      [&](std::int64_t first, std::int64_t, int n, int) {
        return PMPI_Reduce_local(compared_input_.data() + first, combined.data() + first, n,
                                 call_.receive.type, call_.operation);
      });
  wrong_by_operation_ = extreme_.wrong(compared_input_, compared_result_, combined);
  return code;
}

std::uint64_t checked_call::missed_element() {
  std::ranges::fill(marks_, 0);
  extreme_.mark_missed(compared_input_, compared_result_, marks_);
  call of_marks{.op = collective::all_reduce,
                .send = {.memory = MPI_IN_PLACE},
                .receive = {.memory = marks_.data(),
                            .count = std::int64_t(marks_.size()),
                            .type = MPI_UINT64_T},
                .operation = MPI_BAND,
                .comm = call_.comm};
  if (run_native(of_marks) != MPI_SUCCESS) return 0;
  const auto marked = std::ranges::find_if(marks_, [](std::uint64_t m) { return m != 0; });
  if (marked == marks_.end()) return 0;
  return std::uint64_t(marked - marks_.begin()) * 64 + std::uint64_t(std::countr_zero(*marked)) + 1;
}

bool checked_call::attains(std::uint64_t number) const {
  const auto width = std::size_t(call_.element_bytes);
  const std::size_t at = std::size_t(number - 1) * width;
  return at + width > compared_input_.size() ||
         std::memcmp(&compared_input_[at], &compared_result_[at], width) == 0;
}

bool checked_call::is_different(int a, int b) {
  bool alike = true;
  attempt([&] { return kept_.compare(results_[std::size_t(a)], results_[std::size_t(b)], alike); });
  return !alike;
}

auto checked_call::words() -> word_array {
  word_array own{};
  if (judges_one_run()) {
    own[moved] = terms_.moved;
    own[lengths] = terms_.lengths;
    for (std::size_t i = 0; i < weighted_sums::number; ++i) own[sums + i] = terms_.sums.of[i];
  } else {
    for (int b = 1; b < runs_; ++b)
      for (int a = 0; a < b; ++a) own[pair(a, b)] = is_different(a, b) ? 1 : 0;
  }
  own[unable] = able_ ? 0 : 1;
  own[operation] = able_ ? wrong_by_operation_ : 0;
  return own;
}

bool checked_call::holds() const {
  law_terms terms{.moved = all_[moved]};
  for (std::size_t i = 0; i < weighted_sums::number; ++i) terms.sums.of[i] = all_[sums + i];
  return !is_missed_ &&
         terms.hold(kind_ == check_kind::extreme ? sizeof(std::uint64_t) : lawful_.width);
}

checked_call::difference checked_call::from_last(int run) {
  difference d;
  attempt([&] {
    std::vector<std::byte>& last = results_[std::size_t(runs_ - 1)];
    if (const int failure = kept_.keep_result(last)) return failure;
    const std::vector<std::byte>& other = results_[std::size_t(run)];
    bool alike = true;
    if (const int failure = kept_.compare(other, last, alike)) return failure;
    for (std::size_t i = 0; !alike && i < std::min(last.size(), other.size()); ++i)
      if (last[i] != other[i] && d.bytes++ == 0) d.first_byte = i;
    return int(MPI_SUCCESS);
  });
  return d;
}

}  // namespace railpass::internal
