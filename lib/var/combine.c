/*
 * combine.c - updates of large values: one copy serves all that are under way.
 *
 * Algorithm. Who wants to change something hangs a request on a *round*, the stack of requests for one version of the variable. The first on
 * it computes: the version's value and all requests that hang there, into a value of his own. What was hung on meanwhile he makes there, too,
 * until a CAS *seals* the stack: from a pointer to the last request that is in his value to a pointer to his result. So a sealed round says
 * which requests are in the result: those that hang there, no more and no less. The result is a commit of one part (commit.c), built on the
 * round's version. Whoever meets it installs it, and all see the same decision in its cell: committed, then each request of the round was
 * applied; aborted, since another write came first, then none was, and each owner hangs a new request on the round of the version that is
 * there now. The others wait while one computes, each a bounded time, longer the later he came; then he computes, too. Only who computes has
 * memory for a value; who cannot get it closes the round, says so, and leaves the others to another round of the version. Combining on a
 * Treiber stack, with the sealing by the value's address, is ours; flat combining (Hendler, Incze, Shavit, Tzafrir, SPAA 2010) has one
 * combiner under a lock, and who is stopped in it stops all.
 *
 * States of a round's word
 *   0, a request          open: the last request that was hung there
 *   a result, SEALED      these requests, in this version: never changes again
 *   CLOSED                there will be no result: never changes again
 *
 * Invariants
 *   C1  a request hangs on one round, once; its owner leaves it only when that is sealed or closed
 *   C2  a round is sealed by a value that has each request on it once, in the order in which they came, and nothing else but its version's
 *   C3  the result of a round is installed on the round's version alone, a stamp tells which that is; so of all rounds, however many there
 *       were of one version, at most one is committed
 *   C4  a round is closed only when its version is not the newest any more, or by an owner of one of its requests who fails
 *   C5  a result is used by the owners of its requests, and each of them is counted in it; the last retires it
 *   C6  what a request asks for is read only by who is counted in `at_work` of its round, and found that open meanwhile
 * So an update is applied once: by C1 it hangs on one round at a time, by C2 it is in that one's result or (closed) in none, and whether
 * that was committed, its cell says for ever; a new request is hung only after it says no. What was sealed is C2 whoever computed it.
 *
 * Which memory may be touched. The section of each call begins before it reads the head; so the version on which its round stands, and all
 * that is retired after that version was replaced, stays, if the section's reservation reaches the era in which it was made. Requests, and
 * the result, are retired only after that version was replaced (the cell is decided before, C5). weiri_section_read() of the round's word
 * raises the reservation to the era of everything that hangs there, but what hangs there is not unlinked before it is retired. So look()
 * reads the head once more, after that: if it is the same, the round's version was the newest at a moment when the reservation was up
 * already, and what hangs there dies after it. If a collector missed the reservation, its fence came before that second read (F1 of
 * section.h), and the read would have shown that the head had moved. The requests of a round that was closed by one who fails are retired
 * while its version is the newest: that look says nothing then. They need none: closing unlinks them before they are retired, with the
 * orders that I1 of section.h asks for, so the section that reads the word is all that who finds them there needs.
 * A result is made in the section: look() comes after that, and so the reservation of who made it reaches its birth before others see it.
 * The operands of a request are its caller's. Once the round is sealed or closed and nobody is at work (C6, P3), nobody will read them any
 * more; else the request takes references, and counts for what they keep. So, but for who was overtaken, an update holds no memory back.
 * The owner of a request needs no such look at the sealed word: the result waits for him (C5). He raises his reservation and then
 * reads the cell; undecided, then its version is not retired yet, by the same argument with the cell in the place of the head.
 *
 * Pairs
 *   P1  hang(request), seal(result), close -> look, conclude: what the request asks for, the result with its commit; the head had moved
 *   P2  drop(users) -> the last drop: the owner of the commit is done with its cell; see S2 in version.h
 *   P3  at_work: the operands of the requests are lent for as long as the word is open; see sync/borrow.h
 *   P4  values_allocator(create) -> values_allocator: what it is made of
 *   Heads and cells: as in version.h.
 * Linearization: the stamp of the commit; those of one round in the order of their requests.
 * Progress: lock-free. A call begins anew only when the newest version was replaced, by others' success, or when another call failed. One
 * who is stopped makes others wait: the k-th of a round for k - 1 times wait_ns(), once; then he computes on his own. A stopped one keeps
 * from being freed what any stopped writer does, and the result of the round on which his request hangs.
 * Memory: besides what a write has (docs/memory.md), a request and a round for each call under way, and one round and a few spare values (spares.h) for each variable. A
 *   retired request counts for what it keeps; a retired result holds no value any more.
 * Checked: stress/model/check_combine.c, tests/test_combine.c, stress/scenario_combine.c.
 */
