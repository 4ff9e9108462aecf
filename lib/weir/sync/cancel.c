/*
 * cancel.c - cancel tokens.
 *
 * Algorithm. A token has one word, which says whether it fired and with which cause, and slots for
 * hooks. Firing is one CAS of the word, then a walk over the slots. Registering a hook arms a slot,
 * then looks at the word. At least one of the two finds the hook that is to run. The slot's state
 * changes by CAS, so the hook runs once. Slots are recycled, and stay on the token's list for the
 * token's life. So a walk needs no reclamation, no memory and no record of its thread: a thread
 * without a record can fire.
 *
 * Helping. The walk belongs to no thread. Hooks are claimed one by one, and every fire walks, the
 * first and all later ones. So a thread that stalls in a fire delays the hook that it runs and no
 * other, as soon as another thread fires. Hooks of the library's own waits (sync/cancel.h) also run
 * in calls that find their token fired when they begin, and in weir_cancel_on. Those calls do not
 * run hooks of users: only a caller of fire expects that user code runs inside its call. One limit
 * remains. A sleeping waiter executes nothing until some thread makes a system call for it. Suppose
 * that the only thread that ever fires stalls after the CAS and before it has reached that waiter.
 * If no other thread fires or passes the token to a call, the waiter sleeps until its deadline,
 * just as if the thread had stalled before it fired.
 *
 * The cause. It does not fit into a word. A firing thread first writes the cause to a place of its
 * own, and the CAS that fires says which place that is. To wait for a free place could mean to wait
 * for a stalled thread. So if all places are taken, by running fires or by fires that lost, the
 * fire publishes the code of the cause without the message.
 *
 *   slot    FREE -> TAKEN (on) -> ARMED_* (on) -> RUNNING (a runner) -> RUN (the runner)
 *           ARMED_* -> FREE (off: never runs)
 *           RUNNING -> LEFT (off) -> FREE (the runner)
 *           RUN -> FREE (off)
 *
 * Invariants
 *   C1  fn and context of a slot are written by the thread that took it and read by the thread that
 *       made it RUNNING, between those two changes
 *   C2  the token's word changes once
 *   C3  a slot is on the list from its first use to the end of the token; its `next` never changes
 * Pairs
 *   P1  fire (word) -> fired (word): the cause
 *   P2  last release -> free; releases -> weiri_cancel_is_unused
 *   P3  arm (ARMED_*) -> run (RUNNING): fn and context
 *   P4  run (RUN, FREE) -> take (TAKEN): the runner has finished with the slot; off's change of RUN
 *       to FREE continues that release sequence
 *   S   the arming and listing of a slot, and the word, are seq_cst, because two variables are
 *       involved. One thread arms a slot and then looks at the word; the other fires and then walks
 *       (Dekker's pattern)
 * Linearization: fire at its CAS.
 * Progress: fired, cause, off and a walk are wait-free, apart from the hooks that run. A walk tries
 *   each slot once: a slot that changes meanwhile was claimed by another thread, or armed again by
 *   a thread that then sees the word. on is lock-free: it loses a place on the list only to another
 *   registration.
 * Memory: as many slots as hooks were ever registered at once. Each hook holds a reference to the
 *   token until it is off. A walk holds a reference, since a hook may give back that of the caller.
 * Checked: tests/test_cancel.c (also with a fire stopped between any two hooks),
 *   stress/model/check_cancel.c, stress queue_cancel.
 */
#include "sync/cancel.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"

/*
 * The state of an armed slot tells a user's hook from that of a wait, so a thread knows what it
 * claims.
 */
enum { SLOT_FREE, SLOT_TAKEN, SLOT_ARMED_USER, SLOT_ARMED_WAIT, SLOT_RUNNING, SLOT_RUN, SLOT_LEFT };
enum { CAUSES = 2 };
/* The word: 0, or FIRED and either the place of the cause, from 1, or its code. */
#define FIRED (UINT32_C(1) << 31)
#define PLACE_SHIFT 16
#define CODE_MASK ((UINT32_C(1) << PLACE_SHIFT) - 1)

struct weir_cancel_hook {
	_Atomic(uint32_t) state; /* SLOT_* */
	weir_cancel_fn *fn;
	void *context;
	weir_cancel *token;            /* constant */
	struct weir_cancel_hook *next; /* constant once listed */
};

struct weir_cancel {
	_Atomic(uint32_t) references;
	_Atomic(uint32_t) word;
	_Atomic(struct weir_cancel_hook *) slots;
	_Atomic(uint32_t) causes_taken; /* places given out, and refusals */
	weir_allocator allocator;
	weir_error causes[CAUSES];
};

enum weir_status weir_cancel_create(const weir_allocator *allocator, weir_cancel **out, weir_error *error)
{
	weir_allocator chosen = weiri_allocator_or_default(allocator);
	weir_cancel *token;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "cancel token: out is NULL");
	token = weiri_allocate_zeroed(&chosen, sizeof(*token), alignof(weir_cancel));
	if (token == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "cancel token: no memory");
	weiri_store_relaxed(&token->references, 1u); /* [relaxed] not shared yet */
	token->allocator = chosen;
	*out = token;
	return WEIR_OK;
}

