/*
 * beacon.c - see beacon.h.
 */
#include "sync/beacon.h"

#include "base/compiler.h"

enum { DARK = 0, LIGHTING = 1, LIT = 2, STATE = 3, ONE_VERSION = 4 };

void weiri_beacon_init(struct weiri_beacon *beacon)
{
	weiri_store_relaxed(&beacon->word, (uint64_t)DARK); /* [relaxed] not shared yet */
	beacon->event = weiri_eventfd_open();
}

void weiri_beacon_fini(struct weiri_beacon *beacon)
{
	weiri_eventfd_close(beacon->event);
}

/*
 * From `seen` to the next version, in this state. [P1 release] No acquire: a version never comes
 * back, so a CAS that succeeds reads the store that was loaded with one.
 */
static int change(struct weiri_beacon *beacon, uint64_t seen, uint64_t state)
{
	uint64_t next = ((seen & ~(uint64_t)STATE) + ONE_VERSION) | state;

	return weiri_cas_release(&beacon->word, &seen, next);
}

/* Finishes what a thread, perhaps this one, began with LIGHTING. */
static void light(struct weiri_beacon *beacon, uint64_t seen)
{
	weiri_eventfd_add(beacon->event);
	if (!change(beacon, seen, LIT))
		weiri_eventfd_take(beacon->event); /* B1: another's is in */
}

void weiri_beacon_settle(struct weiri_beacon *beacon, weiri_beacon_look_fn *look, void *context)
{
	for (;;) {
		/* [P1 acquire] first the word, then the condition: B3. */
		uint64_t seen = weiri_load_acquire(&beacon->word), state = seen & STATE;

		if (state == LIGHTING) {
			light(beacon, seen);
		} else if (look(context)) {
			if (change(beacon, seen, state == LIT ? LIT : LIGHTING) && state == LIT)
				return;
		} else if (change(beacon, seen, DARK)) {
			if (state == LIT)
				weiri_eventfd_take(beacon->event);
			return;
		}
	}
}