#include "var/combine.h"

#include <limits.h>
#include <stdalign.h>

#include "base/error.h"
#include "sync/borrow.h"
#include "sync/park.h"
#include "sync/references.h"
#include "tensor/object.h"
#include "var/change.h"
#include "var/hold.h"
#include "var/install.h"
#include "var/spares.h"

size_t weiri_combine_from = (size_t)256 << 10;

/* What one thread wants. Constant while it hangs on a round that is open. */
struct request {
	struct weiri_retired retired;
	const struct request *earlier;
	size_t position; /* from 1 */
	struct weiri_change change;
	weir_allocator allocator;
};

struct result {
	struct weiri_retired retired;
	_Atomic(size_t) users;
	struct weiri_commit *commit; /* of one part; goes with the result */
	weir_tensor *value;          /* NULL once nobody is left who would hand it out: then it is its version's alone */
	uint64_t number;
	weir_allocator allocator;
};

enum { CLOSED = 1, SEALED = 1 };

static int is_open(uintptr_t word)
{
	return (word & SEALED) == 0;
}

static const struct request *last_request(uintptr_t word)
{
	return (const struct request *)word;
}

static struct result *result_in(uintptr_t word)
{
	return (struct result *)(word & ~(uintptr_t)SEALED);
}

/* -- what a call brings along ------------------------------------------------------------------------------------------------- */

struct call {
	weir_var *var;
	const struct weiri_change *change;
	/* NULL: not made yet, or has been used. */
	struct request *request;
	struct weiri_round *round;
	struct result *result;   /* made when it is this call that computes */
	int lacks_memory;        /* for that */
	enum weir_status status; /* WEIR_OK until the call has failed */
	weir_error *error;
	weir_read *published;
	weir_tensor *given_up; /* by conclude(): released after the section, which may free it */
};

static void request_free(struct request *request)
{
	weir_allocator allocator = request->allocator;

	weiri_change_fini(&request->change, &allocator);
	weiri_release(&allocator, request, sizeof(*request), alignof(struct request));
}

static void request_reclaim(struct weiri_retired *object)
{
	request_free(WEIRI_CONTAINER_OF(object, struct request, retired));
}

static struct request *request_create(const struct call *call)
{
	struct request *request = weiri_allocate(&call->var->allocator, sizeof(*request), alignof(struct request));

	if (request == NULL)
		return NULL;
	*request = (struct request){.change = *call->change, .allocator = call->var->allocator};
	weiri_retired_init(&request->retired, sizeof(*request), request_reclaim);
	return request;
}

static void round_free(struct weiri_round *round)
{
	weir_allocator allocator = round->allocator;

	weiri_release(&allocator, round, sizeof(*round), alignof(struct weiri_round));
}

static void round_reclaim(struct weiri_retired *object)
{
	round_free(WEIRI_CONTAINER_OF(object, struct weiri_round, retired));
}

static struct weiri_round *round_create(const struct call *call)
{
	struct weiri_round *round =
		weiri_allocate_zeroed(&call->var->allocator, sizeof(*round), alignof(struct weiri_round));

