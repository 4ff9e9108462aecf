/*
 * bank.h - variables whose memory runs out at random: a counter that must lose no increment, and
 * accounts between which commits move money.
 *
 * A refused call returns WEIR_RESOURCE_EXHAUSTED and has done nothing. So the counter is the sum of
 * what the successful calls added, and every snapshot of the accounts has the same sum.
 */
#ifndef STRESS_BANK_H
#define STRESS_BANK_H

#include <weir/alloc.h>
#include <weir/tensor.h>

#include "harness.h"

/* There is one bank. bank_close() checks the final state; no thread may use the bank any longer. */
void bank_open(void);
void bank_close(struct stress_thread *self);
/* From now on some allocations fail at random (1), or none does (0). */
void bank_refuse(int refuses);

/* One operation, drawn at random. */
void bank_act(struct stress_thread *self);
/* Reads all accounts; may be called from a signal handler. */
void bank_look(const char *who);

/*
 * bank_allocator() is the allocator that refuses. bank_make() returns a scalar from it, or NULL if
 * it refused. bank_judge() returns 1 if a call succeeded; the only other statuses allowed are
 * WEIR_RESOURCE_EXHAUSTED and `also`.
 */
const weir_allocator *bank_allocator(void);
weir_tensor *bank_make(int64_t value);
int bank_judge(enum weir_status status, enum weir_status also, const char *call);

uint64_t bank_increments(void);
uint64_t bank_refused(void); /* since the process began */

#endif
