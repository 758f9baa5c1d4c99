// SPDX-License-Identifier: BSL-1.0
//
// Records in the store's files: CBOR (RFC 8949), with lists instead of objects and single precision
// for non-integers. A line above each record states the kind, the version and a part of the SHA-256
// of the rest.
#pragma once

#include "railpass/base/error.hpp"
#include "railpass/knowledge/collection.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railpass::internal::store {

/// Written by a newer railpass: must be neither read nor changed.
class newer_error : public error {
 public:
  using error::error;
};

/// The record with the line above it.
std::string sealed(std::string_view record);
/// Removes and checks the line; `name` stands for the file in errors. Throws newer_error, or error
/// after any change.
std::string_view unsealed(std::string_view text, const std::string& name);

/// The first 16 digits of the SHA-256.
std::string digest_of(std::string_view text);

std::string packed(const knowledge::experience& e);
knowledge::experience unpacked_experience(std::string_view record, const std::string& name);

std::string packed(const knowledge::stored_run& r);
knowledge::stored_run unpacked_run(std::string_view record, const std::string& name);

/// The first record of a database.
struct database_head {
  fingerprint machine{};
  std::int64_t num_contexts = 0, num_runs = 0;  ///< rows
  std::vector<std::string> recent{};            ///< runs in it whose files may still exist
};
std::string packed(const database_head& h);
database_head unpacked_head(std::string_view record, const std::string& name);

std::string packed(const std::vector<std::string>& ids);
std::vector<std::string> unpacked_ids(std::string_view record, const std::string& name);

}  // namespace railpass::internal::store
