/*
 * test_fork.c - what the child of a fork can do although the parent has other threads:
 * docs/embedding.md, "Fork".
 *
 * A child may not use the test framework. It checks with CHILD_CHECK and ends with _exit, and the
 * parent judges. SIGALRM ends a child that hangs.
 */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/dump.h>
#include <weir/queue.h>
#include <weir/reclaim.h>
#include <weir/ring.h>
#include <weir/time.h>
#include <weir/var.h>
#include <weir/var_cache.h>
#include <weir/watch.h>

#include "asleep.h"
#include "base/futex.h"
#include "base/thread.h"
#include "reclaim/admit.h"
#include "reclaim/collect.h"
#include "var/give_way.h"
#include "var/hold.h"
#include "var/install.h"
#include "under_tsan.h"
#include "variables.h"

enum { CHILD_SECONDS = 300, LARGE = 256 << 10 };

static const uint64_t patience_ns = UINT64_C(100000000000);

/* Returns 0, or the line of the check that failed. */
typedef int child_body(void *context);

#define CHILD_CHECK(condition) \
	do { \
		if (!(condition)) \
			return __LINE__; \
	} while (0)

static _Noreturn void be_child(child_body *body, void *context, int verdict)
{
	int line;

	(void)alarm(CHILD_SECONDS);
	line = body(context);
	_exit(write(verdict, &line, sizeof(line)) == (ssize_t)sizeof(line) ? 0 : 1);
}

/* Forks, runs `body` in the child, and expects that all its checks held. */
static void in_child(child_body *body, void *context)
{
	int pipe_ends[2], status = 0, line = -1;
	pid_t child;

	cr_assert_eq(pipe(pipe_ends), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0)
		be_child(body, context, pipe_ends[1]);
	(void)close(pipe_ends[1]);
	cr_expect_eq(read(pipe_ends[0], &line, sizeof(line)), (ssize_t)sizeof(line), "the child returned no outcome");
	(void)close(pipe_ends[0]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status %d", status);
	cr_expect_eq(line, 0, "a check of the child failed in line %d", line);
}

/* -- threads of the parent, which the child does not have -------------------------------------- */

struct other {
	/* Goes to where the thread stands during the fork, and calls stand_there(). */
	void (*stand)(struct other *other);
	_Atomic(uint32_t) standing, go_on;
	weir_var *var, *second;
	pthread_t thread;
};

static void wait_for(_Atomic(uint32_t) *word)
{
	uint64_t deadline = weir_deadline_in(patience_ns);

	while (weiri_load_acquire(word) == 0)
		cr_assert(weiri_futex_wait(word, 0, deadline), "waited in vain");
}

static void set(_Atomic(uint32_t) *word)
{
	weiri_store_release(word, 1u);
	weiri_futex_wake(word, 100);
}

static void stand_there(struct other *other)
{
	set(&other->standing);
	wait_for(&other->go_on);
}

static void *other_main(void *context)
{
	struct other *other = context;

	other->stand(other);
	return NULL;
}

static void start(struct other *other)
{
	cr_assert_eq(pthread_create(&other->thread, NULL, other_main, other), 0);
	wait_for(&other->standing);
}

static void finish(struct other *other)
{
	set(&other->go_on);
	cr_assert_eq(pthread_join(other->thread, NULL), 0);
}

static void stand_in_a_section(struct other *other)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer;

	cr_assert_not_null(record);
	outer = weiri_section_enter(record);
	stand_there(other);
	weiri_section_leave(record, outer);
}

static void stand_with_a_handle(struct other *other)
{
	weir_read read;

	cr_assert_not_null(weiri_record_get());
	cr_assert_eq(weir_var_read(other->var, &read), WEIR_OK);
	cr_assert_null(weiri_hold_value_of(&read), "a reference holds it, not a slot");
	stand_there(other);
	weir_read_release(&read);
}

/* -- variables --------------------------------------------------------------------------------- */

static int64_t child_value(weir_var *var)
{
	weir_read read;
	int64_t value = -1;

	if (weir_var_read(var, &read) == WEIR_OK) {
		value = value_of(&read);
		weir_read_release(&read);
	}
	return value;
}

static enum weir_status child_assign(weir_var *var, int64_t value)
{
	weir_shape scalar = {.rank = 0};
	weir_tensor *tensor = NULL;
	enum weir_status status = weir_tensor_copy_of(WEIR_I64, &scalar, &value, &variables_memory, &tensor);

