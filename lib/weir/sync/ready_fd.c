/*
 * ready_fd.c - see ready_fd.h.
 */
#include "sync/ready_fd.h"

#include "base/assert.h"

enum { DARK = 0, LIGHTING = 1, LIT = WEIRI_READY_FD_LIT, STATE = WEIRI_READY_FD_STATE, CHECK = WEIRI_READY_FD_CHECK };

#define TAKER WEIRI_READY_FD_TAKER     /* one more */
#define SPARE WEIRI_READY_FD_SPARE     /* one more */
#define VERSION WEIRI_READY_FD_VERSION /* one more */
#define DARKNESS (VERSION << 10)       /* one more: the upper part of the version */
#define MOST_TAKERS (SPARE / TAKER - 1)
#define MOST_SPARE (VERSION / SPARE - 1)

static uint64_t takers_of(uint64_t word)
{
	return word / TAKER & MOST_TAKERS;
}

static uint64_t spare_of(uint64_t word)
{
	return word / SPARE & MOST_SPARE;
}

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
 * Changes the word from *seen to `next`, which gets a new version; *seen is then the new word.
 * [P1 release] No acquire: a version never comes back, so a CAS that succeeds reads the store that
 * the load of *seen acquired.
 */
static bool change(struct weiri_ready_fd *ready_fd, uint64_t *seen, uint64_t next)
{
	uint64_t expected = *seen;

	next += VERSION;
	if (!weiri_cas_release(&ready_fd->word, &expected, next))
		return false;
	*seen = next;
	return true;
}

/* Returns `word` in this state, without CHECK. */
static uint64_t in_state(uint64_t word, uint64_t state)
{
	return (word & ~(uint64_t)(STATE | CHECK)) | state;
}

/*
 * The caller is a taker. Returns false if the add that it wanted has not been made yet; the thread
 * that makes it then finds it spare.
 */
static bool take(struct weiri_ready_fd *ready_fd)
{
	bool taken = weiri_eventfd_take(ready_fd->event);
	uint64_t seen;

	do {
		/* [P1 acquire] see change(). */
		seen = weiri_load_acquire(&ready_fd->word);
	} while (!change(ready_fd, &seen, seen - TAKER + (taken ? 0 : SPARE)));
	if (taken)
		return true;
	weiri_fence_seq_cst(); /* F2 */
	return weiri_eventfd_is_readable(ready_fd->event);
}

/*
 * The caller has changed the word to `mine`, which is LIGHTING, and has made its adds. Makes the word
 * LIT, unless another thread was first, or the word has become DARK since.
 */
static void confirm(struct weiri_ready_fd *ready_fd, uint64_t mine)
{
	uint64_t seen = mine;

	do {
		WEIR_ASSERT2(B1, spare_of(seen) != 0);
		if (change(ready_fd, &seen, in_state(seen, LIT) - SPARE))
			return;
		/* [P1 acquire] see change(). */
		seen = weiri_load_acquire(&ready_fd->word);
	} while ((seen & STATE) == LIGHTING && seen / DARKNESS == mine / DARKNESS);
}

/* The condition holds, and the word is DARK or LIGHTING. Returns false if there is no room to count more adds. */
static bool light(struct weiri_ready_fd *ready_fd, uint64_t seen)
{
	uint64_t adds = 1 + takers_of(seen);

	if (spare_of(seen) + takers_of(seen) + adds > MOST_SPARE)
		return false;
	if (!change(ready_fd, &seen, in_state(seen, LIGHTING) + adds * SPARE))
		return true;
	weiri_eventfd_add(ready_fd->event, adds);
	confirm(ready_fd, seen);
	/*
	 * F1: the next look sees the change of a thread that ended the condition and found the word
	 * DARK. F2
	 */
	weiri_fence_seq_cst();
	return true;
}

/* The condition does not hold, and the word is not DARK. Returns false if there is no room for a taker. */
static bool darken(struct weiri_ready_fd *ready_fd, uint64_t seen, weiri_ready_fd_look_fn *look, void *context)
{
	/* What the taker takes: the add that backs LIT, or a spare one. */
	uint64_t spare = (seen & STATE) == LIT ? 0 : SPARE;

	if (takers_of(seen) == MOST_TAKERS)
		return false;
	if ((seen & CHECK) == 0) {
		if (!change(ready_fd, &seen, seen | CHECK))
			return true;
	} else {
		/*
		 * This thread looks for the one that set CHECK, too. [relaxed, F1] C11 orders the fence after
		 * a store of this thread, so it stores what is there. What P1 carries passes through: a
		 * read-modify-write continues the release sequence.
		 */
		(void)weiri_fetch_add_relaxed(&ready_fd->word, UINT64_C(0));
	}
	weiri_fence_seq_cst(); /* F1 */
	if (look(context))
		return true; /* B4; the next round removes CHECK */
	WEIR_ASSERT2(B1, spare_of(seen) >= spare / SPARE);
	/* The carry out of the lower part of the version begins a new darkness. */
	if (change(ready_fd, &seen, (in_state(seen, DARK) - spare + TAKER) | (DARKNESS - VERSION)))
		(void)take(ready_fd);
	return true;
}

/* The word is DARK. Takes a spare add. Returns false if there is none, or it is not there yet. */
static bool take_spare(struct weiri_ready_fd *ready_fd, uint64_t seen)
{
	if (spare_of(seen) == 0 || takers_of(seen) == MOST_TAKERS)
		return false;
	return !change(ready_fd, &seen, seen - SPARE + TAKER) || take(ready_fd);
}

/* Returns true while the word may not agree yet. */
static bool settle_once(struct weiri_ready_fd *ready_fd, weiri_ready_fd_look_fn *look, void *context)
{
	/* [P1 acquire] first the word, then the condition. */
	uint64_t seen = weiri_load_acquire(&ready_fd->word), state = seen & STATE;

	if (!look(context))
		return state == DARK ? take_spare(ready_fd, seen) : darken(ready_fd, seen, look, context);
	if (state != LIT)
		return light(ready_fd, seen);
	return (seen & CHECK) != 0 && !change(ready_fd, &seen, in_state(seen, LIT));
}

void weiri_ready_fd_settle(struct weiri_ready_fd *ready_fd, weiri_ready_fd_look_fn *look, void *context)
{
	while (settle_once(ready_fd, look, context))
		;
}