weir_cancel *weir_cancel_retain(weir_cancel *token)
{
	if (token != NULL)
		weiri_fetch_add_relaxed(&token->references, 1u); /* [relaxed] the caller has one already */
	return token;
}

/* -- assertions -------------------------------------------------------------------------------- */

/* This thread has taken the slot, and no other thread changes it now. */
static WEIRI_UNSEEN void assert_taken(const weir_cancel_hook *slot)
{
	WEIR_ASSERT2(C1, weiri_peek(&slot->state) == SLOT_TAKEN);
}

static WEIRI_UNSEEN void assert_fired(const weir_cancel *token)
{
	WEIR_ASSERT2(C2, (weiri_peek(&token->word) & FIRED) != 0);
}

static WEIRI_UNSEEN void assert_listed(const weir_cancel *token, const weir_cancel_hook *slot)
{
	const weir_cancel_hook *other = weiri_peek(&token->slots);

	while (other != NULL && other != slot)
		other = other->next;
	WEIR_ASSERT3(C3, other == slot);
}

static void token_free(weir_cancel *token)
{
	weir_allocator allocator = token->allocator;
	/* [relaxed] the last reference: P2 brought all of the list. */
	weir_cancel_hook *slot = weiri_load_relaxed(&token->slots);

	while (slot != NULL) {
		weir_cancel_hook *next = slot->next;

		weiri_release(&allocator, slot, sizeof(*slot), alignof(weir_cancel_hook));
		slot = next;
	}
	weiri_release(&allocator, token, sizeof(*token), alignof(weir_cancel));
}

void weir_cancel_release(weir_cancel *token)
{
	/* [P2 acq_rel] the last release sees all that came before the others. */
	if (token != NULL && weiri_fetch_sub_acq_rel(&token->references, 1u) == 1)
		token_free(token);
}

bool weiri_cancel_is_unused(const weir_cancel *token)
{
	/*
	 * [P2 acquire] the other references are gone, and so is what their holders did. [relaxed] the word:
	 * only they could have fired the token.
	 */
	return weiri_load_acquire(&token->references) == 1 && weiri_load_relaxed(&token->word) == 0;
}

/* -- running hooks ----------------------------------------------------------------------------- */

/* Runs the hook, unless another thread has claimed it or it is off. The caller holds the token. */
static void run_if_armed(weir_cancel_hook *hook, uint32_t state)
{
	/* [P3 acquire] No release: RUNNING hands nothing over, RUN and FREE do. */
	if (!weiri_cas_acquire(&hook->state, &state, (uint32_t)SLOT_RUNNING))
		return;
	hook->fn(hook->context);
	state = SLOT_RUNNING;
	/*
	 * [P4 release] this thread is finished with the slot. The CAS fails if the state is LEFT: fn,
	 * or another thread meanwhile, has taken the hook off. [relaxed] is enough then, because the
	 * owner's last write to the slot came before the slot was armed.
	 */
	if (!weiri_cas_release(&hook->state, &state, (uint32_t)SLOT_RUN))
		/* [P4 release] */
		weiri_store_release(&hook->state, (uint32_t)SLOT_FREE);
}

/* Runs the hooks of waits on this thread, and users' hooks if `users_too`. The token has fired. */
static void run_hooks(weir_cancel *token, bool users_too)
{
	weir_cancel_hook *hook;

	(void)weir_cancel_retain(token);
	/* [S] after the word: if this walk misses a slot, the thread that arms it sees the word. */
	for (hook = weiri_load_seq_cst(&token->slots); hook != NULL; hook = hook->next) {
		/* [S] the same. */
		uint32_t state = weiri_load_seq_cst(&hook->state);

		if (state == SLOT_ARMED_WAIT || (state == SLOT_ARMED_USER && users_too))
			run_if_armed(hook, state);
	}
	weir_cancel_release(token);
}

void weiri_cancel_help(weir_cancel *token)
{
	run_hooks(token, false);
}

/* -- firing ------------------------------------------------------------------------------------ */

/* Returns what the word becomes: the place of the cause, or its code. */
static uint32_t leave_cause(weir_cancel *token, const weir_error *cause)
{
	/* [relaxed] each fire gets a number of its own. */
	uint32_t place = weiri_fetch_add_relaxed(&token->causes_taken, 1u);
	weir_error none;

	if (cause == NULL || cause->code == WEIR_OK) {
		(void)weiri_fail(&none, WEIR_CANCELLED, "cancelled");
		cause = &none;
	}
	if (place >= CAUSES)
		return FIRED | ((uint32_t)cause->code & CODE_MASK);
	token->causes[place] = weiri_error_kept(cause);
	return FIRED | (place + 1) << PLACE_SHIFT;
}

