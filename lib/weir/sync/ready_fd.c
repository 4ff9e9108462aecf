/*
 * ready_fd.c - see ready_fd.h.
 */
#include "sync/ready_fd.h"

#include "base/compiler.h"

enum { DARK = 0, LIGHTING = 1, LIT = 2, STATE = 3, ONE_VERSION = 4 };

void weiri_ready_fd_init(struct weiri_ready_fd *ready_fd)
{
	weiri_store_relaxed(&ready_fd->word, (uint64_t)DARK); /* [relaxed] not shared yet */
	ready_fd->event = weiri_eventfd_open();
}

void weiri_ready_fd_fini(struct weiri_ready_fd *ready_fd)
{
	weiri_eventfd_close(ready_fd->event);
}

/*
 * Changes the word from `seen` to the next version, with this state. [P1 release] No acquire: a
 * version never comes back, so a CAS that succeeds reads the store that the load of `seen`
 * acquired.
 */
static bool change(struct weiri_ready_fd *ready_fd, uint64_t seen, uint64_t state)
{
	uint64_t next = ((seen & ~(uint64_t)STATE) + ONE_VERSION) | state;

	return weiri_cas_release(&ready_fd->word, &seen, next);
}

/* Finishes what a thread, perhaps this one, began with LIGHTING. */
static void light(struct weiri_ready_fd *ready_fd, uint64_t seen)
{
	weiri_eventfd_add(ready_fd->event);
	if (!change(ready_fd, seen, LIT))
		weiri_eventfd_take(ready_fd->event); /* B1: that of another thread is in */
}

void weiri_ready_fd_settle(struct weiri_ready_fd *ready_fd, weiri_ready_fd_look_fn *look, void *context)
{
	for (;;) {
		/* [P1 acquire] first the word, then the condition: B3. */
		uint64_t seen = weiri_load_acquire(&ready_fd->word), state = seen & STATE;

		if (state == LIGHTING) {
			light(ready_fd, seen);
		} else if (look(context)) {
			if (change(ready_fd, seen, state == LIT ? LIT : LIGHTING) && state == LIT)
				return;
		} else if (change(ready_fd, seen, DARK)) {
			if (state == LIT)
				weiri_eventfd_take(ready_fd->event);
			return;
		}
	}
}
