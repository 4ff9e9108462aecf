/*
 * pending.c - see pending.h: the state machine, and how operations that wait are served.
 */
#include "sync/pending.h"

#include <stdalign.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/memory.h"
#include "base/thread.h"
#include "reclaim/interrupt.h"
#include "sync/cancel.h"

static void list_let_go(struct weiri_retired *retired)
{
	struct weiri_list_node *node = WEIRI_CONTAINER_OF(retired, struct weiri_list_node, retired);

	weiri_pending_release(weiri_pending_entry_of(node)->pending);
}

void weiri_pending_init(weir_pending *pending, const struct weiri_pending_kind *kind,
                        struct weiri_pending_entry *entries, size_t entry_count, size_t size,
                        const weir_allocator *allocator)
{
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&pending->state, (uint32_t)WEIRI_PENDING_CLAIMED);
	weiri_store_relaxed(&pending->references, 2u);
	weiri_store_relaxed(&pending->finished, (uint32_t)WEIRI_PENDING_UNFINISHED);
	pending->kind = kind;
	pending->entries = entries;
	pending->entry_count = entry_count;
	pending->size = size;
	pending->allocator = *allocator;
}

void weiri_pending_entry_init(weir_pending *pending, struct weiri_pending_entry *entry, struct weiri_wait_place place)
{
	weiri_list_node_init(&entry->node, pending->size / pending->entry_count, list_let_go);
	entry->pending = pending;
	entry->place = place;
}

void weiri_pending_retain(weir_pending *pending)
{
	/* [relaxed] the caller has a reference, or is in a scope that keeps the list's. */
	(void)weiri_fetch_add_relaxed(&pending->references, 1u);
}

void weiri_pending_release(weir_pending *pending)
{
	weir_allocator allocator;

	/* [acq_rel] the last release sees all that came before the others. */
	if (weiri_fetch_sub_acq_rel(&pending->references, 1u) != 1)
		return;
	allocator = pending->allocator;
	if (pending->kind->dispose != NULL)
		pending->kind->dispose(pending);
	weiri_release(&allocator, pending, pending->size, alignof(max_align_t));
}

/* -- what is asserted -------------------------------------------------------------------------- */

static WEIRI_UNSEEN void assert_claimed(const weir_pending *pending)
{
	WEIR_ASSERT2(O1, (weiri_peek(&pending->state) & WEIRI_PENDING_CLAIMED) != 0);
}

static WEIRI_UNSEEN void assert_not_done(const weir_pending *pending)
{
	WEIR_ASSERT2(O3, (weiri_peek(&pending->state) & WEIRI_PENDING_DONE) == 0);
}

/* Holds until the owner is told. */
static WEIRI_UNSEEN void assert_counted(const struct weiri_pending_entry *entry)
{
	WEIR_ASSERT2(O4, !entry->listed || entry->counted);
	WEIR_ASSERT2(O4, !entry->counted || weiri_peek(entry->place.waiting) != 0);
}

/* -- the claim --------------------------------------------------------------------------------- */

/*
 * Returns true if the caller now has the claim; false if the operation is complete, or its claimer
 * attempts it again.
 */
bool weiri_pending_claim(weir_pending *pending)
{
	/* [relaxed] the CAS counts. */
	uint32_t state = weiri_load_relaxed(&pending->state);

	for (;;) {
		if ((state & WEIRI_PENDING_DONE) != 0)
			return false;
		if ((state & WEIRI_PENDING_CLAIMED) == 0) {
			/* [relaxed] drive(), with which every claim begins, acquires. */
			if (weiri_cas_relaxed(&pending->state, &state, state | WEIRI_PENDING_CLAIMED))
				return true;
		} else if (weiri_cas_release(&pending->state, &state, state | WEIRI_PENDING_AGAIN)) {
			/*
			 * [P1 release] also if AGAIN was set already: the claimer may have made its last
			 * attempt before our change.
			 */
			return false;
		}
	}
}

/*
 * Leaves CANCEL to the claimer. Returns true if the caller wanted the claim and has it now, because
 * there was no claimer.
 */
static bool set_cancel(weir_pending *pending, enum weiri_pending_why why, bool want_claim)
{
	/* [relaxed] the CAS counts. */
	uint32_t state = weiri_load_relaxed(&pending->state);
	uint32_t cancelled = (uint32_t)WEIRI_PENDING_CANCEL | (uint32_t)why;

	while ((state & WEIRI_PENDING_DONE) == 0) {
		uint32_t next = (state & WEIRI_PENDING_CANCEL) == 0 ? state | cancelled : state;

		/* [P1 release] the cause, to the claimer. */
		if (weiri_cas_release(&pending->state, &state, want_claim ? next | WEIRI_PENDING_CLAIMED : next))
			return want_claim && (state & WEIRI_PENDING_CLAIMED) == 0;
	}
	return false;
}

