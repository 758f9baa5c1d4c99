// SPDX-License-Identifier: BSL-1.0
//
// Rules of an MPI library from bench results, with what is to be known of that library for it.
#pragma once

#include "lib/libraries/library.hpp"
#include "lib/libraries/rules.hpp"

#include <span>
#include <string>

namespace railpass::internal::measure {

/// Returns why a rule for `to` may not rest on an algorithm, known faults included. `commutative`:
/// see libraries::mpi_library::why_not. `to` must live as long as the filter.
libraries::rule_filter filter_of_rules(const libraries::mpi_library& to, bool commutative);

/// libraries::rules_from() for `to`. Throws error, too, if a file was measured with another MPI
/// library. `commutative`: see libraries::mpi_library::why_not.
libraries::rule_set rules_of(std::span<const libraries::named_bench> files,
                             const libraries::mpi_library& to, bool commutative);

/// The file of rules, written for `path`, which its settings name. `library`: the library's file;
/// empty: the one that this process uses. Throws error.
libraries::rules_file rules_file_of(const libraries::rule_set& rules,
                                    const libraries::mpi_library& to, const std::string& path,
                                    const std::string& library = {});

}  // namespace railpass::internal::measure
