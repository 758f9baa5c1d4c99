// SPDX-License-Identifier: BSL-1.0
//
// This rank's part of a checked call: copies of its input and results, and the words by which all
// ranks learn in small reductions whether the result is right. Laws (lib/buffers/laws.hpp) judge
// one run alone: of calls that move data, and of sums of integers. So do comparisons that need no
// operation of the MPI library (lib/buffers/extremes.hpp): of minima and maxima that all ranks get.
// All other reductions run again with another arm, and their results are compared. Which arms run,
// and what follows, is in session_checks.cpp.
#pragma once

#include "lib/buffers/extremes.hpp"
#include "lib/buffers/laws.hpp"
#include "lib/tuner/kept_call.hpp"
#include "railpass/select/lockstep/context.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace railpass::internal {

/// How the result of a call is checked.
enum class check_kind { none, law, extreme, repetition };

/// Equal on all ranks. Operations of the user are not checked: they need not be associative.
/// Neither are sums of short integers, whose overflow MPI libraries treat in several ways.
check_kind kind_of_check(const call& c);
/// Whether a check of any call of the context is possible.
bool may_check(const select::context_key& key);

/// Local, except sum_magnitudes() and missed_element(). Runs are numbered from 0. A rank without
/// memory for copies, or whose run has failed, says so in its words: then no rank judges the call.
class checked_call {
 public:
  static constexpr int most_runs = 3;

  /// @param c must live as long as this object
  /// @param most_bytes limit of this rank's copies; 0: this rank cannot read its buffers
  checked_call(const call& c, const calling_rank& at, std::int64_t most_bytes);

  check_kind kind() const { return kind_; }
  /// Whether one run suffices to know whether its result is right.
  bool judges_one_run() const { return kind_ != check_kind::repetition; }
  int runs() const { return runs_; }
  /// Before the first run.
  void begin();
  /// After a run that returned this MPI error code.
  void note_run(int code);
  /// After note_run(), before the next run.
  void prepare_next_run();
  /// Before the second run is compared. Collective.
  void sum_magnitudes();

  /// The words of this rank, for the runs so far.
  using word_array = std::array<std::uint64_t, 11>;
  word_array words();
  /// Takes over the sums of the words of all ranks. They judge the last run.
  void take(const word_array& of_all) { all_ = of_all; }

  /// Whether all ranks can judge the call.
  bool can_judge() const { return all_[unable] == 0 && all_[lengths] == 0; }
  /// Whether the last run's result fulfils its law.
  bool holds() const;
  /// Whether the MPI library's operation gives a wrong minimum or maximum of some rank's numbers.
  bool operation_is_wrong() const { return all_[operation] != 0; }

  /// Of a minimum or maximum that bounds all inputs: the number, counted from 1, of an element that
  /// seems to be no rank's input, or 0. Collective; any answer of the MPI library is possible here.
  std::uint64_t missed_element();
  /// Whether this rank's input has the result's element with this number.
  bool attains(std::uint64_t number) const;
  /// The result is wrong: an element is no rank's input.
  void note_missed() { is_missed_ = true; }
  /// Whether the results of two runs, a < b, differ on any rank.
  bool differ(int a, int b) const { return all_[pair(a, b)] != 0; }

  /// The difference of this rank's results of an earlier run and of the last run.
  struct difference {
    std::size_t first_byte = 0, bytes = 0;  ///< of the packed result; bytes is 0 without difference
  };
  difference from_last(int run);

 private:
  enum word : std::size_t {
    moved,
    lengths,
    sums,
    unable = sums + weighted_sums::number,
    operation,
    pairs
  };
  static constexpr std::size_t pair(int a, int b) {
    return std::size_t(pairs) + std::size_t(a + b - 1);
  }
  // Does work that may fail; afterwards this rank may be unable to judge.
  template <class Work>
  void attempt(const Work& work);
  int spans_of(const std::vector<user_block>& blocks);
  int add_terms(bool of_input);
  int keep_compared_input();
  int compare_result();
  int test_operation();
  bool is_different(int a, int b);

  const call& call_;
  const calling_rank at_;
  const check_kind kind_;
  const std::int64_t most_bytes_;
  bool able_;
  kept_call kept_;
  lawful_call lawful_;
  law_terms input_, terms_;
  extreme extreme_;
  std::vector<std::byte> compared_input_, compared_result_;
  std::vector<std::uint64_t> marks_;  // of elements that differ
  std::uint64_t wrong_by_operation_ = 0;
  bool is_missed_ = false;
  std::array<std::vector<std::byte>, most_runs> results_;
  int runs_ = 0;
  word_array all_{};
  std::vector<user_block> blocks_;
  std::vector<std::byte> packed_;
  std::vector<std::span<const std::byte>> spans_;
};

}  // namespace railpass::internal