void weiri_pending_cancel_claimed(weir_pending *pending, enum weiri_pending_why why)
{
	(void)set_cancel(pending, why, false);
}

/* With the claim. `why` is what the state said. */
static enum weir_status describe_cancel(weir_pending *pending, uint32_t why)
{
	weir_error cause = {WEIR_CANCELLED, "cancelled"};

	if (why == WEIRI_PENDING_FOR_TOKEN)
		(void)weir_cancel_cause(pending->token, &cause);
	else if (why == WEIRI_PENDING_FOR_A_CAUSE)
		cause = pending->caller_cause;
	else if (why == WEIRI_PENDING_FOR_INTERRUPT)
		cause = weiri_interrupt_cause;
	return pending->kind->describe(pending, (enum weiri_pending_why)why, &cause);
}

/* Called with the claim, which is kept if the result is COMPLETE and given up otherwise. */
enum weiri_pending_outcome weiri_pending_drive(struct weiri_scope *scope, weir_pending *pending, bool *moved)
{
	for (;;) {
		/*
		 * [P1 acquire] Our claim was a read-modify-write, which keeps what the last claimer
		 * released. No release: the CAS below gives up the claim, and with it what we did.
		 */
		uint32_t state = weiri_fetch_and_acquire(&pending->state, ~(uint32_t)WEIRI_PENDING_AGAIN);
		enum weiri_pending_outcome outcome;

		WEIR_ASSERT_LOOK(assert_claimed(pending));
		if ((state & WEIRI_PENDING_CANCEL) != 0) {
			pending->status = describe_cancel(pending, state & WEIRI_PENDING_WHY);
			return WEIRI_PENDING_COMPLETE;
		}
		outcome = pending->kind->attempt(scope, pending, moved);
		if (outcome == WEIRI_PENDING_COMPLETE)
			return outcome;
		state = WEIRI_PENDING_CLAIMED;
		/* [P1 release] The CAS fails if AGAIN or CANCEL came. */
		if (weiri_cas_release(&pending->state, &state, 0u))
			return outcome;
	}
}

/* -- completing -------------------------------------------------------------------------------- */

static void count(const struct weiri_pending_entry *entry)
{
	(void)weiri_fetch_add_relaxed(entry->place.waiting, (size_t)1); /* [relaxed] the destroyer has ordered all calls */
}

/*
 * Counts the operation from its wait, or from when its completion is due, until its owner is told:
 * O4.
 */
static void count_all(weir_pending *pending)
{
	for (size_t i = 0; i < pending->entry_count; i++) {
		struct weiri_pending_entry *entry = weiri_pending_entry(pending, i);

		if (!entry->counted)
			count(entry);
		entry->counted = true;
	}
}

static void uncount_all(weir_pending *pending)
{
	for (size_t i = 0; i < pending->entry_count; i++) {
		struct weiri_pending_entry *entry = weiri_pending_entry(pending, i);

		WEIR_ASSERT_LOOK(assert_counted(entry));
		if (entry->counted)
			(void)weiri_fetch_sub_relaxed(entry->place.waiting, (size_t)1); /* [relaxed] as in count() */
		entry->counted = false;
	}
}

/* In the scope, with the claim: takes a complete operation off its lists. */
void weiri_pending_finish(struct weiri_scope *scope, weir_pending *pending)
{
	const struct weiri_pending_kind *kind = pending->kind;
	uint64_t waited_ns = pending->began_ns != 0 ? weir_now_ns() - pending->began_ns : 0;

	if (kind->settle != NULL)
		kind->settle(scope, pending);
	for (size_t i = 0; i < pending->entry_count; i++) {
		struct weiri_pending_entry *entry = weiri_pending_entry(pending, i);

		if (entry->listed)
			(void)weiri_list_remove(scope, &entry->place.waiters->list, &entry->node);
		if (kind->left != NULL)
			kind->left(pending, entry, waited_ns);
	}
}

/* Ends the owner's wait. The operation and its objects may be gone afterwards. */
static void wake_owner(weir_pending *pending)
{
	uint32_t unfinished = WEIRI_PENDING_UNFINISHED;

	/* [P2 release] On success the owner is awake and will look before it sleeps: no system call. */
	if (!weiri_cas_release(&pending->finished, &unfinished, (uint32_t)WEIRI_PENDING_FINISHED)) {
		if (pending->kind->wakes != NULL)
			pending->kind->wakes(pending);
		/* [P2 release] */
		weiri_store_release(&pending->finished, (uint32_t)WEIRI_PENDING_FINISHED);
		weiri_futex_wake(&pending->finished, 1);
	}
	weiri_pending_release(pending);
}

