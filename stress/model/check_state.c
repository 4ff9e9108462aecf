/*
 * check_state.c - each part of a state is needed: for each part there is a program that misses
 * something if the part is left out.
 *
 * A program has three threads. A writer at last sets `choice` to 1. A chooser reads whether
 * `choice` is set, acts in one of two ways, and adds 2 to it. An observer adds 4 to it. After the
 * chooser's addition, only the part in question tells in which way the chooser acted. If that part
 * is left out, the states after both ways are merged. The way of a chooser that saw the newer value
 * is explored first, and leaves fewer possibilities afterwards than the other way. The search
 * therefore misses what only the other way makes possible: an outcome, a race, or a use of freed
 * memory.
 *
 * The result counts only if the writer came before the chooser, and the observer after it. In other
 * executions some thread that needs the part has ended, or the states differ in other parts as
 * well.
 *
 * Each program is explored in three ways: without merging, with merging, and with merging by states
 * that lack the part. The first two must find the same, and the third must find less.
 *
 * Then come programs of two threads whose states the checker once confused. In these, one thread
 * can notice more of what the other does between two steps than the steps themselves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/time.h>

#include "base/futex.h"
#include "model/engine.h"
#include "model/judged.h"
#include "model/orders.h"
#include "model/scope.h"

static struct state {
	_Atomic(int) choice, x, y, step, before, after;
	_Atomic(uint32_t) word, other_word;
	_Atomic(void *) object;
	_Atomic(int *) on_stack;
	int *kept, *left; /* in the heap; `left` is released at the end */
	int plain, earlier, later;
	_Alignas(4) unsigned char bytes[4];
	int saw[4];  /* the results of the chooser's addition and a later step, and of the observer's */
	int another; /* 1: the execution is neither of the two intended ones */
} state;

/* Accesses the variable as if it were not atomic. */
#define PLAIN(v) (*(int *)(uintptr_t)&state.v)

/* -- writers ----------------------------------------------------------------------------------- */

static void write_x(void)
{
	STORE(x, 1, RLX);
}

static void write_x_and_y(void)
{
	STORE(x, 1, RLX);
	STORE(y, 1, REL);
}

static void write_x_and_y_twice(void)
{
	write_x_and_y();
	STORE(y, 2, RLX);
}

static void write_data_and_x(void)
{
	state.plain = 1;
	STORE(x, 1, REL);
}

/* -- ways to act; newer is 1 if the newer value was seen --------------------------------------- */

static int keep(int newer)
{
	return newer;
}

static int keep_behind_x(int newer)
{
	STORE(x, 1, RLX);
	return newer;
}

static int write_data(int newer)
{
	state.plain = newer ? 1 : 2;
	return 0;
}

static int write_y_twice(int newer)
{
	STORE(y, newer ? 1 : 2, RLX);
	STORE(y, 3, RLX);
	return 0;
}

/*
 * The store to y carries a view that contains the store to x, or not. At the end the thread's own
 * view contains the store to x in both ways.
 */
static int release_y_around_x(int newer)
{
	int before = LOAD(x, RLX);

	STORE(y, 1, REL);
	if (before != newer || LOAD(x, RLX) != 1)
		state.another = 1;
	return 0;
}

/* The same for plain accesses: the thread acquires from x before the store to y, or after it. */
static int release_y_around_data(int newer)
{
	state.another = LOAD(x, newer ? ACQ : RLX) != 1;
	if (!state.another)
		STORE(y, 1, REL);
	(void)LOAD(x, ACQ);
	return 0;
}

/* In both ways an acquire fence would make the store to x known. */
static int look_at_x_and_y(int newer)
{
	if (LOAD(x, RLX) != newer || LOAD(y, RLX) != 1)
		state.another = 1;
	return 0;
}

static int know_data(int newer)
{
	if (LOAD(x, newer ? ACQ : RLX) != 1)
		state.another = 1;
	return 0;
}

/* Takes the item 1 that setup has put. If it was not taken, it is still inside at the end. */
static int take_if_newer(int newer)
{
	if (newer) {
		weir_model_call_begins(1);
		weir_model_call_ends(1);
		judged_take(WEIR_OK, 1);
	}
	return 0;
}

/*
 * The thread has read 2, which releases nothing. The question is whether it read 1 before, which
 * does release.
 */
static int keep_pending(int newer)
{
	int first = LOAD(y, RLX), second = LOAD(y, RLX);

	if ((first == 1) != newer || second != 2)
		state.another = 1;
	return 0;
}

static int write_x_and_fence(int newer)
{
	STORE(x, 1, RLX);
	if (newer)
		FENCE(REL);
	return 0;
}

