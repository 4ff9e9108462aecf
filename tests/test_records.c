/*
 * test_records.c - the records of threads that end without giving them up: because no key of
 * thread-specific data was left for Weir, or because the destructor of another key uses Weir in
 * each round. Each test runs in a child, whose process has not used Weir yet.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/futex.h"
#include "base/thread.h"
#include "reclaim/section.h"
#include "under_tsan.h"

enum { IN_A_ROW = UNDER_TSAN ? 500 : 5000 };
enum { STANDING = 40, LEAST = 16, MAKERS = 8 };

static const uint64_t patience_ns = UINT64_C(30000000000);

/* Runs a test in a child, because the process may be broken afterwards. */
static void expect_in_child(int (*body)(void))
{
	int status = 0;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0)
		_exit(body());
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %d", status);
}

static int say(const char *what, size_t found, size_t most)
{
	(void)fprintf(stderr, "%s: %zu, expected at most %zu\n", what, found, most);
	return 1;
}

static size_t records(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	return weir_reclaim_get_stats(&stats) == WEIR_OK ? (size_t)stats.threads : 0;
}

static void take_all_keys(void)
{
	pthread_key_t key;

	while (pthread_key_create(&key, NULL) == 0)
		;
}

static void *use_weir(void *context)
{
	(void)context;
	(void)weir_reclaim_prepare_thread();
	return NULL;
}

/* As in a thread whose call of pthread_kill() has just failed because the target has ended. */
static void *use_weir_after_a_failure(void *context)
{
	errno = ESRCH;
	return use_weir(context);
}

static int run_in_a_row(void *(*body)(void *), int count)
{
	for (int i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, body, NULL) != 0 || pthread_join(thread, NULL) != 0)
			return 0;
	}
	return 1;
}

/* -- few records ------------------------------------------------------------------------------- */

static int without_a_key(void)
{
	take_all_keys();
	if (!run_in_a_row(use_weir, IN_A_ROW))
		return 2;
	return records() <= LEAST ? 0 : say("records of one thread at a time", records(), LEAST);
}

Test(records, of_threads_in_a_row_are_few_where_all_keys_are_taken)
{
	expect_in_child(without_a_key);
}

static pthread_key_t others;

/*
 * The destructor of another library: it uses Weir, and runs again in the next round of destructors.
 */
static void use_weir_and_come_again(void *value)
{
	(void)weir_reclaim_prepare_thread();
	(void)pthread_setspecific(others, value);
}

static void *leave_it_to_a_destructor(void *context)
{
	(void)pthread_setspecific(others, &others);
	return use_weir(context);
}

static int with_a_destructor_of_each_round(void)
{
	/*
	 * In each round, the last one included, the destructor of a later key comes after that of Weir.
	 */
	(void)weir_reclaim_prepare_thread();
	if (pthread_key_create(&others, use_weir_and_come_again) != 0 || !run_in_a_row(leave_it_to_a_destructor, IN_A_ROW))
		return 2;
	return records() <= LEAST ? 0 : say("records of one thread at a time", records(), LEAST);
}

Test(records, of_threads_in_a_row_are_few_where_a_destructor_uses_weir_in_each_round)
{
	if (__has_feature(thread_sanitizer))
		cr_skip("clang's ThreadSanitizer ends a thread's state before the last round of destructors");
	expect_in_child(with_a_destructor_of_each_round);
}

/* -- and never those of living threads --------------------------------------------------------- */

static _Atomic(uint32_t) standing, go_home, strangers;

/* The thread stays in a section, which would end if another thread took its record. */
static void *stand(void *context)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer, lo;

	(void)context;
	if (record == NULL)
		return NULL;
	outer = weiri_section_enter(record);
	lo = weiri_load_relaxed(&record->lo);
	weiri_fetch_add_release(&standing, 1u);
	while (weiri_load_acquire(&go_home) == 0)
		(void)weiri_futex_wait(&go_home, 0, weir_deadline_in(patience_ns));
	if (weiri_record_thread(record) != weiri_record_my_thread() || weiri_load_relaxed(&record->lo) != lo)
		weiri_fetch_add_relaxed(&strangers, 1u);
	weiri_section_leave(record, outer);
	return NULL;
}

static int beside_threads_that_stand(void)
{
	pthread_t threads[STANDING];

	take_all_keys();
	for (int i = 0; i < STANDING; i++) {
		if (pthread_create(&threads[i], NULL, stand, NULL) != 0)
			return 2;
	}
	while (weiri_load_acquire(&standing) < STANDING)
		(void)sched_yield();
	if (!run_in_a_row(use_weir_after_a_failure, IN_A_ROW))
		return 2;
	weiri_store_release(&go_home, 1u);
	weiri_futex_wake(&go_home, STANDING);
	for (int i = 0; i < STANDING; i++) {
		if (pthread_join(threads[i], NULL) != 0)
			return 2;
	}
	if (weiri_load_relaxed(&strangers) != 0)
		return say("threads whose record was taken", weiri_load_relaxed(&strangers), 0);
	return records() <= 2 * (STANDING + 2) ? 0 : say("records", records(), (size_t)2 * (STANDING + 2));
}

Test(records, of_threads_that_live_stay_theirs_whatever_errno_was)
{
	expect_in_child(beside_threads_that_stand);
}

static _Atomic(uint32_t) in_use[1024];

/* The thread is the only owner of its record until it ends. */
static void *be_alone(void *context)
{
	struct weiri_record *record = weiri_record_get();
	_Atomic(uint32_t) *mine;

	(void)context;
	if (record == NULL || record->number >= sizeof(in_use) / sizeof(in_use[0]))
		return NULL;
	mine = &in_use[record->number];
	if (weiri_exchange_acq_rel(mine, 1u) != 0)
		weiri_fetch_add_relaxed(&strangers, 1u);
	(void)sched_yield();
	weiri_store_release(mine, 0u);
	return NULL;
}

static void *make_threads(void *context)
{
	return run_in_a_row(be_alone, IN_A_ROW / MAKERS) ? context : NULL;
}

static int many_at_once(void)
{
	pthread_t makers[MAKERS];
	int made = 1;

	take_all_keys();
	for (int i = 0; i < MAKERS; i++) {
		if (pthread_create(&makers[i], NULL, make_threads, &made) != 0)
			return 2;
	}
	for (int i = 0; i < MAKERS; i++) {
		void *result = NULL;

		made &= pthread_join(makers[i], &result) == 0 && result != NULL;
	}
	if (!made)
		return 2;
	if (weiri_load_relaxed(&strangers) != 0)
		return say("records with two owners", weiri_load_relaxed(&strangers), 0);
	return records() <= LEAST + 4 * MAKERS ? 0 : say("records", records(), (size_t)LEAST + 4 * MAKERS);
}

Test(records, have_one_owner_where_threads_end_and_begin_all_the_time)
{
	expect_in_child(many_at_once);
}