bool weir_cancel_fire(weir_cancel *token, const weir_error *cause)
{
	uint32_t open = 0;
	bool first = false;

	if (token == NULL)
		return false;
	if (!weir_cancel_fired(token)) {
		/* [S, P1 release] */
		first = weiri_cas_seq_cst(&token->word, &open, leave_cause(token, cause));
	}
	WEIR_ASSERT_LOOK(assert_fired(token));
	run_hooks(token, true);
	return first;
}

bool weir_cancel_fired(const weir_cancel *token)
{
	/* [S, P1 acquire] */
	return token != NULL && weiri_load_seq_cst(&token->word) != 0;
}

enum weir_status weir_cancel_cause(const weir_cancel *token, weir_error *error)
{
	/* [P1 acquire] */
	uint32_t word = token != NULL ? weiri_load_acquire(&token->word) : 0;
	uint32_t place = (word & ~FIRED) >> PLACE_SHIFT;
	enum weir_status code;

	if (word == 0)
		return WEIR_OK;
	if (place != 0) {
		if (error != NULL)
			*error = token->causes[place - 1];
		return token->causes[place - 1].code;
	}
	code = (enum weir_status)(word & CODE_MASK);
	return weiri_fail(error, code, "cancelled: %s", weir_status_name(code));
}

/* -- hooks ------------------------------------------------------------------------------------- */

static weir_cancel_hook *take_free_slot(weir_cancel *token)
{
	/* [acquire] the slots' constants. */
	weir_cancel_hook *slot = weiri_load_acquire(&token->slots);

	for (; slot != NULL; slot = slot->next) {
		uint32_t state = weiri_load_relaxed(&slot->state); /* [relaxed] a look that spares the line; the CAS decides */

		/* [P4 acquire] */
		if (state == SLOT_FREE && weiri_cas_acquire(&slot->state, &state, (uint32_t)SLOT_TAKEN))
			return slot;
	}
	return NULL;
}

static weir_cancel_hook *list_new_slot(weir_cancel *token)
{
	weir_cancel_hook *slot = weiri_allocate_zeroed(&token->allocator, sizeof(*slot), alignof(weir_cancel_hook));

	if (slot == NULL)
		return NULL;
	weiri_store_relaxed(&slot->state, (uint32_t)SLOT_TAKEN); /* [relaxed] not shared yet */
	slot->token = token;
	slot->next = weiri_load_relaxed(&token->slots); /* [relaxed] the CAS counts */
	/* [S, release] listed before it is armed. */
	while (!weiri_cas_seq_cst(&token->slots, &slot->next, slot))
		;
	return slot;
}

static enum weir_status put_on(weir_cancel *token, uint32_t armed, weir_cancel_fn *fn, void *context,
                               weir_cancel_hook **out)
{
	weir_cancel_hook *hook;

	if (token == NULL || fn == NULL || out == NULL)
		return WEIR_INVALID_ARGUMENT;
	hook = take_free_slot(token);
	if (hook == NULL)
		hook = list_new_slot(token);
	if (hook == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	WEIR_ASSERT_LOOK(assert_taken(hook));
	WEIR_ASSERT_INSTANT(assert_listed(token, hook));
	hook->fn = fn;
	hook->context = context;
	(void)weir_cancel_retain(token);
	*out = hook;
	/* [S, P3 release] */
	weiri_store_seq_cst(&hook->state, armed);
	if (WEIRI_UNLIKELY(weir_cancel_fired(token))) { /* [S] fired, perhaps before it was armed */
		(void)weir_cancel_retain(token);            /* fn may take the hook off */
		run_if_armed(hook, armed);
		weiri_cancel_help(token);
		weir_cancel_release(token);
	}
	return WEIR_OK;
}

enum weir_status weir_cancel_on(weir_cancel *token, weir_cancel_fn *fn, void *context, weir_cancel_hook **out)
{
	return put_on(token, SLOT_ARMED_USER, fn, context, out);
}

enum weir_status weiri_cancel_on_wait(weir_cancel *token, weir_cancel_fn *fn, void *context, weir_cancel_hook **out)
{
	return put_on(token, SLOT_ARMED_WAIT, fn, context, out);
}

bool weir_cancel_off(weir_cancel_hook *hook)
{
	weir_cancel *token;
	uint32_t state;

	if (hook == NULL)
		return true;
	token = hook->token;
	state = weiri_load_relaxed(&hook->state); /* [relaxed] the CAS decides */
	/*
	 * [relaxed] the result does not say that fn has ended, so the call hands nothing over. The next
	 * thread that takes the slot reads from a release sequence, which the runner (P4) or the thread
	 * that armed the slot began. No other thread has written to the slot since. The loop makes at
	 * most three rounds.
	 */
	while (!weiri_cas_relaxed(&hook->state, &state, (uint32_t)(state == SLOT_RUNNING ? SLOT_LEFT : SLOT_FREE)))
		;
	weir_cancel_release(token);
	return state == SLOT_ARMED_USER || state == SLOT_ARMED_WAIT;
}