static int write_y_in_s(int newer)
{
	STORE(y, 1, newer ? SC : REL);
	return 0;
}

/* Both ways write the same values, and both write plain data before and after the store to y. */
static int write_data_behind_y(int newer)
{
	state.plain = state.earlier = state.later = 0;
	STORE(y, 1, REL);
	if (newer)
		state.later = 0;
	else
		state.plain = 0;
	return 0;
}

static int read_data_behind_y(int newer)
{
	int sum = state.plain + state.earlier + state.later;

	STORE(y, 1, REL);
	sum += newer ? state.later : state.plain;
	state.another = sum != 0;
	return 0;
}

static int load_x_behind_y(int newer)
{
	int sum = LOAD(x, RLX) + LOAD(before, RLX) + LOAD(after, RLX);

	STORE(y, 1, REL);
	sum += newer ? LOAD(after, RLX) : LOAD(x, RLX);
	state.another = sum != 0;
	return 0;
}

static int store_x_behind_y(int newer)
{
	STORE(x, 0, RLX);
	STORE(before, 0, RLX);
	STORE(after, 0, RLX);
	STORE(y, 1, REL);
	if (newer)
		STORE(after, 0, RLX);
	else
		STORE(x, 0, RLX);
	return 0;
}

static int release_object(int newer)
{
	int *object = LOAD(object, RLX), writer_has_been = ADD(choice, 0, RLX) & 1;

	*object = 1;
	if (!newer && writer_has_been)
		weir_model_release(object);
	return 0;
}

static int let_time_pass(int newer)
{
	(void)weiri_futex_wait(&state.word, 0, newer ? 1000 : 2000);
	return 0;
}

/* -- consequences: the chooser's last step, and the observer's --------------------------------- */

static void say(int kept)
{
	state.saw[1] = kept;
}

static void store_in_y(int kept)
{
	STORE(y, kept + 1, RLX);
}

static void store_y_in_order(int kept)
{
	STORE(y, 1, kept ? REL : RLX);
}

static void sleep_on(int kept)
{
	state.saw[1] = weiri_futex_wait(kept ? &state.word : &state.other_word, 0, 1000);
}

static void read_data(int kept)
{
	state.saw[1] = kept + state.plain;
}

static void read_data_later(int kept)
{
	if (LOAD(step, RLX) == 2)
		read_data(kept);
}

static void read_x(int kept)
{
	state.saw[1] = kept + LOAD(x, RLX);
}

static void fence_and_read_x(int kept)
{
	FENCE(ACQ);
	read_x(kept);
}

static void use_object(int kept)
{
	state.saw[1] = kept + *(int *)LOAD(object, RLX);
}

static void tell_time(int kept)
{
	state.saw[1] = kept + (int)(weir_now_ns() / 1000);
}

static void see_nothing(void)
{
}

static void step(void)
{
	STORE(step, 2, RLX);
}

static void see_y(void)
{
	state.saw[3] = LOAD(y, RLX);
}

static void see_y_in_s(void)
{
	state.saw[3] = LOAD(y, SC);
}

static void see_x_behind_y(void)
{
	if (LOAD(y, ACQ) == 1)
		state.saw[3] = 1 + LOAD(x, RLX);
}

/*
 * The observer also reads `step`, so that the chooser's next operation is not combined with the
 * operation before it.
 */
static void see_step_and_y(void)
{
	(void)LOAD(step, RLX);
	see_y();
}

static void see_step_and_x_behind_y(void)
{
	(void)LOAD(step, RLX);
	see_x_behind_y();
}

static void see_data_behind_y(void)
{
	if (LOAD(y, ACQ) == 1)
		state.saw[3] = state.plain;
}

static void see_all_data(void)
{
	if (LOAD(y, ACQ) == 1)
		state.saw[3] = state.plain + state.earlier;
	if (LOAD(step, ACQ) == 1)
		state.saw[3] = state.later;
}

static void write_all_data(void)
{
	if (LOAD(y, ACQ) == 1)
		state.plain = state.earlier = 0;
	if (LOAD(step, ACQ) == 1)
		state.later = 0;
}

static void write_x_plainly(void)
{
	if (LOAD(y, ACQ) == 1)
		PLAIN(x) = PLAIN(before) = 0;
	if (LOAD(step, ACQ) == 1)
		PLAIN(after) = 0;
}

static void read_x_plainly(void)
{
	if (LOAD(y, ACQ) == 1)
		state.saw[3] = PLAIN(x) + PLAIN(before);
	if (LOAD(step, ACQ) == 1)
		state.saw[3] = PLAIN(after);
}

