/*
 * test_read_section.c - sections that a program opens: what a peek or a snapshot shows and for how
 * long, nesting, other calls in a section, threads that end or fork in one, bad input.
 */
#include "read_section_kit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/queue.h>
#include <weir/stall.h>
#include <weir/txn.h>
#include <weir/var_cache.h>

#include "reclaim/admit.h"
#include "reclaim/eras.h"
#include "sandbox.h"
#include "var/install.h"

Test(read_section, shows_the_newest_version)
{
	weir_var *var = variable(10);
	weir_read_section section = begun();

	for (int64_t i = 0; i < 100; i++) {
		(void)expect_peek(&section, var, 10 + i, (uint64_t)i + 1);
		assign(var, 11 + i);
	}
	end(&section);
	destroy(var);
}

/* What was shown stays, however many versions come and go, also when the variable is gone. */
Test(read_section, shows_what_is_valid_until_the_end)
{
	weir_var *var = variable(0);
	weir_read_section section = begun();
	const weir_read *first = expect_peek(&section, var, 0, 1), *last;

	for (int64_t i = 1; i <= 1000; i++)
		assign(var, i);
	last = expect_peek(&section, var, 1000, 1001);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	(void)weiri_era_begin();
	cr_expect_eq(value_of(first), 0);
	cr_expect_eq(value_of(last), 1000);
	end(&section);
	expect_nothing_left();
}

/* A tensor that was retained in a section outlives it. */
Test(read_section, shows_a_tensor_that_can_be_retained)
{
	weir_var *var = variable(7);
	weir_read_section section = begun();
	weir_tensor *kept = weir_tensor_retain(expect_peek(&section, var, 7, 1)->tensor);

	assign(var, 8);
	end(&section);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
	cr_expect_eq(*(const int64_t *)weir_tensor_data(kept), 7);
	weir_tensor_release(kept);
	destroy(var);
}

/* A copy of what a peek shows may be released: it holds nothing. */
Test(read_section, shows_nothing_that_must_be_released)
{
	weir_var *var = variable(7);
	weir_read_section section = begun();
	weir_read copy = *expect_peek(&section, var, 7, 1);

	weir_read_release(&copy);
	(void)expect_peek(&section, var, 7, 1);
	end(&section);
	destroy(var);
}

Test(read_section, shows_nothing_before_there_is_a_value)
{
	weir_var *var = empty_variable("empty");
	weir_read_section section = begun();

	cr_expect_null(weir_read_section_peek(&section, var));
	cr_expect_null(weir_read_section_find(&section, var));
	assign(var, 5);
	(void)expect_peek(&section, var, 5, 1);
	end(&section);
	destroy(var);
}

/* Puts a version with this stamp at the head, as a writer that is stopped leaves it. */
static void put_at_head(weir_var *var, int64_t value, uint64_t stamp)
{
	struct weiri_version *version = weiri_version_of_tensor(weiri_record_get(), var, number(value));

	cr_assert_not_null(version);
	weiri_version_set_base(version, weiri_load_relaxed(&var->head));
	weiri_store_relaxed(&version->stamp, stamp);
	weiri_store_release(&var->head, version);
}

Test(read_section, shows_what_is_below_an_aborted_version)
{
	weir_var *var = variable(3);
	weir_read_section section = begun();

	put_at_head(var, 9, WEIRI_STAMP_ABORTED);
	(void)expect_peek(&section, var, 3, 1);
	end(&section);
	assign(var, 4);
	destroy(var);
}

Test(read_section, stamps_a_version_that_it_shows)
{
	weir_var *var = variable(3);
	weir_read_section section = begun();
	struct weiri_version *first = weiri_load_relaxed(&var->head);

	put_at_head(var, 9, WEIRI_STAMP_NONE);
	(void)expect_peek(&section, var, 9, 2);
	cr_expect(
		weiri_stamp_is_committed(weiri_load_relaxed(&((struct weiri_version *)weiri_load_relaxed(&var->head))->stamp)));
	end(&section);
	weiri_retire(weiri_record_mine, &first->retired); /* what the writer would do next */
	destroy(var);
}

