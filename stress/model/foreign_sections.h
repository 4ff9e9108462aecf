/*
 * foreign_sections.h - sections that Weir does not see, for the checks of hosts: those of a small RCU, in
 * the manner of liburcu's flavour memb.
 *
 * A reader announces itself and reads, without a fence of its own unless membarrier is refused. So
 * nothing orders what its thread wrote before the section, such as an attachment. A grace period runs a
 * membarrier, and looks once whether each reader was outside after it began; if one was not, it has not
 * ended. So no thread waits here.
 */
#ifndef WEIR_MODEL_FOREIGN_SECTIONS_H
#define WEIR_MODEL_FOREIGN_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/asymmetric.h"
#include "base/atomic.h"

static inline void foreign_enter(_Atomic(uint32_t) *inside)
{
	weiri_store_relaxed(inside, 1u);
	weiri_fence_light();
}

static inline void foreign_leave(_Atomic(uint32_t) *inside)
{
	weiri_store_release(inside, 0u);
}

/* Returns true if each of the readers was outside after the call began. */
static inline bool foreign_grace_period(_Atomic(uint32_t) inside[], size_t readers)
{
	(void)weiri_fence_heavy();
	for (size_t i = 0; i < readers; i++) {
		if (weiri_load_acquire(&inside[i]) != 0)
			return false;
	}
	return true;
}

#endif