	if (status != WEIR_OK)
		return status;
	status = weir_var_assign(var, tensor, weir_deadline_in(patience_ns), NULL, NULL);
	weir_tensor_release(tensor);
	return status;
}

static int use_a_variable(void *context)
{
	weir_var *var = context;
	weir_read both[2];

	CHILD_CHECK(child_value(var) == 1);
	for (int64_t i = 2; i <= 1000; i++) {
		CHILD_CHECK(child_assign(var, i) == WEIR_OK);
		CHILD_CHECK(child_value(var) == i);
	}
	CHILD_CHECK(weir_var_snapshot((weir_var *[2]){var, var}, 2, both, NULL) == WEIR_OK);
	CHILD_CHECK(value_of(&both[0]) == 1000 && value_of(&both[1]) == 1000);
	weir_read_release_many(both, 2);
	return 0;
}

Test(fork, the_child_reads_and_writes_and_the_parent_sees_nothing_of_it)
{
	struct other other = {.stand = stand_in_a_section};
	weir_var *var = variable(1);

	start(&other);
	in_child(use_a_variable, var);
	cr_expect_eq(value_in(var), 1);
	assign(var, 5);
	cr_expect_eq(value_in(var), 5);
	finish(&other);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* A commit that sets two variables to 9. One of its parts is installed during the fork. */
static void stand_in_a_commit(struct other *other)
{
	weir_tensor *nine = number(9);
	struct weir_commit_part parts[2] = {{other->var, 1, nine}, {other->second, 1, nine}};
	struct weiri_record *record = weiri_record_get();
	struct weiri_commit *commit = weiri_commit_create(record, parts, 2);
	struct weiri_scope scope = weiri_scope_enter(record);
	struct weiri_version *head, *base;

	cr_assert_not_null(commit);
	for (size_t i = 2; i-- > 0;) {
		base = weiri_write_base(&scope, commit->parts[i].var, &head);
		weiri_version_set_base(commit->parts[i].version, base);
	}
	cr_assert(weiri_write_replace(&scope, commit->parts[0].var, head, base, commit->parts[0].version));
	stand_there(other);
	weiri_commit_help(&scope, commit);
	weiri_commit_end(&scope, commit);
	weiri_scope_retire(&scope, &commit->retired);
	weiri_scope_leave(&scope);
	weir_tensor_release(nine);
}

/*
 * Writes the second variable until the memory of its first version is that of its newest. A write
 * of the first variable then helps the commit, which must notice that the second one has moved.
 */
static int bring_an_address_back(void *context)
{
	const struct other *other = context;
	bool first_is_lower = (uintptr_t)other->var < (uintptr_t)other->second;
	weir_var *low = first_is_lower ? other->var : other->second, *high = first_is_lower ? other->second : other->var;
	const struct weiri_version *before = weiri_load_relaxed(&high->head);
	int64_t value = 10;

	do
		CHILD_CHECK(child_assign(high, ++value) == WEIR_OK);
	while (weiri_load_relaxed(&high->head) != before && value < 100000);
	CHILD_CHECK(child_assign(low, 5) == WEIR_OK);
	CHILD_CHECK(child_value(high) == value && weir_var_version(high) == (uint64_t)value - 9);
	CHILD_CHECK(child_value(low) == 5 && weir_var_version(low) == 2);
	return 0;
}

Test(fork, a_commit_of_a_thread_that_is_gone_changes_nothing_that_has_moved)
{
	struct other other = {.stand = stand_in_a_commit, .var = variable(1), .second = variable(1)};

	start(&other);
	in_child(bring_an_address_back, &other);
	finish(&other);
	cr_expect_eq(value_in(other.var), 9);
	cr_expect_eq(value_in(other.second), 9);
	weir_var_destroy(other.var, NULL);
	weir_var_destroy(other.second, NULL);
	expect_nothing_left();
}

static int ask_its_number(void *context)
{
	CHILD_CHECK(weiri_record_my_thread() == (uint32_t)gettid());
	CHILD_CHECK(weiri_record_my_thread() != *(uint32_t *)context);
	return 0;
}

/* A dump names the waiting threads by this number. */
Test(fork, the_child_does_not_keep_the_number_of_the_thread_that_forked)
{
	uint32_t here = weiri_record_my_thread();
	/* The first record prepares the process for a fork. */
	weir_var *var = variable(1);

	cr_assert_eq(here, (uint32_t)gettid());
	in_child(ask_its_number, &here);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

static int flush_and_count(void *context)
{
	weir_var *var = context;

	for (int64_t i = 0; i < 10; i++)
		CHILD_CHECK(child_assign(var, i) == WEIR_OK);
	CHILD_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK);
	CHILD_CHECK(live_versions() == 1);
	return 0;
}

Test(fork, sections_of_threads_that_are_gone_hold_nothing_back)
{
	struct other others[3] = {
		{.stand = stand_in_a_section}, {.stand = stand_in_a_section}, {.stand = stand_in_a_section}};
	weir_var *var = variable(1);

	for (int i = 0; i < 3; i++)
		start(&others[i]);
	assign(var, 2);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	in_child(flush_and_count, var);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED, "in the parent the sections go on");
	cr_expect_eq(live_versions(), 2);
	for (int i = 0; i < 3; i++)
		finish(&others[i]);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

enum { PINNED = 100 };

static int see_pinned_freed(void *context)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	CHILD_CHECK(flush_and_count(context) == 0);
	CHILD_CHECK(weir_reclaim_get_stats(&stats) == WEIR_OK && stats.retired_bytes == 0);
	return 0;
}