/* A collection has begun since the section's last read: the read extends the reservation. */
Test(read_section, reserves_the_era_of_what_it_shows)
{
	weir_var *var = variable(1);
	weir_read_section section = begun();
	uint64_t before = weiri_load_relaxed(&weiri_record_mine->hi);

	(void)weir_read_section_peek(&section, var);
	cr_expect_eq(weiri_load_relaxed(&weiri_record_mine->hi), before);
	(void)weiri_era_begin();
	assign(var, 2);
	(void)weir_read_section_peek(&section, var);
	cr_expect_geq(weiri_load_relaxed(&weiri_record_mine->hi), before + 1);
	(void)expect_peek(&section, var, 2, 2);
	end(&section);
	destroy(var);
}

/* -- snapshots --------------------------------------------------------------------------------- */

enum { MANY = 100 };

/* Each variable at another version. What is shown stays, also when the variables are gone. */
Test(read_section, shows_several_variables_until_the_end)
{
	weir_var *vars[MANY];
	const weir_read *reads[MANY];
	weir_read_section section;

	for (size_t i = 0; i < MANY; i++) {
		vars[i] = variable((int64_t)i);
		for (size_t more = 0; more < i % 3; more++)
			assign(vars[i], (int64_t)i);
	}
	section = begun();
	cr_assert_eq(weir_read_section_snapshot(&section, vars, MANY, reads, NULL), WEIR_OK);
	for (size_t i = 0; i < MANY; i++) {
		cr_expect_eq(expect_peek(&section, vars[i], (int64_t)i, 1 + i % 3), reads[i], "it is what a peek shows");
		assign(vars[i], -1);
		cr_assert_eq(weir_var_destroy(vars[i], NULL), WEIR_OK);
	}
	(void)weiri_era_begin();
	for (size_t i = 0; i < MANY; i++) {
		cr_expect_eq(value_of(reads[i]), (int64_t)i);
		cr_expect_eq(reads[i]->version, 1 + i % 3);
	}
	end(&section);
	expect_nothing_left();
}

Test(read_section, shows_a_variable_twice_and_none)
{
	weir_var *var = variable(7), *vars[] = {var, var};
	weir_read_section section = begun();
	const weir_read *reads[2];

	cr_assert_eq(weir_read_section_snapshot(&section, vars, 2, reads, NULL), WEIR_OK);
	cr_expect(reads[0] == reads[1] && value_of(reads[0]) == 7);
	cr_expect_eq(weir_read_section_snapshot(&section, vars, 0, reads, NULL), WEIR_OK);
	cr_expect_eq(weir_read_section_snapshot(&section, NULL, 0, NULL, NULL), WEIR_OK);
	end(&section);
	destroy(var);
}

/*
 * A version that was committed before the call is newer than the clock: the snapshot advances that, and so do the next
 * ones at once. In between it finds an aborted version, and one without a stamp.
 */
Test(read_section, shows_several_variables_after_a_commit)
{
	weir_var *one = variable(0), *other = variable(0);
	weir_var *const both[] = {one, other};
	weir_read_section section = begun();
	struct weiri_version *first;

	for (int64_t i = 1; i <= 40; i++) {
		cr_assert_eq(commit_all(both, 2, (uint64_t)i, i, NULL), WEIR_OK);
		for (int64_t again = 0; again < i % 20; again++)
			expect_snapshot(&section, one, other, i);
	}
	put_at_head(one, 99, WEIRI_STAMP_ABORTED);
	expect_snapshot(&section, one, other, 40);
	assign(one, 41);
	/* Afterwards no snapshot advances the clock at once. It would stamp what it finds with a later instant than its own. */
	for (int again = 0; again < 20; again++)
		expect_snapshot(&section, one, one, 41);
	first = weiri_load_relaxed(&other->head);
	put_at_head(other, 41, WEIRI_STAMP_NONE);
	expect_snapshot(&section, one, other, 41);
	weiri_retire(weiri_record_mine, &first->retired); /* what the writer would do next */
	end(&section);
	cr_assert_eq(weir_var_destroy(other, NULL), WEIR_OK);
	destroy(one);
}

/*
 * A collection has begun since the section's last read: the snapshot extends the reservation, also where it includes
 * what it finds at once.
 */
