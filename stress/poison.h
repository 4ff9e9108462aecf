/*
 * poison.h - memory that reveals a use after free, even in builds without a sanitizer.
 *
 * Freed blocks are overwritten and kept for a while. When one is finally released, a write that
 * reached it in between is found. Sizes, alignments and double frees are checked as well. Payloads
 * are tensors whose words follow from one number, their tag: a reader that holds one can check at
 * any time whether it is unchanged.
 */
#ifndef STRESS_POISON_H
#define STRESS_POISON_H

#include <stddef.h>
#include <stdint.h>
#include <weir/tensor.h>

/* For any number of threads; never runs out of memory. */
const weir_allocator *stress_poison(void);
/* Bytes allocated and not freed; the maximum of that since the last reset. */
uint64_t stress_poison_bytes(void);
uint64_t stress_poison_peak(void);
void stress_poison_reset_peak(void);
/* Checks that everything that was allocated was freed. */
void stress_poison_check_empty(void);

/* An i64 tensor of `words` >= 1 words over poisoned memory, with a release function of its own. */
weir_tensor *stress_payload(uint64_t tag, size_t words);
/* The tag of an intact payload; anything else is a failure that names `who`. */
uint64_t stress_payload_check(const weir_tensor *tensor, const char *who);

#endif