/* Moves the notes of all stacks of pinned objects to `notes`. */
static void take_notes(struct weiri_record *record, uint64_t notes[WEIRI_STACKS])
{
	for (size_t i = 0; i < WEIRI_STACKS; i++) {
		notes[i] = weiri_load_relaxed(&record->pinned_lo[i]);
		weiri_store_relaxed(&record->pinned_lo[i], 0u);
	}
}

static void give_notes_back(struct weiri_record *record, const uint64_t notes[WEIRI_STACKS])
{
	for (size_t i = 0; i < WEIRI_STACKS; i++)
		weiri_store_relaxed(&record->pinned_lo[i], notes[i]);
}

static struct weiri_record *record_in_a_section(void)
{
	struct weiri_record *record = weiri_load_acquire(&weiri_records);

	while (record != NULL && weiri_load_relaxed(&record->lo) == 0)
		record = record->next;
	cr_assert_not_null(record);
	return record;
}

Test(fork, what_was_pinned_for_a_section_of_a_thread_that_is_gone_is_freed)
{
	struct other other = {.stand = stand_in_a_section};
	weir_var *var = variable(1);
	uint64_t notes[WEIRI_STACKS];
	struct weiri_record *record;

	start(&other);
	for (int i = 0; i < PINNED; i++)
		assign(var, i);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	in_child(see_pinned_freed, var);
	/*
	 * This is the state while collectors have pinned objects and have not yet noted for which
	 * section.
	 */
	record = record_in_a_section();
	take_notes(record, notes);
	in_child(see_pinned_freed, var);
	give_notes_back(record, notes);
	finish(&other);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

static int flush_but_one(void *context)
{
	weir_var *var = context;

	for (int64_t i = 0; i < 10; i++)
		CHILD_CHECK(child_assign(var, i) == WEIR_OK);
	CHILD_CHECK(weir_reclaim_flush(0) == WEIR_DEADLINE_EXCEEDED);
	CHILD_CHECK(live_versions() == 2);
	return 0;
}

Test(fork, a_handle_of_a_thread_that_is_gone_pins_its_version_only)
{
	weir_var *var = variable(1);
	struct other other = {.stand = stand_with_a_handle, .var = var};

	start(&other);
	in_child(flush_but_one, var);
	finish(&other);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

static int release_and_flush(void *context)
{
	weir_read *read = context;

	CHILD_CHECK(value_of(read) == 1);
	weir_read_release(read);
	CHILD_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK);
	CHILD_CHECK(live_versions() == 1);
	return 0;
}

Test(fork, a_handle_comes_along)
{
	weir_var *var = variable(1);
	weir_read read;

	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	assign(var, 2);
	in_child(release_and_flush, &read);
	cr_expect_eq(value_of(&read), 1);
	weir_read_release(&read);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

struct kept {
	weir_var *var;
	weir_var_cache cache;
};

static int follow_and_flush(void *context)
{
	struct kept *kept = context;
	weir_tensor *two = NULL;

	CHILD_CHECK(value_of(weir_var_cache_read(&kept->cache)) == 1);
	CHILD_CHECK(weir_tensor_scalar_i64(2, &two) == WEIR_OK);
	CHILD_CHECK(weir_var_assign(kept->var, two, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weir_tensor_release(two);
	CHILD_CHECK(weir_reclaim_flush(0) == WEIR_DEADLINE_EXCEEDED); /* it pins version 1 here, too */
	CHILD_CHECK(value_of(weir_var_cache_read(&kept->cache)) == 2);
	weir_var_cache_release(&kept->cache);
	CHILD_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK);
	return 0;
}

Test(fork, a_cache_comes_along)
{
	struct kept kept = {.var = variable(1)};

	weir_var_cache_init(&kept.cache, kept.var);
	cr_assert_not_null(weir_var_cache_read(&kept.cache));
	in_child(follow_and_flush, &kept);
	cr_expect_eq(value_of(weir_var_cache_read(&kept.cache)), 1);
	weir_var_cache_release(&kept.cache);
	weir_var_destroy(kept.var, NULL);
	expect_nothing_left();
}

static int fork_again(void *context)
{
	int status = 0;
	pid_t grandchild = fork();

	CHILD_CHECK(grandchild >= 0);
	if (grandchild == 0) {
		(void)alarm(CHILD_SECONDS);
		_exit(use_a_variable(context) == 0 ? 0 : 1);
	}
	CHILD_CHECK(waitpid(grandchild, &status, 0) == grandchild);
	CHILD_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return use_a_variable(context);
}

Test(fork, the_child_may_fork_again)
{
	struct other other = {.stand = stand_in_a_section};
	weir_var *var = variable(1);

	start(&other);
	in_child(fork_again, var);
	finish(&other);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

static void *use_in_a_thread(void *context)
{
	return use_a_variable(context) == 0 ? context : NULL;
}

static int start_a_thread(void *context)
{
	struct weir_reclaim_stats before = {WEIR_RECLAIM_STATS_INIT}, after = before;
	pthread_t thread;
	void *result = NULL;

	CHILD_CHECK(weir_reclaim_get_stats(&before) == WEIR_OK);
	CHILD_CHECK(pthread_create(&thread, NULL, use_in_a_thread, context) == 0);
	CHILD_CHECK(pthread_join(thread, &result) == 0);
	CHILD_CHECK(result == context);
	CHILD_CHECK(weir_reclaim_get_stats(&after) == WEIR_OK);
	/* The thread adopted the record of a thread that is gone. */
	CHILD_CHECK(after.threads == before.threads);
	return 0;
}

/*
 * ThreadSanitizer ends a child that starts a thread. With die_after_fork=0 it lets the child try,
 * and then fails at the new thread, which may have the id of an ended one.
 */
static void skip_where_children_start_no_threads(void)
{
	if (UNDER_TSAN)
		cr_skip("ThreadSanitizer does not support threads in the child of a fork");
	if (getenv("WEIR_EMULATED") != NULL)
		cr_skip("qemu-user does not support threads in the child of a fork");
}

Test(fork, the_child_may_start_threads)
{
	struct other other = {.stand = stand_in_a_section};
	weir_var *var;

	skip_where_children_start_no_threads();
	var = variable(1);
	start(&other);
	in_child(start_a_thread, var);
	finish(&other);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* -- what other threads kept for themselves ---------------------------------------------------- */

static void stand_there_at_last(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	struct other *other = context;

	(void)error;
	cr_assert_eq(status, WEIR_OK);
	weir_read_release(read);
	(void)weiri_way_ask(other->second, WEIR_NO_DEADLINE);
	stand_there(other);
}

/* In a completion, and with a request for the way. */
static void stand_in_a_completion(struct other *other)
{
	cr_assert_eq(weir_var_start_wait(other->var, 0, stand_there_at_last, other, NULL, NULL), WEIR_OK);
}

static void note_it(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	(void)error;
	weir_read_release(read);
	*(bool *)context = status == WEIR_OK;
}

/* The completion runs before the call returns, since no other one is under way. */
static void *complete_in_a_thread(void *context)
{
	bool is_complete = false;

	if (weir_var_start_wait(context, 0, note_it, &is_complete, NULL, NULL) != WEIR_OK)
		return NULL;
	return is_complete ? context : NULL;
}

static int complete_in_the_record_of_another(void *context)
{
	const struct other *other = context;
	struct weir_reclaim_stats before = {WEIR_RECLAIM_STATS_INIT}, after = before;
	pthread_t thread;
	void *result = NULL;

	CHILD_CHECK(weiri_load_relaxed(&weiri_ways_asked) == 0);
	CHILD_CHECK(weir_reclaim_get_stats(&before) == WEIR_OK);
	CHILD_CHECK(pthread_create(&thread, NULL, complete_in_a_thread, other->var) == 0);
	CHILD_CHECK(pthread_join(thread, &result) == 0);
	CHILD_CHECK(result == other->var);
	CHILD_CHECK(weir_reclaim_get_stats(&after) == WEIR_OK && after.threads == before.threads);
	return 0;
}

Test(fork, a_new_thread_has_nothing_under_way_of_one_that_is_gone)
{
	struct other other = {.stand = stand_in_a_completion};

	skip_where_children_start_no_threads();
	other.var = variable(1);
	other.second = variable(1);
	start(&other);
	in_child(complete_in_the_record_of_another, &other);
	cr_expect_eq(weiri_load_relaxed(&weiri_ways_asked), 1u);
	finish(&other);
	cr_expect_eq(weiri_load_relaxed(&weiri_ways_asked), 0u);
	weir_var_destroy(other.var, NULL);
	weir_var_destroy(other.second, NULL);
	expect_nothing_left();
}

/* Stands like a thread that asks for the way, and has counted that in one of the two places only. */
static void stand_with_half_a_request(struct other *other)
{
	struct weiri_record *record = weiri_record_get();

	cr_assert_not_null(record);
	(void)weiri_fetch_add_relaxed(&record->own->ways_asked, 1u);
	stand_there(other);
	(void)weiri_fetch_sub_relaxed(&record->own->ways_asked, 1u);
}

static int end_the_request(void *var)
{
	CHILD_CHECK(weiri_load_relaxed(&weiri_ways_asked) == 1);
	weiri_way_free(var, weiri_record_mine->own);
	CHILD_CHECK(weiri_load_relaxed(&weiri_ways_asked) == 0);
	return 0;
}

Test(fork, the_child_counts_the_requests_of_its_own_thread_only)
{
	struct other other = {.stand = stand_with_half_a_request};
	weir_var *var = variable(1);
	struct weiri_own *asker = weiri_way_ask(var, WEIR_NO_DEADLINE);

	start(&other);
	in_child(end_the_request, var);
	weiri_way_free(var, asker);
	finish(&other);
	cr_expect_eq(weiri_load_relaxed(&weiri_ways_asked), 0u);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* -- a write that waits for memory ------------------------------------------------------------- */

struct waiting {
	struct weiri_retired retired;
	pid_t child; /* 0 in the child */
	int thread;  /* that waits */
	pthread_t waker;
};

static void *raise_the_budget(void *context)
{
	const struct waiting *waiting = context;
	uint64_t until = weir_deadline_in(patience_ns);

	while (!thread_is_asleep(waiting->thread) && weir_now_ns() < until)
		(void)sched_yield();
	weir_reclaim_set_budget(0);
	return NULL;
}

/* Called by collections of the write; those before it waits leave the object to the next. Both processes go on. */
static void fork_and_go_on(struct weiri_retired *object)
{
	struct waiting *waiting = (struct waiting *)object;

	if (weiri_load_relaxed(&weiri_record_mine->waits) == 0) {
		weiri_retired_init(object, 64, fork_and_go_on);
		weiri_retire(weiri_record_mine, object);
		return;
	}
	waiting->child = fork();
	if (waiting->child == 0)
		(void)alarm(CHILD_SECONDS);
	waiting->thread = gettid();
	if (pthread_create(&waiting->waker, NULL, raise_the_budget, waiting) != 0)
		abort();
}

static void leave_it(struct weiri_retired *object)
{
	(void)object;
}

/* It does not look again by itself: who makes room wakes it, and so must count it. */
Test(fork, a_write_that_waits_is_woken_in_the_child)
{
	static _Alignas(WEIRI_LINE) struct waiting waiting;
	static _Alignas(WEIRI_LINE) struct weiri_retired held;
	uint64_t look_again = weiri_reclaim_look_again_ns;
	struct weiri_record *record = weiri_record_get();
	struct weiri_slot *slot = weiri_slot_find(record);
	enum weir_status written;
	int status = 0;
	weir_var *var;

	skip_where_children_start_no_threads();
	var = variable(1);
	weiri_reclaim_look_again_ns = UINT64_C(1000000000000);
	weiri_slot_claim(slot, &held);
	weiri_retired_init(&held, LARGE, leave_it); /* so much that it is reported at once */
	weiri_retire(record, &held);
	weiri_retired_init(&waiting.retired, 64, fork_and_go_on);
	weiri_retire(record, &waiting.retired);
	weir_reclaim_set_budget(1);
	written = child_assign(var, 3);
	cr_assert_neq(waiting.thread, 0, "the write waited");
	cr_assert_eq(pthread_join(waiting.waker, NULL), 0);
	if (waiting.child == 0)
		_exit(written == WEIR_OK ? 0 : 1);
	cr_expect_eq(written, WEIR_OK);
	cr_assert_gt(waiting.child, 0);
	cr_assert_eq(waitpid(waiting.child, &status, 0), waiting.child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status %d", status);
	weiri_reclaim_look_again_ns = look_again;
	weiri_slot_clear(slot);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* -- a collection under way -------------------------------------------------------------------- */

struct pile {
	struct weiri_retired retired;
	struct other *collector;
};

static void pile_reclaim(struct weiri_retired *object)
{
	struct pile *pile = (struct pile *)object;

	stand_there(pile->collector);
	free(pile);
}

static void stand_in_a_collection(struct other *other)
{
	struct weiri_record *record = weiri_record_get();
	void *memory = NULL;
	struct pile *pile;

	cr_assert_not_null(record);
	cr_assert_eq(posix_memalign(&memory, 64, sizeof(*pile)), 0);
	pile = memory;
	pile->collector = other;
	weiri_retired_init(&pile->retired, LARGE, pile_reclaim);
	weiri_retire(record, &pile->retired);
	(void)weir_reclaim_flush(0);
}

static int collect_beside_nobody(void *context)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	CHILD_CHECK(weir_reclaim_get_stats(&stats) == WEIR_OK && stats.retired_bytes == 0);
	CHILD_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK);
	weir_reclaim_set_budget(LARGE / 2);
	return use_a_variable(context);
}

Test(fork, a_collection_of_a_thread_that_is_gone_is_over)
{
	struct other other = {.stand = stand_in_a_collection};
	weir_var *var = variable(1);

	start(&other);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED, "in the parent the collection is not over");
	in_child(collect_beside_nobody, var);
	finish(&other);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* Stands like a collector that has taken the stacks, and has not yet noted how much was on them. */
static void stand_with_a_taken_stack(struct other *other)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_retired *taken;
	uint32_t stack;
	struct pile *pile;
	void *memory = NULL;

	cr_assert_not_null(record);
	cr_assert_eq(posix_memalign(&memory, 64, sizeof(*pile)), 0);
	pile = memory;
	pile->collector = other;
	weiri_retired_init(&pile->retired, LARGE, pile_reclaim);
	stack = weiri_load_relaxed(&record->stack);
	weiri_retire(record, &pile->retired);
	(void)weiri_fetch_add_relaxed(&record->collecting, 1u);
	taken = weiri_exchange_acq_rel(&record->retired[stack], (struct weiri_retired *)NULL);
	cr_assert_eq(taken, &pile->retired);
	stand_there(other);
	weiri_store_release(&record->retired[stack], taken);
	(void)weiri_fetch_add_relaxed(&record->collecting, 1u);
}

Test(fork, what_a_thread_that_is_gone_had_just_taken_does_not_count)
{
	struct other other = {.stand = stand_with_a_taken_stack};
	weir_var *var = variable(1);

	start(&other);
	in_child(collect_beside_nobody, var);
	finish(&other);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

static int flush_and_see_nothing(void *context)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	(void)context;
	CHILD_CHECK(weir_reclaim_get_stats(&stats) == WEIR_OK && stats.retired_bytes != 0);
	CHILD_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK);
	CHILD_CHECK(weir_reclaim_get_stats(&stats) == WEIR_OK && stats.retired_bytes == 0);
	return 0;
}

Test(fork, what_was_retired_before_is_counted_once)
{
	weir_var *var = variable(1);

	for (int64_t i = 0; i < 10; i++)
		assign(var, i);
	in_child(flush_and_see_nothing, NULL);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* -- rings and queues -------------------------------------------------------------------------- */

static int use_a_ring(void *context)
{
	weir_ring *ring = context;
	uint64_t value = 0;

	CHILD_CHECK(weir_ring_try_dequeue(ring, &value) == WEIR_OK && value == 7);
	CHILD_CHECK(weir_ring_try_enqueue(ring, 8) == WEIR_OK);
	CHILD_CHECK(weir_ring_try_dequeue(ring, &value) == WEIR_OK && value == 8);
	CHILD_CHECK(weir_ring_try_dequeue(ring, &value) != WEIR_OK);
	return 0;
}

Test(fork, rings_come_along)
{
	weir_ring *ring = NULL;
	uint64_t value = 0;

	cr_assert_eq(weir_ring_create(4, NULL, &ring, NULL), WEIR_OK);
	cr_assert_eq(weir_ring_try_enqueue(ring, 7), WEIR_OK);
	in_child(use_a_ring, ring);
	cr_expect_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
	cr_expect_eq(value, 7);
	weir_ring_destroy(ring, NULL);
}

static int items[3];

static int use_a_queue(void *context)
{
	weir_queue *queue = context;
	void *item = NULL;

	CHILD_CHECK(weir_queue_dequeue(queue, &item, weir_deadline_in(patience_ns), NULL, NULL) == WEIR_OK &&
	            item == &items[0]);
	CHILD_CHECK(weir_queue_dequeue(queue, &item, weir_deadline_in(1000000), NULL, NULL) == WEIR_DEADLINE_EXCEEDED);
	CHILD_CHECK(weir_queue_enqueue(queue, &items[1], weir_deadline_in(patience_ns), NULL, NULL) == WEIR_OK);
	CHILD_CHECK(weir_queue_enqueue(queue, &items[2], weir_deadline_in(patience_ns), NULL, NULL) == WEIR_OK);
	CHILD_CHECK(weir_queue_enqueue(queue, &items[0], weir_deadline_in(1000000), NULL, NULL) == WEIR_DEADLINE_EXCEEDED);
	CHILD_CHECK(weir_queue_dequeue(queue, &item, weir_deadline_in(patience_ns), NULL, NULL) == WEIR_OK &&
	            item == &items[1]);
	CHILD_CHECK(weir_queue_dequeue(queue, &item, weir_deadline_in(patience_ns), NULL, NULL) == WEIR_OK &&
	            item == &items[2]);
	(void)weir_queue_destroy(queue, NULL);
	return 0;
}

Test(fork, queues_in_which_nobody_waited_come_along)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 2};
	struct other other = {.stand = stand_in_a_section};
	weir_queue *queue = NULL;
	void *item = NULL;

	cr_assert_eq(weir_queue_create(&options, &queue, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_enqueue(queue, &items[0], WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	start(&other);
	in_child(use_a_queue, queue);
	finish(&other);
	cr_expect_eq(weir_queue_dequeue(queue, &item, weir_deadline_in(patience_ns), NULL, NULL), WEIR_OK);
	cr_expect_eq(item, &items[0]);
	(void)weir_queue_destroy(queue, NULL);
	expect_nothing_left();
}

/* Makes a queue, dumps all queues, and destroys its own. Returns 0 if a call failed. */
static int make_and_dump(int null)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 2, .name = "passing"};
	weir_queue *queue;

	if (weir_queue_create(&options, &queue, NULL) != WEIR_OK)
		return 0;
	return weir_dump(null) == WEIR_OK && weir_queue_destroy(queue, NULL) == WEIR_OK;
}

struct dumping {
	int null;
	_Atomic(uint32_t) begun, over;
	int failed;
};

static void *dump_until_over(void *context)
{
	struct dumping *dumping = context;

	while (weiri_load_acquire(&dumping->over) == 0) {
		dumping->failed |= !make_and_dump(dumping->null);
		set(&dumping->begun);
	}
	return NULL;
}

static int dump_here(void *context)
{
	struct dumping *dumping = context;

	for (int i = 0; i < 20; i++)
		CHILD_CHECK(make_and_dump(dumping->null));
	return 0;
}

/* The other thread may stand anywhere: in the registry, while it holds a queue, or in between. */
Test(fork, the_registry_of_queues_comes_along)
{
	struct dumping dumping = {.null = open("/dev/null", O_WRONLY | O_CLOEXEC)};
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, dump_until_over, &dumping), 0);
	wait_for(&dumping.begun);
	for (int i = 0; i < 10; i++)
		in_child(dump_here, &dumping);
	set(&dumping.over);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(dumping.failed, 0);
	(void)close(dumping.null);
	expect_nothing_left();
}