	if (round == NULL)
		return NULL;
	round->allocator = call->var->allocator;
	weiri_retired_init(&round->retired, sizeof(*round), round_reclaim);
	return round;
}

/* The commit's version is not its own any more. */
static void result_free(struct result *result)
{
	weir_allocator allocator = result->allocator;

	weiri_commit_free(result->commit);
	weir_tensor_release(result->value);
	weiri_release(&allocator, result, sizeof(*result), alignof(struct result));
}

static void result_reclaim(struct weiri_retired *object)
{
	result_free(WEIRI_CONTAINER_OF(object, struct result, retired));
}

static void result_discard(struct result *result)
{
	weiri_version_discard(result->commit->parts[0].version);
	result_free(result);
}

/* Where the variable's values come from; NULL: no memory. */
static const weir_allocator *values_allocator(weir_var *var)
{
	/* [P4 acquire] */
	struct weiri_spares *spares = weiri_load_acquire(&var->spares), *mine;

	if (spares != NULL)
		return weiri_spares_allocator(spares);
	mine = weiri_spares_create(&var->allocator, weiri_combine_from);
	/* [P4] Release when it succeeds, acquire when it fails: another was first. */
	if (mine == NULL || weiri_cas_release_or_acquire(&var->spares, &spares, mine))
		return mine != NULL ? weiri_spares_allocator(mine) : NULL;
	weiri_spares_end(mine);
	return weiri_spares_allocator(spares);
}

/* With a value of the same dtype and shape as this one. NULL: no memory. */
static struct result *result_create(struct weiri_record *record, const struct call *call, const weir_tensor *like)
{
	const weir_allocator *allocator = &call->var->allocator, *of_values = values_allocator(call->var);
	struct weir_commit_part part = {.var = call->var};
	struct result *result = weiri_allocate_zeroed(allocator, sizeof(*result), alignof(struct result));

	if (result == NULL)
		return NULL;
	result->allocator = *allocator;
	if (of_values != NULL && weiri_tensor_create(like->dtype, &like->shape, 0, of_values, &result->value) == WEIR_OK) {
		part.value = result->value;
		result->commit = weiri_commit_create(record, &part, 1);
	}
	if (result->commit == NULL) {
		weir_tensor_release(result->value);
		weiri_release(allocator, result, sizeof(*result), alignof(struct result));
		return NULL;
	}
	weiri_retired_init(&result->retired, sizeof(*result), result_reclaim);
	return result;
}

static int result_is_like(const struct result *result, const weir_tensor *like)
{
	return result->value->dtype == like->dtype && weir_shape_equal(&result->value->shape, &like->shape);
}

static enum weir_status fail_for_memory(const struct call *call)
{
	return weiri_fail(call->error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for a version",
	                  call->var->name);
}

/* What must be there before a request hangs. */
static enum weir_status provide(struct call *call)
{
	if (call->request == NULL)
		call->request = request_create(call);
	if (call->round == NULL)
		call->round = round_create(call);
	return call->request != NULL && call->round != NULL ? WEIR_OK : fail_for_memory(call);
}

static void put_away(const struct call *call)
{
	if (call->request != NULL)
		request_free(call->request);
	if (call->round != NULL)
		round_free(call->round);
	if (call->result != NULL)
		result_discard(call->result);
}

/* -- rounds ------------------------------------------------------------------------------------------------------------------- */

/* Nothing can be hung there any more, and nothing is to come of it. */
static int is_closed(const struct weiri_round *round)
{
	/* [relaxed] who hangs something looks again. */
	return weiri_load_relaxed(&round->word) == CLOSED;
}

/* In a section: the round for the version with this stamp, or NULL: that is not the newest any more. */
static struct weiri_round *find_round(struct weiri_scope *scope, struct call *call, uint64_t stamp)
{
	struct weiri_round *round;