Test(read_section, reserves_the_era_of_several_variables)
{
	weir_var *var = variable(1);
	weir_read_section section = begun();
	uint64_t before = weiri_load_relaxed(&weiri_record_mine->hi);

	expect_snapshot(&section, var, var, 1);
	cr_expect_eq(weiri_load_relaxed(&weiri_record_mine->hi), before);
	assign(var, 2);
	weiri_clock_advance(weiri_load_seq_cst(&weiri_clock));
	before = weiri_load_relaxed(&weiri_record_mine->hi);
	(void)weiri_era_begin();
	expect_snapshot(&section, var, var, 2);
	cr_expect_geq(weiri_load_relaxed(&weiri_record_mine->hi), before + 1);
	end(&section);
	destroy(var);
}

Test(read_section, refuses_bad_snapshots)
{
	weir_var *vars[] = {variable(1), empty_variable("weights")}, *const missing[] = {vars[0], NULL};
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	weir_error error;

	expect_no_snapshot(&section, vars, WEIR_FAILED_PRECONDITION, "the section is not open on this thread");
	section = begun();
	expect_no_snapshot(NULL, vars, WEIR_INVALID_ARGUMENT, "section is NULL");
	expect_no_snapshot(&section, NULL, WEIR_INVALID_ARGUMENT, "vars is NULL");
	expect_no_snapshot(&section, missing, WEIR_INVALID_ARGUMENT, "variable 1 is NULL");
	expect_no_snapshot(&section, vars, WEIR_FAILED_PRECONDITION, "\"weights\" is not initialized");
	cr_expect_eq(weir_read_section_snapshot(&section, vars, 2, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "reads is NULL"));
	assign(vars[1], 1);
	expect_snapshot(&section, vars[0], vars[1], 1);
	end(&section);
	expect_no_snapshot(&section, vars, WEIR_FAILED_PRECONDITION, "the section is not open on this thread");
	cr_assert_eq(weir_var_destroy(vars[1], NULL), WEIR_OK);
	destroy(vars[0]);
}

/* -- nesting ----------------------------------------------------------------------------------- */

Test(read_section, nests)
{
	weir_var *var = variable(1);
	weir_read_section outer = begun(), inner;
	const weir_read *shown = expect_peek(&outer, var, 1, 1);

	for (int64_t i = 2; i < 1000; i++) {
		inner = begun();
		assign(var, i);
		(void)expect_peek(&inner, var, i, (uint64_t)i);
		expect_snapshot(&inner, var, var, i);
		expect_snapshot(&outer, var, var, i);
		end(&inner);
		cr_expect_eq(value_of(shown), 1);
	}
	end(&outer);
	cr_expect_eq(weiri_load_relaxed(&weiri_record_mine->lo), 0);
	destroy(var);
}

/* Handles, caches and snapshots that were taken in a section outlive it. */
Test(read_section, is_outlived_by_handles)
{
	weir_var *var = variable(1);
	weir_read_section section = begun();
	weir_var_cache cache;
	weir_read read, snapshot;

	weir_var_cache_init(&cache, var);
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_assert_eq(weir_var_snapshot(&var, 1, &snapshot, NULL), WEIR_OK);
	cr_assert_not_null(weir_var_cache_read(&cache));
	assign(var, 2);
	end(&section);
	for (int i = 0; i < 3; i++)
		(void)weir_reclaim_flush(0);
	cr_expect_eq(value_of(&read) + value_of(&snapshot) + value_of(&cache.read), 3);
	weir_read_release(&read);
	weir_read_release(&snapshot);
	weir_var_cache_release(&cache);
	destroy(var);
}

Test(read_section, ends_in_the_reverse_order)
{
	weir_var *var = variable(1);
	weir_read_section outer = begun(), inner = begun();

	cr_expect_eq(weir_read_section_end(&outer), WEIR_FAILED_PRECONDITION);
	(void)expect_peek(&outer, var, 1, 1);
	(void)expect_peek(&inner, var, 1, 1);
	end(&inner);
	end(&outer);
	destroy(var);
}