static void tell(struct weiri_delivery *delivery)
{
	weir_pending *pending = WEIRI_CONTAINER_OF(delivery, weir_pending, delivery);

	uncount_all(pending);
	pending->kind->tell(pending);
}

/* Tells the owner: of an asynchronous operation outside of scopes. It may be gone afterwards. */
void weiri_pending_complete(weir_pending *pending)
{
	WEIR_ASSERT_LOOK(assert_not_done(pending));
	/* [relaxed] O3: a thread that sees DONE touches nothing more, so it carries nothing. */
	weiri_store_relaxed(&pending->state, (uint32_t)WEIRI_PENDING_DONE);
	if (pending->is_blocking) {
		uncount_all(pending);
		wake_owner(pending);
	} else if (pending->kind->is_quiet) {
		tell(&pending->delivery);
	} else if (!weiri_deliver(&pending->delivery, tell)) {
		count_all(pending);
	}
}

void weiri_pending_set_outcome(weir_pending *pending, enum weir_status status, const weir_error *error)
{
	pending->status = status;
	if (status != WEIR_OK && error != NULL)
		pending->error = *error;
}

void weiri_pending_defer(weir_pending *pending)
{
	weiri_pending_retain(pending); /* that of weiri_pending_told_later() */
	pending->is_deferred = true;
}

void weiri_pending_told_later(weir_pending *pending)
{
	/*
	 * [P2 release] Waiters of a handle have marked the word before they sleep. A mark carries
	 * nothing.
	 */
	if (pending->has_handle &&
	    weiri_exchange_release(&pending->finished, (uint32_t)WEIRI_PENDING_FINISHED) != WEIRI_PENDING_UNFINISHED)
		weiri_futex_wake(&pending->finished, INT32_MAX);
	weiri_pending_release(pending);
}

void weiri_pending_told(weir_pending *pending)
{
	if (pending->is_deferred)
		weiri_pending_release(pending);
	else
		weiri_pending_told_later(pending);
}

/* -- serving ----------------------------------------------------------------------------------- */

/*
 * Completes a finished operation or leaves it to the caller. Returns true if the walk must end for
 * that.
 */
static bool hand_over(struct weiri_served *served, weir_pending *pending)
{
	if (pending->entry_count > 1) {
		pending->next = served->several;
		served->several = pending;
	} else if (!pending->is_blocking) {
		served->asynchronous = pending;
	} else {
		weiri_pending_complete(pending); /* the list's reference is left, as long as we are in the section */
	}
	return served->asynchronous != NULL;
}

bool weiri_pending_serve(struct weiri_scope *scope, struct weiri_list *list, struct weiri_served *served)
{
	struct weiri_list_node *node = NULL;
	enum weiri_pending_outcome outcome = WEIRI_PENDING_COMPLETE;
	bool moved = false;

	while (outcome != WEIRI_PENDING_STUCK && (node = weiri_list_next(scope, list, node)) != NULL) {
		weir_pending *pending = weiri_pending_entry_of(node)->pending;

		/* [relaxed] A canceller without a record leaves CANCEL to the next claimer; a later walk finds it. */
		if (pending->kind->needs_nothing != NULL && (weiri_load_relaxed(&pending->state) & WEIRI_PENDING_CANCEL) == 0 &&
		    pending->kind->needs_nothing(pending))
			continue;
		if (!weiri_pending_claim(pending))
			continue;
		outcome = weiri_pending_drive(scope, pending, &moved);
		if (outcome != WEIRI_PENDING_COMPLETE) {
			served->fruitless++;
			continue;
		}
		weiri_pending_finish(scope, pending);
		moved = true;
		if (hand_over(served, pending))
			return true;
	}
	return moved;
}

void weiri_served_tell(struct weiri_served *served)
{
	weir_pending *pending = served->asynchronous;

	served->asynchronous = NULL;
	if (pending != NULL)
		weiri_pending_complete(pending);
}

/* The thread ends inside a pump: takes over the operations that this pump had finished. */
static void take_over(struct weiri_record *record, void *object, struct weiri_served *served)
{
	const struct weiri_served *left = object;

	(void)record;
	served->several = left->several;
	if (left->leaving != NULL) {
		left->leaving->next = served->several;
		served->several = left->leaving;
	}
	served->asynchronous = left->asynchronous;
	weiri_served_tell(served);
}