	for (;;) {
		struct weiri_round *mine = call->round;

		weiri_section_read(scope->record, &call->var->round, &round);
		if (round != NULL && round->base > stamp)
			return NULL;
		if (round != NULL && round->base == stamp && !is_closed(round))
			return round;
		mine->base = stamp;
		/* [seq_cst] what is replaced is retired, see I1 of section.h. Releases the fields to the read above. */
		if (!weiri_cas_seq_cst(&call->var->round, &round, mine))
			continue;
		call->round = NULL;
		if (round != NULL)
			weiri_scope_retire(scope, &round->retired);
		return mine;
	}
}

/* The word, if `head` is still at the head after it was read: then what hangs there may be touched. */
static int look(struct weiri_scope *scope, weir_var *var, const struct weiri_version *head, struct weiri_round *round,
                uintptr_t *word)
{
	weiri_section_read(scope->record, &round->word, word); /* [P1] */
	/* [relaxed] says only that the version had not been replaced; see above. */
	return weiri_load_relaxed(&var->head) == head;
}

/* Ends the wait of those who wait for this round. */
static void announce(struct weiri_round *round)
{
	/* [relaxed] who wakes looks at the word. */
	weiri_store_relaxed(&round->over, 1u);
	weiri_park_wake(&round->over, INT_MAX);
}

/* Unless it is sealed, nothing is hung on the round from now on, and nothing comes of what hangs there, C4. */
static void close_round(struct weiri_round *round)
{
	/* [relaxed] only the CAS counts. */
	uintptr_t word = weiri_load_relaxed(&round->word);

	while (is_open(word)) {
		/* [P1 release] that the head has moved, if that is why. [seq_cst] if not, this unlinks the requests: I1 of section.h. */
		if (weiri_cas_seq_cst(&round->word, &word, (uintptr_t)CLOSED))
			announce(round);
	}
}

/* -- computing ---------------------------------------------------------------------------------------------------------------- */

/* The work of one who computes. */
struct sum {
	struct weiri_scope *scope;
	struct call *call;
	struct weiri_round *round;
	struct weiri_version *base, *head;
	size_t included; /* so many requests, the first ones, are in the value */
	int begun;       /* there is a value that would be wasted */
};

/* So many requests are taken up at once. */
enum { AT_ONCE = 16 };

/* Whether it still serves something: the round is open, and its version the newest. Keeps `head` up to date. */
static int is_wanted(void *context)
{
	struct sum *sum = context;

	/* [relaxed] looks that spare work; the CAS that seals the round is what counts. */
	if (!is_open(weiri_load_relaxed(&sum->round->word)))
		return 0;
	if (weiri_load_relaxed(&sum->call->var->head) != sum->head)
		sum->base = weiri_write_base(sum->scope, sum->call->var, &sum->head);
	return weiri_version_settle(sum->base) == sum->round->base;
}

/* Makes the changes of the requests from position included + 1 up to `last`, at most AT_ONCE of them. 0: not wanted any more. */
static int include_some(struct sum *sum, const struct request *last)
{
	const struct weiri_change *some[AT_ONCE];
	size_t most = sum->included + AT_ONCE, end = last->position < most ? last->position : most;
	size_t count = end - sum->included;

	while (last->position > end)
		last = last->earlier;
	for (size_t i = count; i-- > 0; last = last->earlier)
		some[i] = &last->change;
	if (!weiri_changes_make(some, count, sum->included == 0 ? sum->base->tensor : NULL, sum->call->result->value,
	                        is_wanted, sum))
		return 0;
	sum->included = end;
	return 1;
}

/* A value that no version will have is given up, if there is one. */
static void waste(struct sum *sum)
{
	if (sum->begun)
		weiri_count(&sum->scope->record->copies_wasted, 1);
	sum->included = 0;
	sum->begun = 0;
}

static void include(struct sum *sum, const struct request *last)
{
	if (!sum->begun)
		weiri_count(&sum->scope->record->copies, 1);
	sum->begun = 1;
	if (!include_some(sum, last))
		waste(sum);
}

