/*
 * turn.h - who may work on something that one thread works on at a time, and who repeats work that
 * found nothing to do.
 *
 * A pipeline has parts in which elements come one after the other: a thread takes the turn, polls,
 * and gives the turn up. A poll may find that what it needs is still under way. The thread then
 * leaves the turn stuck, and whoever finishes what was missing resumes it. The thread that polled
 * need not wait.
 *
 * | state | meaning                                        | next                                   |
 * |-------|------------------------------------------------|----------------------------------------|
 * | FREE  | nobody works                                   | TAKEN take, seize                      |
 * | TAKEN | one thread works                               | FREE give, yield, STUCK stick, AGAIN resume, seize |
 * | AGAIN | one thread works; something became ready       | FREE give, TAKEN stick or yield (which fail), AGAIN resume, seize |
 * | STUCK | the last poll found nothing; someone will resume | FREE resume, TAKEN seize             |
 *
 * Invariants
 *   T1  one thread has the turn, or none: the state leaves FREE and STUCK by a compare-and-swap, and
 *       only its winner works
 *   T2  no resume is lost. A poller says in the thing itself that it waits (window_take.c: AWAITED),
 *       before it sticks. Whoever finishes the thing finds that, and resumes. If the turn is TAKEN
 *       still, the resume leaves AGAIN, and the stick fails
 * Pairs
 *   P1  give, stick -> take, seize: what the holder did; a resume between the two continues the release sequence
 *   P2  seize -> stick that fails: that the work ends
 * Why T2 holds. A resume that finds TAKEN, AGAIN or STUCK changes the state by a read-modify-write,
 *   and so does each stick. If the resume is first, the stick fails, and the holder polls again.
 *   If the stick is first, the resume finds STUCK, and some thread polls later. A resume need carry nothing: each
 *   poll looks at the thing by a read-modify-write (window_take.c, and has_room() of window_fill.h). The finish read
 *   what the poller's last one wrote, so the next one reads the finish or what came after it, and acquires it there.
 * Why T2 also holds if the resume finds the turn FREE, and writes nothing. Some thread polls later,
 *   and looks at the thing by a read-modify-write (window_take.c). Either this read follows the finish,
 *   and the thread takes the thing. Or the finish follows it, and thus acquires what that thread
 *   did: the resume then finds the TAKEN of that thread, or a later state.
 * A thread that resumes a stuck turn although nothing was finished must poll then, or wake those that
 *   wait: nobody else will.
 * Progress: take, give, yield and stick are wait-free; resume and seize are lock-free: their CAS
 *   fails only after a change by the holder or by another resume.
 * Checked: stress/model/check_window.c; tests/test_dataset.c, test_dataset_ahead.c.
 */
#ifndef WEIRI_DATA_TURN_H
#define WEIRI_DATA_TURN_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "sync/look.h"

enum weiri_turn_state { WEIRI_TURN_FREE = 0, WEIRI_TURN_TAKEN = 1, WEIRI_TURN_AGAIN = 2, WEIRI_TURN_STUCK = 3 };

struct weiri_turn {
	_Atomic(uint32_t) state;
};

static inline void weiri_turn_init(struct weiri_turn *turn, enum weiri_turn_state state)
{
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&turn->state, (uint32_t)state);
}

/* Returns true if the caller now has the turn. */
static inline bool weiri_turn_take(struct weiri_turn *turn)
{
	uint32_t state = WEIRI_TURN_FREE;

	/* [relaxed] a look that leaves the line to the holder. */
	if (weiri_load_relaxed(&turn->state) != WEIRI_TURN_FREE)
		return false;
	/* [P1 acquire] pairs with give and stick. */
	return weiri_cas_acquire(&turn->state, &state, WEIRI_TURN_TAKEN);
}

/* Called by the holder. */
static inline void weiri_turn_give(struct weiri_turn *turn)
{
	/* [P1 release] pairs with take. Over AGAIN too: the next holder polls anyway. */
	weiri_store_release(&turn->state, WEIRI_TURN_FREE);
}

/* Called by the holder: the change from TAKEN, which fails over AGAIN; the holder then looks again. */
static inline bool weiri_turn_leave(struct weiri_turn *turn, enum weiri_turn_state to)
{
	uint32_t state = WEIRI_TURN_TAKEN;

	/* [P1 release] pairs with take and seize. */
	if (weiri_cas_release(&turn->state, &state, (uint32_t)to))
		return true;
	/* [P2 acquire] pairs with the seize that left AGAIN. */
	(void)weiri_exchange_acquire(&turn->state, WEIRI_TURN_TAKEN);
	return false;
}

/*
 * As give, but fails if something became ready, or a seize came. Returns false if the caller still
 * has the turn and must look again.
 */
