// SPDX-License-Identifier: BSL-1.0
//
// For programs that go on once railpass has logged something.
#pragma once

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int log_has(const char* log, const char* words) {
  char line[4096];
  FILE* file = fopen(log, "r");
  int found = 0;
  while (file && !found && fgets(line, sizeof line, file)) found = strstr(line, words) != NULL;
  if (file) fclose(file);
  return found;
}

/// Returns after ten minutes, too, so that a test ends.
static void wait_until_log_says(const char* log, const char* words) {
  for (int tenths = 0; tenths < 6000 && !log_has(log, words); ++tenths) usleep(100000);
}
