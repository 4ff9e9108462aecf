/*
 * combine.c - updates of large values: one copy serves all updates that are under way.
 *
 * Algorithm. A thread that wants to update the variable pushes a request onto a *round*. A round is
 * a stack of the requests for one version of the variable. The thread with the first request is the
 * combiner. It computes a value of its own from the version's value and all pushed requests. More
 * requests may be pushed meanwhile, and the combiner applies these as well. In the end the combiner
 * *seals* the round by a CAS: the pointer to the last request becomes a pointer to the combiner's
 * result. The CAS succeeds only if the last request on the stack is the last one that the combiner
 * applied. So the result of a sealed round contains exactly the requests on its stack.
 * The result is a commit of one part (commit.c), built on the round's version. Any thread that
 * finds it installs it, and all threads see the same decision in its cell. If the commit succeeded,
 * each request of the round was applied. If it aborted, another write came first, and none was
 * applied. Each owner then pushes a new request onto the round of the version that is now the
 * newest.
 * While one thread computes, the others wait for a bounded time, which grows with their position in
 * the round. Then they compute as well. Only a combiner allocates memory for a value. If a combiner
 * cannot, it closes the round, and its call fails. The owners of the other requests push new ones
 * onto a new round of the version.
 *
 * Source. In flat combining (Hendler, Incze, Shavit, Tzafrir, SPAA 2010) the combiner holds a lock,
 * and if it stalls, all threads stall. A stack of requests that one thread takes and executes is
 * known from Oyama, Taura and Yonezawa (PDSIA 1999), also under a lock. Applying the announced
 * requests of all threads to a private copy, which one CAS publishes, is known from lock-free and
 * wait-free constructions (Herlihy, TOPLAS 1993; P-Sim: Fatourou, Kallimanis, SPAA 2011). There,
 * each operation copies the state, and the copy records what was applied for each thread. Here,
 * mostly one thread copies, and sealing fixes the set of requests: the word that collects the
 * requests becomes the pointer to their result. We know of no publication of sealing.
 *
 * States of a round's word
 *   0, a request          open: the last request that was pushed
 *   a result, SEALED      these requests, in this version: never changes again
 *   CLOSED                there will be no result: never changes again
 *
 * Invariants
 *   C1  a request is on one round, once; its owner abandons it only when the round is sealed or
 *       closed
 *   C2  a round is sealed with a value that contains the version's value and each pushed request
 *       once, in the order in which they were pushed, and nothing else
 *   C3  the result of a round is installed only on the round's version, known by its position. So
 *       of all rounds of one version, however many there were, at most one is committed
 *   C4  a round is closed only when its version is no longer the newest, or by the failing owner of
 *       one of its requests
 *   C5  a result is used by the owners of its requests, and each of them is counted in it; the last
 *       one retires it
 *   C6  the operands of a request are read only by threads that are counted in `at_work` of its
 *       round and found the round open after they were counted
 * So an update is applied once. By C1 it is on one round at a time. By C2 it is in the result of
 * that round or, if the round was closed, in none. The cell of the result says permanently whether
 * it was committed, and a new request is pushed only after it says no. C2 holds whichever thread
 * computed the result.
 *
 * Which memory may be accessed. The section of each call begins before the call reads the head. So
 * the section protects the version of the call's round. It also protects every object that is
 * retired after that version was replaced, if the section's reservation reaches the era of the
 * object's birth. Requests and the result are retired only after that version was replaced: each
 * owner first makes sure that the cell is decided (C5).
 * weiri_section_read() of the round's word raises the reservation to the era of everything on the
 * round. But the requests on a round are not unlinked before they are retired, so that read alone
 * does not protect them. Therefore look() reads the head once more afterwards. If the head is
 * unchanged, the round's version was the newest at a moment when the reservation was already
 * raised, and every object on the round dies after that moment. If a collector missed the
 * reservation, its fence came before that second read (F1 of section.h), and the read would have
 * shown that the head had moved.
 * If a failing thread closes a round, the requests are retired while the round's version is the
 * newest. So the second read of the head shows nothing about them. No such proof is needed: closing
 * unlinks the requests before they are retired, with the orders that I1 of section.h requires. The
 * section that reads the word is enough.
 * A result is made in the section, before look(). So the maker's reservation reaches the birth of
 * the result before other threads see the result.
 * The operands of a request belong to its caller. Once the round is sealed or closed and no thread
 * is at work (C6, P3), no thread will read them again. If a thread is still at work, the request
 * takes references to the operands, and its retired bytes include theirs. So an update delays the
 * release of memory only if other threads were still reading its operands.
 * The owner of a request needs neither a reservation nor a second read of the head for the result:
 * the result, and its commit, cannot be retired before the owner drops the result (C5). The owner
 * helps an undecided commit. To do so, it raises its reservation by a read of the head, and then
 * reads the cell before it uses the version. If the cell is undecided, the version is not retired
 * yet, and the argument of look() applies with the cell in place of the head.
 *
 * Pairs
 *   P1  hang(request), seal(result), close -> look, conclude: the contents of the request; the
 *       result with its commit; the fact that the head had moved
 *   P2  drop(users) -> the last drop: the owner of the commit has finished with its cell; see S2 in
 *       version.h
 *   P3  at_work: the operands of the requests are lent for as long as the word is open; see
 *       sync/reader_count.h
 *   P4  values_allocator(create) -> values_allocator: the contents of the spares
 *   Heads and cells: as in version.h.
 * Linearization: the stamp of the commit; the updates of one round in the order of their requests.
 * Progress: lock-free. A call starts again only if another call succeeded and so replaced the
 * newest version, or if another call failed. Writes of given values are made faster than a sum, so a sum
 * beside them might never be first: a call that was overtaken weiri_way_patience times asks them
 * to give way (give_way.h). If a combiner stalls, other calls wait: the k-th of a
 * round waits once, for k - 1 times wait_ns(), and then computes by itself. A stalled thread pins
 * the memory that any stalled writer pins, and the result of the round on which its request is.
 * Memory: besides what every write needs (docs/memory.md), a request and a round for each call
 * under way, and one round and a few spare values (spares.h) for each variable. The retired bytes
 * of a request include what it keeps alive. A retired result no longer holds a value.
 * Checked: stress/model/check_combine.c, tests/test_combine.c, stress/scenario_combine.c.
 */
