// SPDX-License-Identifier: BSL-1.0
//
// What upgrades changed, as tables and JSON.
#pragma once

#include "lib/report/table.hpp"
#include "railpass/knowledge/upgrade.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace railpass::internal::report {

/// Machine, what changed and when, and the runs on each side, in lines.
std::string title_of(const knowledge::upgrade& u);
/// The kinds of calls whose change is significant, or all that were compared.
table table_of(const knowledge::upgrade& u, bool all);
/// How many kinds of calls the table leaves out, in sentences.
std::string rest_of(const knowledge::upgrade& u, bool all);
nlohmann::ordered_json to_json(const knowledge::upgrade& u);

}  // namespace railpass::internal::report