/*
 * Makes the search learn that a thread other than the chooser reads x, so that the knowledge of
 * that thread is part of the state.
 */
static void look_at_x(void)
{
	(void)LOAD(x, RLX);
}

static void step_and_see_data_behind_x(void)
{
	if (LOAD(x, ACQ) == 1)
		state.saw[3] = state.plain;
	step();
}

static void wake_other_word(void)
{
	weiri_futex_wake(&state.other_word, 1);
}

/* -- programs ---------------------------------------------------------------------------------- */

static void make_object(void *context)
{
	(void)context;
	STORE(object, weir_model_allocate(sizeof(int), 16), RLX);
	judged_as_fifo(0);
}

static void put_1(void *context)
{
	make_object(context);
	weir_model_call_begins(0);
	weir_model_call_ends(0);
	judged_put(WEIR_OK, 1, 0);
}

static const struct program {
	const char *name;
	enum state_part part;
	void (*write)(void);
	int (*act)(int newer);
	void (*last)(int kept);
	void (*observe)(void);
	int fails;                    /* what is missed is a failure */
	memory_order order;           /* of the chooser's addition, and of the step after it */
	void (*setup)(void *context); /* NULL: make_object */
	int empty;                    /* the final message about what calls returned */
} programs[] = {
	{"stacks", STATE_STACKS, see_nothing, keep, say, see_nothing, 0, RLX, NULL, 0},
	{"operations", STATE_OPERATIONS, see_nothing, keep, store_in_y, see_step_and_y, 0, RLX, NULL, 0},
	{"orders_of_operations", STATE_OPERATIONS, see_nothing, keep_behind_x, store_y_in_order, see_step_and_x_behind_y, 0,
     RLX, NULL, 0},
	{"sleep", STATE_SLEEP, see_nothing, keep, sleep_on, wake_other_word, 0, RLX, NULL, 0},
	{"memory", STATE_MEMORY, see_nothing, write_data, read_data, see_nothing, 0, RLX, NULL, 0},
	{"histories", STATE_HISTORIES, see_nothing, write_y_twice, say, see_y, 0, RLX, NULL, 0},
	{"stores_views_of_stores", STATE_STORES, write_x, release_y_around_x, say, see_x_behind_y, 0, RLX, NULL, 0},
	{"stores_views_of_accesses", STATE_STORES_CLOCKS, write_data_and_x, release_y_around_data, say, see_data_behind_y,
     1, RLX, NULL, 0},
	{"threads_views_of_stores", STATE_VIEWS, write_x_and_y, look_at_x_and_y, read_x, look_at_x, 0, RLX, NULL, 0},
	{"threads_views_of_accesses", STATE_VIEWS_CLOCKS, write_data_and_x, know_data, read_data_later,
     step_and_see_data_behind_x, 1, RLX, NULL, 0},
	{"what_an_acquire_fence_adds", STATE_PENDING, write_x_and_y_twice, keep_pending, fence_and_read_x, see_nothing, 0,
     RLX, NULL, 0},
	{"what_a_release_fence_left", STATE_RELEASED, see_nothing, write_x_and_fence, store_in_y, see_x_behind_y, 0, REL,
     NULL, 0},
	{"seq_cst_order", STATE_S, see_nothing, write_y_in_s, say, see_y_in_s, 0, RLX, NULL, 0},
	{"accesses", STATE_ACCESSES, see_nothing, write_data_behind_y, say, see_all_data, 1, REL, NULL, 0},
	{"accesses_that_read", STATE_ACCESSES, see_nothing, read_data_behind_y, say, write_all_data, 1, REL, NULL, 0},
	{"accesses_that_load", STATE_ACCESSES, see_nothing, load_x_behind_y, say, write_x_plainly, 1, REL, NULL, 0},
	{"accesses_that_store", STATE_ACCESSES, see_nothing, store_x_behind_y, say, read_x_plainly, 1, REL, NULL, 0},
	{"heap", STATE_HEAP, see_nothing, release_object, use_object, see_nothing, 1, RLX, NULL, 0},
	{"time", STATE_SYSTEM, see_nothing, let_time_pass, tell_time, see_nothing, 0, RLX, NULL, 0},
	{"answers", STATE_ANSWERS, see_nothing, take_if_newer, say, see_nothing, 1, RLX, put_1, 1},
};

static const struct program *current;

/* A separate function, so that the value that was seen is not left on the thread's stack. */
static __attribute__((noinline)) int choose(int (*act)(int newer))
{
	return act(LOAD(choice, RLX) & 1);
}

