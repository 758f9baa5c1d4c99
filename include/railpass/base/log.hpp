// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace railpass {

/// Receives one record: a sentence without a final newline, valid during the call only. May be
/// called from any thread that calls railpass and from threads of railpass, never concurrently:
/// other threads with a record wait. On a thread of the program it may call railpass on other
/// communicators than the one of the call that makes the record; on threads of railpass it may call
/// MPI only with MPI_THREAD_MULTIPLE.
using log_handler = void (*)(const char* record, void* user_data);

/// Sends the records of this process to `handler` instead of to what RAILPASS_LOG names; a
/// null handler restores that. Local, not collective; `user_data` is passed on and stays the
/// caller's.
void set_log_handler(log_handler handler, void* user_data = nullptr);

}  // namespace railpass