static inline bool weiri_turn_yield(struct weiri_turn *turn)
{
	return weiri_turn_leave(turn, WEIRI_TURN_FREE);
}

/*
 * Called by the holder, whose poll found nothing. Returns true if the turn is stuck; the caller then
 * touches nothing of it any more. Returns false if the caller still has the turn and must poll
 * again.
 */
static inline bool weiri_turn_stick(struct weiri_turn *turn)
{
	return weiri_turn_leave(turn, WEIRI_TURN_STUCK);
}

#if defined(WEIRI_UNDER_MODEL)
enum { WEIRI_TURN_PAUSES = 0, WEIRI_TURN_YIELDS = 0 };
#else
enum { WEIRI_TURN_PAUSES = 200, WEIRI_TURN_YIELDS = 8 };
#endif
static const uint64_t weiri_turn_look_ns = 50000;

/*
 * Called by the holder, before it sticks and sleeps: what is under way on another processor often
 * becomes ready within a microsecond, and a sleep costs several. Returns true if something did.
 */
static inline bool weiri_turn_linger(const struct weiri_turn *turn)
{
	/* [relaxed] a look; stick acquires what became ready. */
	for (int i = 0; i < WEIRI_TURN_PAUSES + WEIRI_TURN_YIELDS; i++) {
		if (weiri_load_relaxed(&turn->state) == WEIRI_TURN_AGAIN)
			return true;
		if (i < WEIRI_TURN_PAUSES)
			weiri_pause();
		else
			(void)sched_yield();
	}
	return false;
}

/*
 * Looks for the turn (sync/look.h), unless it is stuck. Returns true if the caller now has it. *in_vain: it
 * looked for as long as it may.
 */
static inline bool weiri_turn_look(struct weiri_turn *turn, struct weiri_own *own, uint64_t deadline_ns, bool *in_vain)
{
	struct weiri_looks looks;

	weiri_looks_begin(&looks, own, weiri_turn_look_ns, deadline_ns, 0);
	while (weiri_looks_go_on(&looks)) {
		if (weiri_turn_take(turn))
			return true;
		/* [relaxed] a look. */
		if (weiri_load_relaxed(&turn->state) == WEIRI_TURN_STUCK)
			return false;
	}
	*in_vain = weiri_looks_in_vain(&looks);
	return false;
}

/*
 * Called by a thread without the turn, before it waits for it. Returns true if the caller now has
 * the turn. *in_vain: as for weiri_turn_look().
 */
static inline bool weiri_turn_take_soon(struct weiri_turn *turn, struct weiri_own *own, uint64_t deadline_ns,
                                        bool *in_vain)
{
	*in_vain = false;
	if (own->unlooked != 0)
		own->unlooked--;
	else if (weiri_turn_look(turn, own, deadline_ns, in_vain))
		return true;
	for (int i = 0; i < WEIRI_TURN_YIELDS; i++) {
		(void)sched_yield();
		if (weiri_turn_take(turn))
			return true;
	}
	return false;
}

/*
 * Called by a thread that has finished what a poller waits for. Returns true if the turn was stuck.
 * It is then FREE for whoever takes it.
 */
static inline bool weiri_turn_resume(struct weiri_turn *turn)
{
	/* [relaxed] a look; see above for FREE. */
	uint32_t state = weiri_load_relaxed(&turn->state);

	while (state != WEIRI_TURN_FREE) {
		bool is_stuck = state == WEIRI_TURN_STUCK;

		/* [relaxed] carries nothing (T2), and continues the release sequence of the stick (P1). */
		if (weiri_cas_relaxed(&turn->state, &state, is_stuck ? WEIRI_TURN_FREE : WEIRI_TURN_AGAIN))
			return is_stuck;
	}
	return false;
}

/*
 * Called by a thread that ends the work. Returns true if the caller now has the turn. Otherwise its
 * holder looks again before it leaves it.
 */
static inline bool weiri_turn_seize(struct weiri_turn *turn)
{
	/* [relaxed] the compare-and-swap orders what matters. */
	uint32_t state = weiri_load_relaxed(&turn->state);

	for (;;) {
		bool is_held = state == WEIRI_TURN_TAKEN || state == WEIRI_TURN_AGAIN;

		/* [acq_rel: P1 from give, yield and stick; P2 to the holder] */
		if (weiri_cas_acq_rel(&turn->state, &state, is_held ? WEIRI_TURN_AGAIN : WEIRI_TURN_TAKEN))
			return !is_held;
	}
}

/* [relaxed] a look. */
static inline bool weiri_turn_is_free(const struct weiri_turn *turn)
{
	return weiri_load_relaxed(&turn->state) == WEIRI_TURN_FREE;
}

#endif