#include "var/combine.h"

#include <limits.h>
#include <stdalign.h>

#include "base/assert.h"
#include "base/error.h"
#include "sync/reader_count.h"
#include "sync/park.h"
#include "sync/references.h"
#include "tensor/object.h"
#include "var/tensor_value.h"
#include "var/change.h"
#include "var/give_way.h"
#include "var/hold.h"
#include "var/install.h"
#include "var/spares.h"

size_t weiri_combine_from = (size_t)256 << 10;

/* One update. Constant while the request is on an open round. */
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
	struct weiri_commit *commit; /* of one part; freed with the result */
	weir_tensor *value;          /* NULL once no call can return it; only its version has it then */
	uint64_t number;
	weir_allocator allocator;
};

enum { CLOSED = 1, SEALED = 1 };

static bool is_open(uintptr_t word)
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

/* -- what a call owns -------------------------------------------------------------------------- */

struct call {
	weir_var *var;
	const struct weiri_change *change;
	/* NULL: not made yet, or already used. */
	struct request *request;
	struct weiri_round *round;
	struct result *result;   /* made only if this call computes */
	unsigned overtaken;      /* how many times since the call began, or has asked for the way */
	struct weiri_own *asker; /* who has asked for it; or NULL */
	bool lacks_memory;       /* for the result */
	enum weir_status status; /* WEIR_OK until the call has failed */
	weir_error *error;
	weir_read *published;
	weir_tensor *given_up; /* set by conclude(); released after the section, as that may free it */
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

/* Frees the result and its commit. The version no longer belongs to the commit. */
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

/* Returns the allocator of the variable's values, or NULL if there is no memory. */
static const weir_allocator *values_allocator(weir_var *var)
{
	/* [P4 acquire] */
	struct weiri_spares *spares = weiri_load_acquire(&var->spares), *mine;

	if (spares != NULL)
		return weiri_spares_allocator(spares);
	mine = weiri_spares_create(&var->allocator, weiri_combine_from);
	/* [P4] Release if it succeeds; acquire if it fails: another thread was first. */
	if (mine == NULL || weiri_cas_release_or_acquire(&var->spares, &spares, mine))
		return mine != NULL ? weiri_spares_allocator(mine) : NULL;
	weiri_spares_end(mine);
	return weiri_spares_allocator(spares);
}

/*
 * Returns a result with a new value of the dtype and shape of `like`, or NULL if there is no
 * memory.
 */
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

static bool result_is_like(const struct result *result, const weir_tensor *like)
{
	return result->value->dtype == like->dtype && weir_shape_equal(&result->value->shape, &like->shape);
}

static enum weir_status fail_for_memory(const struct call *call)
{
	return weiri_fail(call->error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for a version",
	                  call->var->name);
}

/* Allocates what the call needs before its request is pushed. */
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

/* -- assertions -------------------------------------------------------------------------------- */

/* A round that is sealed or closed stays so. */
static WEIRI_UNSEEN void assert_over(const struct weiri_round *round)
{
	WEIR_ASSERT2(C1, !is_open(weiri_peek(&round->word)));
}

static WEIRI_UNSEEN void assert_on(const struct weiri_round *round, const struct weiri_version *base)
{
	WEIR_ASSERT2(C3, base->position == round->base);
}

/* The caller is one of the result's users. */
static WEIRI_UNSEEN void assert_used(const struct result *result)
{
	WEIR_ASSERT2(C5, weiri_peek(&result->users) != 0 && result->value != NULL);
}

/* -- rounds ------------------------------------------------------------------------------------ */

/* Returns true if nothing can be pushed onto the round any more and there will be no result. */
static bool is_closed(const struct weiri_round *round)
{
	/* [relaxed] before it pushes, a thread reads the word again. */
	return weiri_load_relaxed(&round->word) == CLOSED;
}

/*
 * Called in a section. Returns the round for the version at this position, or NULL if that is no
 * longer the newest version.
 */
static struct weiri_round *find_round(struct weiri_scope *scope, struct call *call, uint64_t position)
{
	struct weiri_round *round;

