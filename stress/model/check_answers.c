/*
 * check_answers.c - checks how results are judged: one call precedes another exactly if the end of
 * the first happens before the begin of the second.
 *
 * There is no structure here, because the subject is the judge itself. Threads only state what
 * calls returned. One thread states that it put a value, and another that it found "empty". Whether
 * an order of the calls explains both depends on how the two calls are ordered. check_state.c shows
 * that merged states distinguish results.
 */
#include "model/judged.h"
#include "model/orders.h"
#include "model/scope.h"

static struct state {
	_Atomic(int) flag, other;
} state;

static void say_put(uint64_t value)
{
	weir_model_call_begins(0);
	weir_model_call_ends(0);
	judged_put(WEIR_OK, value, 0);
}

static void say_take(uint64_t value)
{
	weir_model_call_begins(1);
	weir_model_call_ends(1);
	judged_take(WEIR_OK, value);
}

static void say_empty(void)
{
	judged_wrong_take();
}

static void setup(void *context)
{
	(void)context;
	judged_as_fifo(0);
}

static void put_and_release(void)
{
	say_put(1);
	STORE(flag, 1, REL);
}

static void put_and_tell(void)
{
	say_put(1);
	STORE(flag, 1, RLX);
}

/* The store is inside the call, so it releases only what precedes the end of the call. */
static void release_and_end(void)
{
	weir_model_call_begins(0);
	STORE(flag, 1, REL);
	weir_model_call_ends(0);
	judged_put(WEIR_OK, 1, 0);
}

static void empty_behind_acquire(void)
{
	if (LOAD(flag, ACQ) == 1)
		say_empty();
}

static void empty_behind_relaxed(void)
{
	if (LOAD(flag, RLX) == 1)
		say_empty();
}

static void empty_behind_fence(void)
{
	if (LOAD(flag, RLX) == 1) {
		FENCE(ACQ);
		say_empty();
	}
}

static void begin_before_acquire(void)
{
	int saw;

	weir_model_call_begins(1);
	saw = LOAD(flag, ACQ);
	weir_model_call_ends(1);
	if (saw == 1)
		judged_take(WEIR_WOULD_BLOCK, 0);
}

static void pass_on(void)
{
	if (LOAD(flag, ACQ) == 1)
		STORE(other, 1, REL);
}

static void empty_behind_the_other(void)
{
	if (LOAD(other, ACQ) == 1)
		say_empty();
}

/* A seq_cst read that misses the store precedes the store in S, but does not happen before it. */
static void put_and_look(void)
{
	say_put(1);
	(void)LOAD(flag, SC);
}

static void store_and_say_empty(void)
{
	STORE(flag, 1, SC);
	say_empty();
}

static void put_fence_store(void)
{
	say_put(1);
	FENCE(SC);
	STORE(flag, 1, RLX);
}

static void look_fence_empty(void)
{
	int saw = LOAD(flag, RLX);

	FENCE(SC);
	if (saw == 1)
		say_empty();
}

/* Each side has its own order, and there is no order across. */
static void empty_put_1(void)
{
	say_empty();
	say_put(1);
}

static void put_2(void)
{
	say_put(2);
	say_take(2);
}

static void finish_takes_1(void *context)
{
	(void)context;
	say_take(1);
	say_empty();
}

static void finish_finds_nothing(void *context)
{
	(void)context;
	say_empty();
}

static void setup_puts_1(void *context)
{
	setup(context);
	say_put(1);
}

static const struct program {
	const char *name;
	void (*threads[3])(void);
	void (*setup)(void *context);
	void (*finish)(void *context);
	int wrong;
} programs[] = {
	{"put_released_empty_acquired", {put_and_release, empty_behind_acquire}, setup, NULL, 1},
	{"put_released_empty_behind_a_fence", {put_and_release, empty_behind_fence}, setup, NULL, 1},
	{"put_passed_on_by_a_third", {put_and_release, pass_on, empty_behind_the_other}, setup, NULL, 1},
	{"put_released_not_acquired", {put_and_release, empty_behind_relaxed}, setup, NULL, 0},
	{"put_not_released", {put_and_tell, empty_behind_acquire}, setup, NULL, 0},
	{"put_released_before_its_end", {release_and_end, empty_behind_acquire}, setup, NULL, 0},
	{"empty_begun_before_it_acquires", {put_and_release, begin_before_acquire}, setup, NULL, 0},
	{"put_and_empty_around_fences", {put_fence_store, look_fence_empty}, setup, NULL, 1},
	{"put_and_empty_in_order_in_s_alone", {put_and_look, store_and_say_empty}, setup, finish_takes_1, 0},
	{"two_sides_in_order_none_across", {empty_put_1, put_2}, setup, finish_takes_1, 0},
	{"put_and_gone_at_the_end", {put_and_tell}, setup, finish_finds_nothing, 1},
	{"put_by_setup_and_gone", {say_empty}, setup_puts_1, NULL, 1},
};

static int check(const struct program *of)
{
	struct weir_model_program program = {
		of->name, scope_functions(of->threads, 3), &state, sizeof(state), of->setup, scope_function, of->finish};

	return of->wrong ? scope_finds(&program, judged_wrong) : scope_complete(&program);
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		bad |= check(&programs[i]);
	return bad;
}