/* Serves all objects that the operation waited for. */
static void serve_places(struct weiri_record *record, const weir_pending *pending, struct weiri_served *served)
{
	for (size_t i = 0; i < pending->entry_count; i++) {
		const struct weiri_wait_place *place = &weiri_pending_entry(pending, i)->place;

		place->serve(record, place->object, served);
	}
}

void weiri_pending_pump(struct weiri_record *record, void *object, weiri_serve_fn *serve)
{
	struct weiri_served served = {NULL, NULL, NULL, 0};
	struct weiri_visit visit;

	weiri_visit_begin(&visit, &served, take_over);
	serve(record, object, &served);
	while (served.several != NULL) {
		weir_pending *pending = served.leaving = served.several;

		served.several = pending->next;
		serve_places(record, pending, &served);
		served.leaving = NULL;
		weiri_pending_complete(pending);
	}
	weiri_visit_end(&visit);
}

bool weiri_pending_others_first(struct weiri_scope *scope, struct weiri_list *list, const weir_pending *own)
{
	struct weiri_list_node *node;

	if (!weiri_list_occupied(list))
		return false;
	weiri_list_sweep(scope, list);
	node = weiri_list_next(scope, list, NULL);
	return node != NULL && weiri_pending_entry_of(node)->pending != own;
}

/* -- starting ---------------------------------------------------------------------------------- */

void weiri_pending_stand(struct weiri_scope *scope, weir_pending *pending, struct weiri_pending_entry *entry)
{
	weiri_pending_retain(pending); /* the list's */
	entry->listed = entry->counted = true;
	count(entry);
	weiri_list_append(scope, &entry->place.waiters->list, &entry->node); /* [seq_cst] */
}

/* Returns false if the kind refused the operation, which is then complete. */
static bool join_lists(struct weiri_scope *scope, weir_pending *pending)
{
	for (size_t i = 0; i < pending->entry_count; i++) {
		struct weiri_pending_entry *entry = weiri_pending_entry(pending, i);

		if (pending->kind->join == NULL)
			weiri_pending_stand(scope, pending, entry);
		else if (!pending->kind->join(scope, pending, entry))
			return false;
	}
	return true;
}

/* It is on all its lists and will be attempted again. Returns false if a change may overlook it. */
static bool post(weir_pending *pending)
{
	bool seen = true;

	for (size_t i = 0; i < pending->entry_count; i++)
		seen &= weiri_waiters_post(weiri_pending_entry(pending, i)->place.waiters);
	return seen;
}

/*
 * The operations ahead go first: the pump after the start serves them. Returns false on AGAIN or
 * CANCEL.
 */
static bool give_up_claim(weir_pending *pending)
{
	uint32_t state = WEIRI_PENDING_CLAIMED;

	/* [P1 release] */
	return weiri_cas_release(&pending->state, &state, 0u);
}

static enum weiri_pending_outcome wait_on_lists(struct weiri_scope *scope, weir_pending *pending)
{
	bool moved = false;

	pending->began_ns = weir_now_ns();
	pending->thread = weiri_record_my_thread();
	if (!join_lists(scope, pending))
		return WEIRI_PENDING_COMPLETE;
	pending->blind = !post(pending);
	if (pending->in_order && give_up_claim(pending))
		return WEIRI_PENDING_STUCK;
	return weiri_pending_drive(scope, pending, &moved);
}

/* Attempts an operation that stands on no list yet, so that no other thread sees it. */
static enum weiri_pending_outcome attempt_unlisted(struct weiri_scope *scope, weir_pending *pending)
{
	const struct weiri_pending_kind *kind = pending->kind;
	bool moved = false;

	if (kind->may_barge != NULL && !kind->may_barge(scope, pending))
		return WEIRI_PENDING_STUCK;
	return kind->attempt(scope, pending, &moved);
}

/* Returns true if it is complete, and off its lists. */
static bool attempt_or_wait(struct weiri_record *record, weir_pending *pending)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	enum weiri_pending_outcome outcome = attempt_unlisted(&scope, pending);

	if (outcome != WEIRI_PENDING_COMPLETE)
		outcome = wait_on_lists(&scope, pending);
	if (outcome == WEIRI_PENDING_COMPLETE)
		weiri_pending_finish(&scope, pending);
	weiri_scope_leave(&scope);
	return outcome == WEIRI_PENDING_COMPLETE;
}

