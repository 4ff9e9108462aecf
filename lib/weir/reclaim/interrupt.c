/*
 * interrupt.c - see interrupt.h. The interrupt lies in what the thread keeps for itself (own.h), so
 * only the thread itself reads and writes it.
 */
#include "reclaim/interrupt.h"

#include <weir/thread.h>
#include <weir/time.h>

#include "reclaim/record.h"

const weir_error weiri_interrupt_cause = {WEIR_CANCELLED, "a signal interrupted the wait"};

/* 68 years after the start of the machine: the last second that Linux can represent everywhere. */
static const uint64_t far_ns = UINT64_C(2147483647) * 1000000000u;

enum weir_status weir_thread_set_interrupt(weir_thread_interrupt_fn *fn, void *context)
{
	struct weiri_record *record = fn != NULL ? weiri_record_get() : weiri_record_mine;

	if (record == NULL)
		return fn != NULL ? WEIR_RESOURCE_EXHAUSTED : WEIR_OK;
	record->own->interrupt = (struct weiri_interrupt){.fn = fn, .context = context};
	return WEIR_OK;
}

bool weiri_interrupt_ends_wait(void)
{
	struct weiri_own *own = weiri_own_mine();

	return own != NULL && own->interrupt.fn != NULL && own->interrupt.fn(own->interrupt.context) != 0;
}

uint64_t weiri_interrupt_until(uint64_t deadline_ns)
{
	const struct weiri_own *own = weiri_own_mine();
	bool is_set = own != NULL && own->interrupt.fn != NULL;

	return is_set && deadline_ns == WEIR_NO_DEADLINE ? far_ns : deadline_ns;
}
