/*
 * poison.h - memory that shows when it is used after it was freed, in builds without a sanitizer too.
 *
 * Freed blocks are overwritten and kept for a while; when one finally goes, a write that reached it in between is found. It checks
 * sizes, alignments and double frees as well. Payloads are tensors whose words follow from one number, their tag: a reader that
 * holds one can tell at any time whether it still is what it was.
 */
#ifndef STRESS_POISON_H
#define STRESS_POISON_H

#include <stddef.h>
#include <stdint.h>
#include <weir/tensor.h>

/* Any number of threads; never runs out. */
const weir_allocator *stress_poison(void);
/* Bytes allocated and not freed; the most there were since the last reset. */
uint64_t stress_poison_bytes(void);
uint64_t stress_poison_peak(void);
void stress_poison_reset_peak(void);
/* All that was allocated came back. */
void stress_poison_check_empty(void);

/* An i64 tensor of `words` >= 1 words over poisoned memory, with a release function of its own. */
weir_tensor *stress_payload(uint64_t tag, size_t words);
/* The tag of a whole payload; anything else is a failure that names `who`. */
uint64_t stress_payload_check(const weir_tensor *tensor, const char *who);

#endif