/* Seals the round with a value that has all requests up to `last`. */
static int seal(struct sum *sum, const struct request *last)
{
	struct result *result = sum->call->result;
	uintptr_t word = (uintptr_t)last;

	weiri_version_set_base(result->commit->parts[0].version, sum->base);
	result->number = sum->base->number + 1;
	/* [relaxed] the CAS releases it. C5: each of these has an owner, and this thread is one of them. */
	weiri_store_relaxed(&result->users, last->position);
	/* [P1 release] */
	return weiri_cas_release(&sum->round->word, &word, (uintptr_t)result | SEALED);
}

/* A result for values like the base's. 0: no memory. */
static int provide_result(struct weiri_scope *scope, struct call *call, const struct weiri_version *base)
{
	if (call->result != NULL && result_is_like(call->result, base->tensor))
		return 1;
	if (call->result != NULL)
		result_discard(call->result);
	call->result = result_create(scope->record, call, base->tensor);
	return call->result != NULL;
}

/* Until the round is sealed, by this thread or another, or closed. 1 when this thread's result is in it. */
static int work_on(struct sum *sum)
{
	for (;;) {
		struct weiri_round *round = sum->round;
		weir_var *var = sum->call->var;
		uintptr_t word;

		sum->base = weiri_write_base(sum->scope, var, &sum->head);
		if (weiri_version_settle(sum->base) != round->base) {
			close_round(round);
			return 0;
		}
		if (!provide_result(sum->scope, sum->call, sum->base)) {
			sum->call->lacks_memory = 1;
			close_round(round);
			return 0;
		}
		if (!look(sum->scope, var, sum->head, round, &word))
			continue;
		if (!is_open(word))
			return 0;
		if (sum->included < last_request(word)->position)
			include(sum, last_request(word));
		else if (seal(sum, last_request(word)))
			return 1;
	}
}

/* Computes for this round. 1: this thread's result is in it, and its commit is this thread's to end. */
static int compute(struct weiri_scope *scope, struct call *call, struct weiri_round *round)
{
	struct sum sum = {.scope = scope, .call = call, .round = round};
	int is_mine;

	weiri_borrow_begin(&round->at_work); /* [P3] */
	is_mine = work_on(&sum);
	if (!is_mine)
		waste(&sum);
	weiri_borrow_end(&round->at_work); /* [P3] */
	return is_mine;
}

/* -- one attempt -------------------------------------------------------------------------------------------------------------- */

/* Whether the request's change can be made to this version's value. */
static enum weir_status fit(struct call *call, const struct weiri_version *base)
{
	const weir_var *var = call->var;

	if (base->tensor == NULL)
		return weiri_fail(call->error, WEIR_FAILED_PRECONDITION, "variable \"%s\" is not initialized", var->name);
	return weiri_change_fit(&call->request->change, var->name, base->tensor, &var->allocator, call->error);
}

/* Hangs the call's request there, and says on which position; 0: the newest version has been replaced, or will be by the time of return. */
static size_t hang(struct weiri_scope *scope, struct call *call, const struct weiri_version *head,
                   struct weiri_round *round)
{
	struct request *request = call->request;
	uintptr_t word;

	do {
		if (!look(scope, call->var, head, round, &word))
			return 0;
		if (!is_open(word)) {
			if (word != CLOSED)
				weiri_commit_help(scope, result_in(word)->commit);
			return 0;
		}
		request->earlier = last_request(word);
		request->position = word != 0 ? request->earlier->position + 1 : 1;
		/* [P1 release] */
	} while (!weiri_cas_release(&round->word, &word, (uintptr_t)request));
	call->request = NULL;
	return request->position;
}

/* How long one waits for another to compute: several times what that takes, and what a system may take to let him run. */
static uint64_t wait_ns(const weir_tensor *value)
{
	return UINT64_C(1000000) + 4 * (uint64_t)value->nbytes;
}

static void wait_for_others(const struct weiri_version *base, struct weiri_round *round, size_t others)
{
	if (others != 0)
		(void)weiri_park_wait(&round->over, 0, weir_deadline_in(others * wait_ns(base->tensor)));
}