void weiri_pending_try(struct weiri_record *record, weir_pending *pending)
{
	struct weiri_scope scope = weiri_scope_enter(record);

	if (attempt_unlisted(&scope, pending) != WEIRI_PENDING_COMPLETE)
		pending->status = describe_cancel(pending, WEIRI_PENDING_FOR_DEADLINE);
	weiri_pending_finish(&scope, pending);
	weiri_scope_leave(&scope);
	weiri_pending_release(pending); /* the completion's */
}

/*
 * For the starter: a callback that runs inside the call may destroy the objects, as the owner may
 * be told already.
 */
static void visit_all(weir_pending *pending)
{
	for (size_t i = 0; i < pending->entry_count; i++) {
		struct weiri_pending_entry *entry = weiri_pending_entry(pending, i);

		weiri_visit_begin(&entry->visit, entry->place.object, entry->place.serve);
	}
}

/* Serves the objects that still exist, and ends the visits. */
static void pump_visited(struct weiri_record *record, weir_pending *pending)
{
	for (size_t i = 0; i < pending->entry_count; i++) {
		const struct weiri_pending_entry *entry = weiri_pending_entry(pending, i);

		if (!weiri_visit_is_over(&entry->visit))
			weiri_pending_pump(record, entry->place.object, entry->place.serve);
	}
	weiri_visit_end(&weiri_pending_entry(pending, 0)->visit);
}

void weiri_pending_pump_all(struct weiri_record *record, weir_pending *pending)
{
	visit_all(pending);
	pump_visited(record, pending);
}

static void start_several(struct weiri_record *record, weir_pending *pending)
{
	weiri_pending_retain(pending); /* until we have pumped: another thread may complete it, and its owner release it */
	visit_all(pending);
	if (attempt_or_wait(record, pending))
		weiri_pending_complete(pending);
	pump_visited(record, pending);
	weiri_pending_release(pending);
}

void weiri_pending_start(struct weiri_record *record, weir_pending *pending)
{
	const struct weiri_wait_place place = weiri_pending_entry(pending, 0)->place;
	struct weiri_visit visit;

	if (pending->entry_count > 1) {
		start_several(record, pending);
		return;
	}
	weiri_visit_begin(&visit, place.object, place.serve);
	if (attempt_or_wait(record, pending))
		weiri_pending_complete(pending);
	/* It changed the object, or gave something back: other operations may go on. */
	if (!weiri_visit_is_over(&visit))
		weiri_pending_pump(record, place.object, place.serve);
	weiri_visit_end(&visit);
}

void weiri_pending_begin(struct weiri_record *record, weir_pending *pending, weir_pending **handle)
{
	pending->has_handle = handle != NULL;
	if (handle != NULL)
		*handle = pending;
	else
		weiri_pending_release(pending); /* the completion's reference is left */
	weiri_pending_start(record, pending);
}

/* -- cancelling -------------------------------------------------------------------------------- */

/* Makes the owner of a blocking call cancel it, because its token fired. */
static void raise_alarm(weir_pending *pending)
{
	uint32_t seen = WEIRI_PENDING_UNFINISHED;

	/*
	 * [relaxed] carries only the alarm. The first CAS fails if the owner sleeps. If the second
	 * fails too, the operation has completed, or the owner knows of the alarm.
	 */
	while (seen == WEIRI_PENDING_UNFINISHED || seen == WEIRI_PENDING_ASLEEP) {
		if (weiri_cas_relaxed(&pending->finished, &seen, (uint32_t)WEIRI_PENDING_ALARMED)) {
			weiri_futex_wake(&pending->finished, 1);
			return;
		}
	}
}

/* The operation is counted, so the objects still exist. It is completed last: O4. */
static void serve_and_complete(struct weiri_record *record, void *object, struct weiri_served *served)
{
	serve_places(record, object, served);
	weiri_pending_complete(object);
}

void weiri_pending_cancel(weir_pending *pending, enum weiri_pending_why why)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_visit visit;
	struct weiri_scope scope;
	bool moved = false;

	if (record == NULL && pending->is_blocking) {
		raise_alarm(pending);
		return;
	}
	if (!set_cancel(pending, why, record != NULL))
		return;
	weiri_visit_begin(&visit, pending, serve_and_complete);
	scope = weiri_scope_enter(record);
	(void)weiri_pending_drive(&scope, pending, &moved); /* sees CANCEL */
	weiri_pending_finish(&scope, pending);
	weiri_scope_leave(&scope);
	for (size_t i = 0; i < pending->entry_count; i++) {
		const struct weiri_wait_place *place = &weiri_pending_entry(pending, i)->place;

		weiri_pending_pump(record, place->object, place->serve);
	}
	weiri_visit_end(&visit);
	weiri_pending_complete(pending); /* last: O4 */
}
