/*
 * file_limit.h - growing a file without SIGXFSZ.
 *
 * Beyond RLIMIT_FSIZE, a call that grows a file fails with EFBIG, and Linux sends the calling thread
 * SIGXFSZ, which would end the process. The signal is blocked meanwhile, and taken if the call has
 * caused it: not if it was pending before.
 */
#ifndef WEIRI_FILE_LIMIT_H
#define WEIRI_FILE_LIMIT_H

#include <stdbool.h>
#include <signal.h>

#include "base/compiler.h"

struct weiri_file_limit {
	sigset_t before;
	bool was_pending;
};

WEIRI_SHARED void weiri_file_limit_begin(struct weiri_file_limit *limit);
/* `failed`: the call failed, with what is in errno, which stays as it is. */
WEIRI_SHARED void weiri_file_limit_end(const struct weiri_file_limit *limit, bool failed);

#endif