/* A section of the library in which an allocator reads: the section of the library goes on. */
static void *allocate_and_read(void *context, size_t size, size_t alignment)
{
	weir_read_section section = begun();

	(void)weir_read_section_peek(&section, *(weir_var **)context);
	end(&section);
	return failing_allocate(&variables_state, size, alignment);
}

static void release_and_read(void *context, void *memory, size_t size, size_t alignment)
{
	weir_read_section section = begun();

	(void)context;
	end(&section);
	failing_release(&variables_state, memory, size, alignment);
}

Test(read_section, may_be_opened_by_an_allocator)
{
	weir_var *read = variable(1), *var;
	weir_allocator allocator = {allocate_and_read, release_and_read, &read};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = &allocator};
	struct weir_commit_part part = {.expected = 0};
	weir_read_section section = begun();

	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	part.var = var;
	for (int64_t i = 1; i <= 600; i++) {
		part.value = number(i);
		cr_assert_eq(weir_var_commit(&part, 1, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		part.expected++;
		weir_tensor_release(part.value);
	}
	(void)expect_peek(&section, var, 600, 600);
	end(&section);
	cr_expect_eq(weiri_load_relaxed(&weiri_record_mine->lo), 0);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	destroy(read);
}

/* -- signal handlers --------------------------------------------------------------------------- */

static struct {
	weir_var *var;
	const weir_read_section *section; /* of the interrupted thread */
	_Atomic(uint32_t) calls;
} handler;

static void read_in_handler(int number_of_signal)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	const weir_read *own, *shown, *other;

	(void)number_of_signal;
	if (weir_read_section_begin(&section) != WEIR_OK)
		_exit(3);
	own = weir_read_section_peek(&section, handler.var);
	if (weir_read_section_snapshot(&section, &handler.var, 1, &shown, NULL) != WEIR_OK || shown != own)
		_exit(6);
	other = weir_read_section_peek(handler.section, handler.var);
	if (own == NULL || (other != NULL && other->version > own->version))
		_exit(4);
	if (weir_read_section_end(&section) != WEIR_OK)
		_exit(5);
	(void)weiri_fetch_add_relaxed(&handler.calls, 1u);
}

static void *send_signals(void *thread)
{
	for (uint32_t i = 0; i < 500; i++) {
		cr_assert_eq(pthread_kill(*(pthread_t *)thread, SIGUSR1), 0);
		reach(&handler.calls, i + 1);
	}
	return NULL;
}

/* Handlers that read, also in the section that they interrupt, change nothing for it. */
Test(read_section, is_interrupted_by_handlers_that_read)
{
	struct sigaction act = {.sa_handler = read_in_handler, .sa_flags = SA_RESTART}, before;
	weir_var *var = variable(0);
	weir_read_section section = begun();
	pthread_t self = pthread_self(), sender;

	handler.var = var;
	handler.section = &section;
	cr_assert_eq(sigaction(SIGUSR1, &act, &before), 0);
	cr_assert_eq(pthread_create(&sender, NULL, send_signals, &self), 0);
	for (int64_t i = 1; weiri_load_relaxed(&handler.calls) < 500; i++) {
		const weir_read *shown = weir_read_section_peek(&section, var);

		cr_assert_eq(value_of(shown), i - 1);
		assign(var, i);
		cr_assert_eq(value_of(shown), i - 1);
		end(&section);
		cr_assert_eq(weir_read_section_begin(&section), WEIR_OK);
	}
	cr_assert_eq(pthread_join(sender, NULL), 0);
	cr_assert_eq(sigaction(SIGUSR1, &before, NULL), 0);
	end(&section);
	cr_expect_eq(weiri_load_relaxed(&weiri_record_mine->read_sections), 0);
	destroy(var);
}

/* -- other calls in a section ------------------------------------------------------------------ */

static enum weir_status add_in_a_section(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	weir_read_section section = begun();

	(void)error;
	cr_expect_geq(value_of(weir_read_section_peek(&section, context)), value_of(current));
	end(&section);
	*next = number(value_of(current) + 1);
	return WEIR_OK;
}