	for (;;) {
		struct weiri_round *mine = call->round;

		weiri_section_read(scope->record, &call->var->round, &round);
		if (round != NULL && round->base > position)
			return NULL;
		if (round != NULL && round->base == position && !is_closed(round))
			return round;
		mine->base = position;
		/*
		 * [seq_cst] This unlinks the round that is then retired: I1 of section.h. It also releases
		 * the fields of the new round to the read above.
		 */
		if (!weiri_cas_seq_cst(&call->var->round, &round, mine))
			continue;
		call->round = NULL;
		if (round != NULL)
			weiri_scope_retire(scope, &round->retired);
		return mine;
	}
}

/*
 * Reads the word of the round. Returns true if `head` was still at the head afterwards. Then the
 * requests on the round may be accessed.
 */
static bool look(struct weiri_scope *scope, weir_var *var, const struct weiri_version *head, struct weiri_round *round,
                 uintptr_t *word)
{
	weiri_section_read(scope->record, &round->word, word); /* [P1] */
	/* [relaxed] It only shows that the version had not been replaced; see "Which memory" above. */
	return weiri_load_relaxed(&var->head) == head;
}

/* Wakes the threads that wait for this round. */
static void announce(struct weiri_round *round)
{
	/* [relaxed] a woken thread reads the word. */
	weiri_store_relaxed(&round->over, 1u);
	weiri_park_wake(&round->over, INT_MAX);
}

/*
 * Closes the round unless it is sealed: nothing can be pushed onto it any more, and there will be
 * no result, C4.
 */
static void close_round(struct weiri_round *round)
{
	/* [relaxed] only the CAS counts. */
	uintptr_t word = weiri_load_relaxed(&round->word);

	while (is_open(word)) {
		/*
		 * [P1 release] If the head has moved, this releases that fact. [seq_cst] If it has not,
		 * this unlinks the requests: I1 of section.h.
		 */
		if (weiri_cas_seq_cst(&round->word, &word, (uintptr_t)CLOSED))
			announce(round);
	}
}

/* -- computing --------------------------------------------------------------------------------- */

/* The work of one combiner. */
struct sum {
	struct weiri_scope *scope;
	struct call *call;
	struct weiri_round *round;
	struct weiri_version *base, *head;
	size_t included; /* how many requests, from the first, are in the value */
	bool begun;      /* true: a value was begun, and is wasted unless it seals the round */
};

/* The number of requests that are applied together. */
enum { AT_ONCE = 16 };

/*
 * Returns true if the value is still useful: the round is open, and its version is the newest.
 * Keeps `head` up to date.
 */
static bool is_wanted(void *context)
{
	struct sum *sum = context;

	/* [relaxed] These loads only save work; the CAS that seals the round decides. */
	if (!is_open(weiri_load_relaxed(&sum->round->word)))
		return false;
	if (weiri_load_relaxed(&sum->call->var->head) != sum->head)
		sum->base = weiri_write_base(sum->scope, sum->call->var, &sum->head);
	return sum->base->position == sum->round->base;
}

/*
 * Applies the requests from position included + 1 up to `last`, at most AT_ONCE of them. Returns
 * false if the value is no longer wanted.
 */
static bool include_some(struct sum *sum, const struct request *last)
{
	const struct weiri_change *some[AT_ONCE];
	size_t most = sum->included + AT_ONCE, end = last->position < most ? last->position : most;
	size_t count = end - sum->included;

	while (last->position > end)
		last = last->earlier;
	for (size_t i = count; i-- > 0; last = last->earlier)
		some[i] = &last->change;
	if (!weiri_changes_make(some, count, sum->included == 0 ? weiri_version_tensor(sum->base) : NULL,
	                        sum->call->result->value, is_wanted, sum))
		return false;
	sum->included = end;
	return true;
}

/* Gives up the value that was begun, if any: no version will have it. */
static void waste(struct sum *sum)
{
	if (sum->begun)
		weiri_count(&sum->scope->record->copies_wasted, 1);
	sum->included = 0;
	sum->begun = false;
}

static void include(struct sum *sum, const struct request *last)
{
	if (!sum->begun)
		weiri_count(&sum->scope->record->copies, 1);
	sum->begun = true;
	if (!include_some(sum, last))
		waste(sum);
}

/* Seals the round with a value that contains all requests up to `last`. Returns true on success. */
static bool seal(struct sum *sum, const struct request *last)
{
	struct result *result = sum->call->result;
	uintptr_t word = (uintptr_t)last;

	WEIR_ASSERT2(C2, sum->included == last->position);
	WEIR_ASSERT_LOOK(assert_on(sum->round, sum->base));
	weiri_version_set_base(result->commit->parts[0].version, sum->base);
	result->number = sum->base->number + 1;
	/*
	 * [relaxed] Released by the CAS. C5: each of these requests has an owner; this thread is one of
	 * them.
	 */
	weiri_store_relaxed(&result->users, last->position);
	/* [P1 release] */
	return weiri_cas_release(&sum->round->word, &word, (uintptr_t)result | SEALED);
}

/* Provides a result with the dtype and shape of `base`. Returns false if there is no memory. */
static bool provide_result(struct weiri_scope *scope, struct call *call, const struct weiri_version *base)
{
	if (call->result != NULL && result_is_like(call->result, weiri_version_tensor(base)))
		return true;
	if (call->result != NULL)
		result_discard(call->result);
	call->result = result_create(scope->record, call, weiri_version_tensor(base));
	return call->result != NULL;
}

/*
 * Computes until the round is sealed, by this thread or another, or closed. Returns true if this
 * thread's result sealed it.
 */
static bool work_on(struct sum *sum)
{
	for (;;) {
		struct weiri_round *round = sum->round;
		weir_var *var = sum->call->var;
		uintptr_t word;

		sum->base = weiri_write_base(sum->scope, var, &sum->head);
		if (sum->base->position != round->base) {
			close_round(round);
			return false;
		}
		if (!provide_result(sum->scope, sum->call, sum->base)) {
			sum->call->lacks_memory = true;
			close_round(round);
			return false;
		}
		if (!look(sum->scope, var, sum->head, round, &word))
			continue;
		if (!is_open(word))
			return false;
		if (sum->included < last_request(word)->position)
			include(sum, last_request(word));
		else if (seal(sum, last_request(word)))
			return true;
	}
}

/*
 * Computes for this round. Returns true if this thread's result sealed it. The caller must then end
 * the commit of the result.
 */
static bool compute(struct weiri_scope *scope, struct call *call, struct weiri_round *round)
{
	struct sum sum = {.scope = scope, .call = call, .round = round};
	bool is_mine;

	weiri_reader_begin(&round->at_work); /* [P3] */
	is_mine = work_on(&sum);
	if (!is_mine)
		waste(&sum);
	weiri_reader_end(&round->at_work); /* [P3] */
	return is_mine;
}

/* -- one attempt ------------------------------------------------------------------------------- */

/* Returns WEIR_OK if the request's change can be applied to the value of `base`. */
static enum weir_status fit(struct call *call, const struct weiri_version *base)
{
	const weir_var *var = call->var;