/* What became of a request that hung on this round. 1: it was applied. */
static int conclude(struct weiri_scope *scope, struct call *call, struct weiri_round *round, int is_mine)
{
	struct result *result;
	uintptr_t word;
	uint64_t stamp;

	weiri_section_read(scope->record, &round->word, &word); /* [P1] raises the reservation to the era of the result */
	if (word == CLOSED)
		return 0;
	result = result_in(word);
	stamp = weiri_commit_settle(result->commit);
	if (stamp == WEIRI_STAMP_NONE) {
		weiri_commit_help(scope, result->commit);
		stamp = weiri_commit_settle(result->commit);
	}
	if (is_mine) {
		weiri_commit_end(scope, result->commit);
		announce(round);
	}
	if (stamp != WEIRI_STAMP_ABORTED && call->published != NULL)
		*call->published = (weir_read){weir_tensor_retain(result->value), result->number, NULL};
	if (weiri_references_give(&result->users)) { /* [P2], C5 */
		/* Not when the result is freed: until then nobody would count it, once its version has been. */
		call->given_up = result->value;
		result->value = NULL;
		weiri_scope_retire(scope, &result->retired);
	}
	return stamp != WEIRI_STAMP_ABORTED;
}

/* Nothing is to come of this request any more, or everything has. */
static void retire_request(struct weiri_scope *scope, struct weiri_round *round, struct request *request)
{
	if (weiri_is_borrowed(&round->at_work)) /* [P3] */
		weiri_change_keep(&request->change);
	request->retired.bytes += weiri_change_bytes(&request->change);
	weiri_scope_retire(scope, &request->retired); /* C1 */
}

/* 1: the change was made. 0: the call has failed, or begins anew. */
static int attempt(struct weiri_scope *scope, struct call *call)
{
	struct weiri_version *head, *base = weiri_write_base(scope, call->var, &head);
	struct request *request = call->request;
	struct weiri_round *round;
	size_t position;
	int is_mine = 0, is_applied;

	call->status = fit(call, base);
	if (call->status != WEIR_OK)
		return 0;
	round = find_round(scope, call, weiri_version_settle(base));
	position = round != NULL ? hang(scope, call, head, round) : 0;
	if (position == 0)
		return 0;
	wait_for_others(base, round, position - 1);
	/* [relaxed] a look that spares the computing; conclude() reads it again. */
	if (is_open(weiri_load_relaxed(&round->word)))
		is_mine = compute(scope, call, round);
	if (is_mine)
		call->result = NULL;
	is_applied = conclude(scope, call, round, is_mine);
	retire_request(scope, round, request);
	if (call->lacks_memory && !is_applied)
		call->status = fail_for_memory(call);
	return is_applied;
}

enum weir_status weiri_combine(weir_var *var, const struct weiri_change *change, uint64_t deadline_ns,
                               weir_read *published, weir_error *error)
{
	struct call call = {.var = var, .change = change, .published = published, .error = error};
	struct weiri_record *record;
	int is_applied = 0;

	do {
		struct weiri_scope scope;

		call.status = weiri_write_admit(var, deadline_ns, &record, error);
		if (call.status == WEIR_OK)
			call.status = provide(&call);
		if (call.status != WEIR_OK)
			break;
		scope = weiri_scope_enter(record);
		is_applied = attempt(&scope, &call);
		weiri_scope_leave(&scope);
		weir_tensor_release(call.given_up);
		call.given_up = NULL;
	} while (!is_applied && call.status == WEIR_OK);
	put_away(&call);
	if (is_applied)
		weiri_await_pump(record, &var->awaits);
	return call.status;
}

void weiri_combine_end(struct weiri_record *record, weir_var *var)
{
	/* [relaxed] no call is under way. */
	struct weiri_round *round = weiri_load_relaxed(&var->round);
	struct weiri_spares *spares = weiri_load_relaxed(&var->spares);

	if (spares != NULL)
		weiri_spares_end(spares);
	if (round != NULL)
		weiri_retire(record, &round->retired);
}
