/*
 * poison.h - memory that reveals a use after free, even in builds without a sanitizer.
 *
 * Freed blocks are overwritten and kept for a while. A block is checked when it is finally
 * released, which reveals a write to it in between. Sizes, alignments and double frees are checked
 * as well. Payloads are tensors whose words follow from one number, their tag. A reader that holds
 * a payload can check at any time whether it is unchanged.
 */
#ifndef STRESS_POISON_H
#define STRESS_POISON_H

#include <stddef.h>
#include <stdint.h>
#include <weir/tensor.h>

/* For any number of threads; never runs out of memory. */
const weir_allocator *stress_poison(void);
/* Bytes allocated and not freed, and the maximum of this number since the last reset. */
uint64_t stress_poison_bytes(void);
uint64_t stress_poison_peak(void);
void stress_poison_reset_peak(void);
/* Checks that everything that was allocated was freed. */
void stress_poison_check_empty(void);

/* An i64 tensor of `words` >= 1 words over poisoned memory, with a release function of its own. */
weir_tensor *stress_payload(uint64_t tag, size_t words);
/* Returns the tag of an intact payload. Any other payload is a failure that names `who`. */
uint64_t stress_payload_check(const weir_tensor *tensor, const char *who);

#endif
