/*
 * time.h - the clock that deadlines refer to.
 *
 * A deadline is absolute: nanoseconds of CLOCK_MONOTONIC, so that one deadline can bound a chain of
 * calls. A deadline of 0 has already passed (the call tries once); WEIR_NO_DEADLINE never passes.
 *
 * | call             | threads | progress  | blocks on | allocates | signal-safe |
 * |------------------|---------|-----------|-----------|-----------|-------------|
 * | weir_now_ns      | any     | wait-free | nothing   | no        | yes         |
 * | weir_deadline_in | any     | wait-free | nothing   | no        | yes         |
 */
#ifndef WEIR_TIME_H
#define WEIR_TIME_H

#include <stdint.h>
#include <weir/api.h>

WEIR_BEGIN_DECLS

#define WEIR_NO_DEADLINE 0xffffffffffffffffu /* UINT64_MAX */

/* Nanoseconds of CLOCK_MONOTONIC. @since 0.1 */
WEIR_API uint64_t weir_now_ns(void);

/* The deadline that is `nanoseconds` from now; saturates at WEIR_NO_DEADLINE. @since 0.1 */
WEIR_API uint64_t weir_deadline_in(uint64_t nanoseconds);

WEIR_END_DECLS

#endif
