// SPDX-License-Identifier: BSL-1.0
//
// What the store's files consist of: records in CBOR (RFC 8949), lists in place of objects and
// numbers of single precision where they are no integers; each below a line that says what it is,
// its version and a part of the SHA-256 of all that follows that.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/knowledge/collection.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::store {

/// Written by a newer railpass: not to be read, and not to be touched.
class newer_error : public error {
 public:
  using error::error;
};

/// The record with the line above it.
std::string sealed(std::string_view record);
/// The record again; `name` stands for the file in errors. Throws newer_error, or error if anything
/// in it has changed.
std::string_view unsealed(std::string_view text, const std::string& name);

/// The first 16 digits of the SHA-256.
std::string digest_of(std::string_view text);

std::string packed(const knowledge::experience& e);
knowledge::experience unpacked_experience(std::string_view record, const std::string& name);

std::string packed(const knowledge::stored_run& r);
knowledge::stored_run unpacked_run(std::string_view record, const std::string& name);

/// The first thing in a database.
struct database_head {
  fingerprint machine{};
  std::int64_t num_contexts = 0, num_runs = 0;  ///< rows
  std::vector<std::string> recent{};            ///< runs in it whose files may still be there
};
std::string packed(const database_head& h);
database_head unpacked_head(std::string_view record, const std::string& name);

std::string packed(const std::vector<std::string>& ids);
std::vector<std::string> unpacked_ids(std::string_view record, const std::string& name);

}  // namespace railpass::internal::store