static void thread(void *context, size_t number)
{
	int kept;

	(void)context;
	switch (number) {
	case 0:
		current->write();
		STORE(choice, 1, RLX);
		break;
	case 1:
		kept = choose(current->act);
		state.saw[0] = ADD(choice, 2, current->order);
		STORE(step, 1, current->order);
		if ((state.saw[0] == 1 || current->part == STATE_HEAP) && !state.another)
			current->last(kept);
		break;
	default:
		state.saw[2] = ADD(choice, 4, RLX);
		if (state.saw[2] == 3)
			current->observe();
		break;
	}
}

/* -- outcomes ---------------------------------------------------------------------------------- */

enum { OUTCOMES = 8 * 4 * 8 * 4 * 2 };
struct met {
	unsigned char outcome[OUTCOMES];
	struct weir_model_result result;
};
static struct met all, merged, less, *meeting;

static void finish(void *context)
{
	(void)context;
	weir_model_release(LOAD(object, RLX));
	if (current->empty && state.saw[0] == 1 && state.saw[2] == 3)
		judged_wrong_take();
	meeting->outcome[(((state.saw[0] * 4 + state.saw[1]) * 8 + state.saw[2]) * 4 + state.saw[3]) * 2 + state.another] =
		1;
}

static void meet(struct met *met, const struct weir_model_program *program, struct weir_model_options options)
{
	memset(met, 0, sizeof(*met));
	memset(&state, 0, sizeof(state));
	meeting = met;
	(void)weir_model_check(program, &options, &met->result);
	free(met->result.replay);
}

/* Returns the number of outcomes of `a` that are not in `b`. */
static int missing(const struct met *a, const struct met *b)
{
	int count = 0;

	for (size_t i = 0; i < OUTCOMES; i++)
		count += a->outcome[i] && !b->outcome[i];
	return count;
}

/* Compares without merging and with it. Returns 1 if both fail, or both have the same outcomes. */
static int meets_the_same(const struct weir_model_program *program, int fails)
{
	meet(&all, program, (struct weir_model_options){.no_reduction = 1});
	meet(&merged, program, (struct weir_model_options){.merge_states = 1});
	if (fails)
		return all.result.failed && merged.result.failed;
	return all.result.complete && merged.result.complete && missing(&all, &merged) == 0 && missing(&merged, &all) == 0;
}

static int check(const struct program *program)
{
	const struct weir_model_program three = {
		program->name, 3, &state, sizeof(state), program->setup != NULL ? program->setup : make_object, thread, finish};
	int right;

	current = program;
	right = meets_the_same(&three, program->fails);
	state_left_out = 1u << program->part;
	meet(&less, &three, (struct weir_model_options){.merge_states = 1});
	state_left_out = 0;
	right = right && !less.result.failed;
	if (!program->fails)
		right = right && missing(&merged, &less) > 0 && missing(&less, &merged) == 0;
	(void)printf("%s state_needs_%s: %llu executions without merging; %llu states, %s; without the part %llu, %s, %d "
	             "outcomes missed\n",
	             right ? "PASS" : "FAIL", program->name, (unsigned long long)all.result.executions,
	             (unsigned long long)merged.result.states, merged.result.failed ? merged.result.message : "all well",
	             (unsigned long long)less.result.states, less.result.failed ? less.result.message : "all well",
	             program->fails ? 0 : missing(&merged, &less));
	return !right;
}

/* -- what two threads can tell ----------------------------------------------------------------- */

/*
 * The thread lends a variable of its stack, and reads it only after the other thread has written to
 * it.
 */
static void lend_stack(void)
{
	int lent = 0;

	STORE(on_stack, &lent, REL);
	STORE(choice, 1, RLX);
	if ((ADD(step, 2, memory_order_acq_rel) & 1) != 0)
		state.saw[0] = lent;
}

/* Only the stack of this function tells which of the two values it writes. */
static __attribute__((noinline)) void write_one_of_two(int *to)
{
	int one = 1 + LOAD(choice, RLX);

	state.saw[1] = ADD(choice, 2, RLX);
	(void)ADD(y, 1, RLX);
	*to = one;
}

static void write_to_stack(void)
{
	int *lent = LOAD(on_stack, ACQ);

	if (lent == NULL)
		return;
	write_one_of_two(lent);
	(void)ADD(step, 1, REL);
}

/* An allocation before the other thread's release must not hide the use of freed memory. */
static void allocate_and_use_kept(void)
{
	int *fresh;

	(void)LOAD(x, RLX);
	fresh = weir_model_allocate(sizeof(int), 16);
	if (ADD(step, 0, RLX) == 1)
		state.saw[0] = *state.kept == 1;
	weir_model_release(fresh);
}