static enum weir_status assign_in_a_section(void *context, weir_txn *txn, weir_error *error)
{
	weir_read_section section = begun();
	weir_tensor *tensor = number(value_of(weir_read_section_peek(&section, context)) + 1);
	enum weir_status status = weir_txn_assign(txn, context, tensor, error);

	weir_tensor_release(tensor);
	end(&section);
	return status;
}

Test(read_section, lets_every_kind_of_write_through)
{
	weir_var *var = variable(0), *other = variable(0);
	weir_var *const both[] = {var, other};
	weir_read_section section = begun();
	const weir_read *first = expect_peek(&section, var, 0, 1);
	weir_tensor *one = number(1);

	for (int64_t i = 0; i < 300; i++) {
		cr_assert_eq(weir_var_update(var, add_in_a_section, var, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		cr_assert_eq(weir_txn_run(NULL, assign_in_a_section, var, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	}
	(void)expect_peek(&section, var, 900, 901);
	cr_expect_eq(commit_all(both, 2, 1, 5, NULL), WEIR_ABORTED);
	(void)expect_peek(&section, var, 900, 901);
	cr_expect_eq(value_of(first), 0);
	weir_tensor_release(one);
	end(&section);
	cr_assert_eq(weir_var_destroy(other, NULL), WEIR_OK);
	destroy(var);
}

/* What exceeds the budget is held by the section of the thread that writes: it would wait for itself. */
Test(read_section, makes_writes_over_the_budget_fail)
{
	weir_var *var = variable(0);
	weir_read_section section = begun();
	weir_tensor *tensor = number(1);
	enum weir_status status = WEIR_OK;
	weir_error error;
	int64_t written = 0;

	weir_reclaim_set_budget(100000);
	while (status == WEIR_OK) {
		cr_assert_lt(written, 10000);
		status = weir_var_assign(var, tensor, WEIR_NO_DEADLINE, NULL, &error);
		written += status == WEIR_OK;
	}
	cr_expect_eq(status, WEIR_RESOURCE_EXHAUSTED);
	cr_expect_str_eq(
		error.message,
		"variable \"v\": retired versions that readers still hold exceed the budget of 100000 bytes; this "
		"thread has a read section open, so the write did not wait; weir_stalls_visit() names these readers");
	cr_expect_gt(written, 0);
	end(&section);
	cr_expect_eq(weir_var_assign(var, tensor, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_reclaim_set_budget(0);
	weir_tensor_release(tensor);
	destroy(var);
}

Test(read_section, refuses_a_flush)
{
	weir_var *var = variable(0);
	weir_read_section section = begun();

	assign(var, 1);
	cr_expect_eq(weir_reclaim_flush(WEIR_NO_DEADLINE), WEIR_FAILED_PRECONDITION);
	end(&section);
	cr_expect_eq(weir_reclaim_flush(WEIR_NO_DEADLINE), WEIR_OK);
	destroy(var);
}

/* A call that sleeps sleeps with the section open. */
Test(read_section, stays_open_while_the_thread_waits)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1};
	weir_var *var = variable(4);
	weir_read_section section = begun();
	const weir_read *shown = expect_peek(&section, var, 4, 1);
	weir_queue *queue;
	void *item;

	cr_assert_eq(weir_queue_create(&options, &queue, NULL), WEIR_OK);
	assign(var, 5);
	cr_expect_eq(weir_queue_dequeue(queue, &item, weir_deadline_in(5000000), NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(value_of(shown), 4);
	cr_assert_eq(weir_queue_destroy(queue, NULL), WEIR_OK);
	end(&section);
	destroy(var);
}

/* -- other threads ----------------------------------------------------------------------------- */

struct other {
	weir_var *var;
	weir_read_section section;
	_Atomic(uint32_t) state; /* 1: the section is open; 2: it may end */
	uint32_t thread;
	bool leaves_it_open;
};

static void *read_until_told(void *context)
{
	struct other *other = context;

	other->section = begun();
	cr_assert_not_null(weir_read_section_peek(&other->section, other->var));
	other->thread = weiri_record_thread(weiri_record_mine);
	weiri_store_release(&other->state, 1u);
	reach(&other->state, 2);
	if (!other->leaves_it_open)
		end(&other->section);
	return NULL;
}

static void start(struct other *other, pthread_t *thread)
{
	cr_assert_eq(pthread_create(thread, NULL, read_until_told, other), 0);
	reach(&other->state, 1);
}

static void finish(struct other *other, pthread_t thread)
{
	weiri_store_release(&other->state, 2u);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* A thread that is stopped in a section pins what it can have read, and no version of later eras. */
Test(read_section, pins_only_what_lived_when_its_thread_was_stopped)
{
	struct other other = {.var = variable(1)};
	pthread_t thread;

	start(&other, &thread);
	for (int64_t i = 2; i <= 5000; i++)
		assign(other.var, i);
	cr_expect_lt(live_versions(), UINT64_C(1000), "collections free the rest");
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	finish(&other, thread);
	destroy(other.var);
}

/* So it lets writers replace many times the budget, without a wait. */
Test(read_section, of_a_stopped_thread_keeps_no_writer_out)
{
	struct other other = {.var = variable(1)};
	weir_tensor *tensor = number(2);
	pthread_t thread;

	weir_reclaim_set_budget(1 << 20);
	start(&other, &thread);
	for (int i = 0; i < 20000; i++)
		cr_assert_eq(weir_var_assign(other.var, tensor, 0, NULL, NULL), WEIR_OK, "write %d", i);
	finish(&other, thread);
	weir_reclaim_set_budget(0);
	weir_tensor_release(tensor);
	destroy(other.var);
}

/* A thread ends with its section open: the section ends too. */
Test(read_section, ends_with_its_thread)
{
	struct other other = {.var = variable(1), .leaves_it_open = true};
	pthread_t thread;

	start(&other, &thread);
	assign(other.var, 2);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	finish(&other, thread);
	cr_expect_eq(weir_read_section_end(&other.section), WEIR_FAILED_PRECONDITION, "it is of no thread");
	cr_expect_null(weir_read_section_find(&other.section, other.var));
	for (const struct weiri_record *record = weiri_load_acquire(&weiri_records); record != NULL; record = record->next)
		cr_expect_eq(weiri_load_relaxed(&record->read_sections), 0);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_OK);
	destroy(other.var);
}

Test(read_section, of_another_thread_cannot_be_ended)
{
	struct other other = {.var = variable(1)};
	pthread_t thread;

	start(&other, &thread);
	(void)weiri_record_get();
	cr_expect_eq(weir_read_section_end(&other.section), WEIR_FAILED_PRECONDITION);
	cr_expect_null(weir_read_section_find(&other.section, other.var));
	expect_no_snapshot(&other.section, (weir_var *const[]){other.var, other.var}, WEIR_FAILED_PRECONDITION,
	                   "the section is not open on this thread");
	finish(&other, thread);
	destroy(other.var);
}

static size_t sections_open;

static void see(void *context, const struct weir_stall *stall)
{
	const struct other *other = context;

	if (stall->kind != WEIR_STALL_SECTION || stall->thread != other->thread)
		return;
	cr_expect_eq(stall->read_sections, 1);
	sections_open++;
}

/* A section that lasts is reported as one that a program opened. */
Test(read_section, is_a_stall_if_it_lasts)
{
	struct other other = {.var = variable(1)};
	uint64_t until = weir_deadline_in(variables_patience_ns);
	pthread_t thread;

	start(&other, &thread);
	for (int64_t i = 2; sections_open == 0; i++) {
		cr_assert_lt(weir_now_ns(), until);
		assign(other.var, i);
		cr_assert_eq(weir_stalls_visit(1000000, see, &other, NULL), WEIR_OK);
	}
	finish(&other, thread);
	destroy(other.var);
}

static void ignore(void *context, const struct weir_stall *stall)
{
	(void)context, (void)stall;
}

struct writer {
	weir_var *var;
	enum weir_status status;
};

static void *write_over_the_budget(void *context)
{
	struct writer *writer = context;
	weir_tensor *tensor = number(3);

	writer->status = weir_var_assign(writer->var, tensor, WEIR_NO_DEADLINE, NULL, NULL);
	weir_tensor_release(tensor);
	return NULL;
}

/*
 * The end of a section wakes a writer that waits for memory: the writer does not look again by
 * itself.
 */
static void wake_a_writer(weir_read_section section)
{
	struct writer writer = {.var = variable(1)};
	uint64_t look_again = weiri_reclaim_look_again_ns;
	pthread_t thread;

	weiri_reclaim_look_again_ns = UINT64_C(1000000000000);
	(void)expect_peek(&section, writer.var, 1, 1);
	for (int i = 0; i < 100; i++) /* more than a thread that ended before has not reported */
		assign(writer.var, 2);
	cr_assert_eq(weir_stalls_visit(0, ignore, NULL, NULL), WEIR_OK); /* collects, so the bytes are reported */
	weir_reclaim_set_budget(1);
	cr_assert_eq(pthread_create(&thread, NULL, write_over_the_budget, &writer), 0);
	reach(&weiri_record_mine->poke, 1);
	end(&section);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(writer.status, WEIR_OK);
	weir_reclaim_set_budget(0);
	weiri_reclaim_look_again_ns = look_again;
	expect_open(0);
	destroy(writer.var);
}

Test(read_section, wakes_writers_when_it_ends)
{
	wake_a_writer(begun());
}

Test(read_section, wakes_writers_when_it_began_again)
{
	weir_read_section section = begun();

	end(&section);
	begin(&section);
	wake_a_writer(section);
}

/* -- fork -------------------------------------------------------------------------------------- */

static int read_in_child(weir_read_section *section, weir_var *var, const weir_read *shown)
{
	const weir_read *now;
	weir_tensor *tensor;

	if (value_of(shown) != 1)
		return 2;
	if (weir_tensor_scalar_i64(3, &tensor) != WEIR_OK ||
	    weir_var_assign(var, tensor, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		return 3;
	weir_tensor_release(tensor);
	now = weir_read_section_peek(section, var);
	if (now == NULL || value_of(now) != 3 || value_of(shown) != 1)
		return 4;
	if (weir_read_section_end(section) != WEIR_OK)
		return 5;
	return weir_reclaim_flush(0) == WEIR_OK ? 0 : 6;
}

/* The child has the section of the thread that forked, and not that of another thread. */
Test(read_section, comes_along_in_a_fork)
{
	weir_var *var = variable(1);
	struct other other = {.var = var};
	weir_read_section section = begun();
	const weir_read *shown = expect_peek(&section, var, 1, 1);
	pthread_t thread;
	pid_t child;
	int status;

	start(&other, &thread);
	assign(var, 2);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0)
		_exit(read_in_child(&section, var, shown));
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
	(void)expect_peek(&section, var, 2, 2);
	cr_expect_eq(value_of(shown), 1);
	end(&section);
	finish(&other, thread);
	destroy(var);
}

/* -- bad input --------------------------------------------------------------------------------- */

Test(read_section, refuses_bad_calls)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT}, old = {0}, closed;
	weir_var *var = variable(1);

	cr_expect_eq(weir_read_section_begin(NULL), WEIR_INVALID_ARGUMENT);
	old.struct_size = sizeof(old) - 1;
	cr_expect_eq(weir_read_section_begin(&old), WEIR_INVALID_ARGUMENT);
	old.struct_size = sizeof(old) + 1;
	cr_expect_eq(weir_read_section_begin(&old), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_read_section_end(NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_read_section_end(&section), WEIR_FAILED_PRECONDITION);
	cr_assert_eq(weir_read_section_begin(&section), WEIR_OK);
	cr_expect_eq(weir_read_section_begin(&section), WEIR_FAILED_PRECONDITION);
	cr_expect_null(weir_read_section_peek(&section, NULL));
	cr_expect_null(weir_read_section_find(&section, NULL));
	cr_expect_null(weir_read_section_find(NULL, var));
	end(&section);
	closed = section;
	cr_expect_eq(weir_read_section_end(&closed), WEIR_FAILED_PRECONDITION);
	cr_expect_null(weir_read_section_peek(&section, var), "it has ended");
	cr_assert_eq(weir_read_section_begin(&section), WEIR_OK);
	(void)expect_peek(&section, var, 1, 1);
	end(&section);
	destroy(var);
}