	if (base->value == NULL)
		return weiri_fail(call->error, WEIR_FAILED_PRECONDITION, "variable \"%s\" is not initialized", var->name);
	return weiri_change_fit(&call->request->change, var->name, weiri_version_tensor(base), &var->allocator,
	                        call->error);
}

/*
 * Pushes the call's request onto the round and returns its position. Returns 0 if it pushed
 * nothing: the round's version was replaced, or the round is closed or sealed. A sealed round's
 * commit is decided by the time of return.
 */
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

/*
 * Returns how long a thread waits for each earlier request of its round: several times as long as
 * combining takes, plus the time that the system may need to let the combiner run.
 */
static uint64_t wait_ns(const weir_tensor *value)
{
	return UINT64_C(1000000) + 4 * (uint64_t)value->nbytes;
}

static void ask_for_the_way(struct call *call, const weir_tensor *value)
{
	uint64_t until = weir_deadline_in(wait_ns(value));

	if (call->asker != NULL)
		weiri_way_ask_again(call->var, until);
	else
		call->asker = weiri_way_ask(call->var, until);
	call->overtaken = 0;
}

static void wait_for_others(const struct weiri_version *base, struct weiri_round *round, size_t others)
{
	if (others != 0)
		(void)weiri_park_wait(&round->over, 0, weir_deadline_in(others * wait_ns(weiri_version_tensor(base))));
}

/*
 * Finds the outcome of the call's request on this round. Returns true if the request was applied.
 */
static bool conclude(struct weiri_scope *scope, struct call *call, struct weiri_round *round, bool is_mine)
{
	struct result *result;
	uintptr_t word;
	uint64_t stamp;

	/*
	 * [P1 acquire] Not a weiri_section_read(): this request is counted in the result (C5). So the
	 * result and its commit stay until the drop below.
	 */
	word = weiri_load_acquire(&round->word);
	if (word == CLOSED)
		return false;
	result = result_in(word);
	stamp = weiri_commit_resolve(result->commit);
	if (stamp == WEIRI_STAMP_NONE) {
		weiri_commit_help(scope, result->commit);
		stamp = weiri_commit_resolve(result->commit);
	}
	if (is_mine) {
		weiri_commit_end(scope, result->commit);
		announce(round);
	}
	if (stamp != WEIRI_STAMP_ABORTED && call->published != NULL)
		*call->published = weiri_hold_tensor(result->value, result->number);
	WEIR_ASSERT_LOOK(assert_used(result));
	if (weiri_references_give(&result->users)) { /* [P2], C5 */
		/*
		 * The value is given up now, not when the result is freed. If the version were freed before
		 * the result, no retired bytes would include the value.
		 */
		call->given_up = result->value;
		result->value = NULL;
		result->retired.death = WEIRI_DIES_LATE; /* with the cell: S2 of version.h */
		weiri_scope_retire(scope, &result->retired);
	}
	return stamp != WEIRI_STAMP_ABORTED;
}

/* Retires a request whose outcome is known. */
static void retire_request(struct weiri_scope *scope, struct weiri_round *round, struct request *request)
{
	WEIR_ASSERT_LOOK(assert_over(round));
	if (weiri_has_readers(&round->at_work)) /* [P3] */
		weiri_change_keep(&request->change);
	request->retired.bytes += weiri_change_bytes(&request->change);
	weiri_scope_retire(scope, &request->retired); /* C1 */
}

/*
 * One attempt. Returns true if the change was made; false if the call has failed or must try again.
 */
static bool attempt(struct weiri_scope *scope, struct call *call)
{
	struct weiri_version *head, *base = weiri_write_base(scope, call->var, &head);
	struct request *request = call->request;
	struct weiri_round *round;
	size_t position;
	bool is_mine = false, is_applied;

	call->status = fit(call, base);
	if (call->status != WEIR_OK)
		return false;
	if (call->overtaken >= weiri_way_patience)
		ask_for_the_way(call, weiri_version_tensor(base));
	round = find_round(scope, call, base->position);
	position = round != NULL ? hang(scope, call, head, round) : 0;
	if (position == 0)
		return false;
	wait_for_others(base, round, position - 1);
	/* [relaxed] This load only saves work; conclude() reads the word again. */
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
	bool is_applied = false;

	do {
		struct weiri_scope scope;

		call.status = weiri_write_admit_at_once(var, deadline_ns, &record, error);
		if (call.status == WEIR_OK)
			call.status = provide(&call);
		if (call.status != WEIR_OK)
			break;
		scope = weiri_scope_enter(record);
		is_applied = attempt(&scope, &call);
		weiri_scope_leave(&scope);
		weir_tensor_release(call.given_up);
		call.given_up = NULL;
		call.overtaken++;
	} while (!is_applied && call.status == WEIR_OK);
	if (call.asker != NULL)
		weiri_way_free(var, call.asker);
	put_away(&call);
	if (is_applied)
		weiri_waitable_pump(record, &var->waitable);
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