static void release_kept(void)
{
	STORE(step, 1, RLX);
	weir_model_release(state.kept);
}

/*
 * The object that the exchange finds may be a new one, at the address of the object that this
 * thread released.
 */
static void release_and_compare(void)
{
	void *was = state.kept;

	(void)LOAD(x, RLX);
	weir_model_release(state.kept);
	state.saw[0] = atomic_compare_exchange_strong_explicit(&state.object, &was, NULL, RLX, RLX);
}

static void allocate_and_publish(void)
{
	(void)ADD(step, 1, RLX);
	state.left = weir_model_allocate(sizeof(int), 16);
	STORE(object, state.left, RLX);
	(void)ADD(step, 1, RLX);
}

/* The other thread may release the object meanwhile. */
static void use_and_announce(void)
{
	state.saw[0] = atomic_load_explicit((_Atomic(int) *)state.kept, RLX) == 2;
	STORE(y, 1, REL);
}

/*
 * The use by the other thread is also wrong if a new object is allocated at the same address
 * immediately.
 */
static void release_and_allocate(void)
{
	(void)ADD(step, 1, RLX);
	state.left = state.kept;
	if (ADD(y, 0, ACQ) == 0) {
		weir_model_release(state.kept);
		state.left = weir_model_allocate(sizeof(int), 16);
	}
	(void)ADD(step, 1, RLX);
}

static void keep_object(void *context)
{
	(void)context;
	state.kept = weir_model_allocate(sizeof(int), 16);
	*state.kept = 1;
}

/*
 * The deadline of the other thread may pass after the read of the clock and before the word
 * changes.
 */
static void look_at_clock(void)
{
	(void)LOAD(x, RLX);
	state.saw[0] = weir_now_ns() > 500;
	STORE(word, 1, RLX);
	weiri_futex_wake(&state.word, 1);
}

static void wait_for_word(void)
{
	(void)ADD(step, 1, RLX);
	state.saw[1] = weiri_futex_wait(&state.word, 0, 1000);
}

/*
 * No thread reads x or y. The plain accesses are to the bytes of one word, and only byte 0 is
 * accessed by both threads: one reads it and the other writes it.
 */
static void read_bytes_behind_x(void)
{
	STORE(x, 1, RLX);
	state.saw[0] = state.bytes[0];
	STORE(x, 2, RLX);
	state.saw[1] = state.bytes[2];
}

static void write_bytes_behind_y(void)
{
	STORE(y, 1, RLX);
	state.bytes[0] = 1;
	STORE(y, 2, RLX);
	state.bytes[3] = 1;
}

static const struct pair {
	const char *name;
	void (*threads[2])(void);
	void (*setup)(void *context);
	int fails;
} pairs[] = {
	{"a_stack_that_another_writes_to", {lend_stack, write_to_stack}, NULL, 0},
	{"an_allocation_behind_a_load", {allocate_and_use_kept, release_kept}, keep_object, 1},
	{"a_release_behind_a_load", {release_and_compare, allocate_and_publish}, keep_object, 0},
	{"a_release_before_an_allocation", {use_and_announce, release_and_allocate}, keep_object, 1},
	{"the_clock_behind_a_load", {look_at_clock, wait_for_word}, NULL, 0},
	{"bytes_of_a_word_between_own_writes", {read_bytes_behind_x, write_bytes_behind_y}, NULL, 1},
};

static const struct pair *current_pair;

static void run_pair(void *context, size_t number)
{
	(void)context;
	current_pair->threads[number]();
}

static void finish_pair(void *context)
{
	STORE(object, NULL, RLX);
	weir_model_release(state.left);
	finish(context);
}

static int check_pair(const struct pair *pair)
{
	const struct weir_model_program two = {pair->name, 2, &state, sizeof(state), pair->setup, run_pair, finish_pair};
	int right;

	current_pair = pair;
	right = meets_the_same(&two, pair->fails);
	(void)printf(
		"%s merging_minds_%s: %llu executions without merging; %llu states, %s, %d outcomes missed, %d made up\n",
		right ? "PASS" : "FAIL", pair->name, (unsigned long long)all.result.executions,
		(unsigned long long)merged.result.states, merged.result.failed ? merged.result.message : "all well",
		pair->fails ? 0 : missing(&all, &merged), pair->fails ? 0 : missing(&merged, &all));
	return !right;
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		bad |= STATE_SUPPORTED && scope_chosen(programs[i].name) && check(&programs[i]);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		bad |= STATE_SUPPORTED && scope_chosen(pairs[i].name) && check_pair(&pairs[i]);
	return bad;
}
