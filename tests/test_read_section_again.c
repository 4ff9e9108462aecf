/*
 * test_read_section_again.c - sections that begin again on their thread, which programs for x86-64 do
 * without a call: what they reserve, mixed with calls of the library, on other threads, stepped.
 */
#include "read_section_kit.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "coroutine.h"
#include "reclaim/eras.h"
#include "var/install.h"
#include "var/read_section.h"

/* The functions of the library, which other languages call. `volatile` keeps the inlined code away. */
static enum weir_status (*volatile const begin_by_call)(weir_read_section *) = weir_read_section_begin;
static enum weir_status (*volatile const end_by_call)(weir_read_section *) = weir_read_section_end;

Test(read_section_again, begins_again)
{
	weir_var *var = variable(0), *const vars[] = {var, var};
	weir_read_section section = {WEIR_READ_SECTION_INIT};

	for (int64_t i = 0; i < 100; i++) {
		begin(&section);
		expect_open(1);
		cr_expect_eq(weiri_load_relaxed(&weiri_record_mine->lo), weiri_load_relaxed(&weiri_era));
		cr_expect_eq(weir_read_section_begin(&section), WEIR_FAILED_PRECONDITION);
		(void)expect_peek(&section, var, i, (uint64_t)i + 1);
		assign(var, i + 1);
		(void)expect_peek(&section, var, i + 1, (uint64_t)i + 2);
		expect_snapshot(&section, var, var, i + 1);
		end(&section);
		expect_open(0);
		cr_expect_null(weir_read_section_peek(&section, var));
		expect_no_snapshot(&section, vars, WEIR_FAILED_PRECONDITION, "the section is not open on this thread");
		cr_expect_eq(weir_read_section_end(&section), WEIR_FAILED_PRECONDITION);
	}
	destroy(var);
}

/* What was shown in a section that began again stays, too, and nothing is held after its end. */
Test(read_section_again, protects_when_it_began_again)
{
	weir_var *var = variable(0);
	weir_read_section section = begun();
	const weir_read *shown;

	end(&section);
	for (int64_t round = 0; round < 20; round++) {
		begin(&section);
		shown = weir_read_section_peek(&section, var);
		for (int64_t i = 1; i <= 300; i++)
			assign(var, 300 * round + i);
		cr_assert_eq(value_of(shown), 300 * round);
		end(&section);
	}
	cr_expect_eq(weir_reclaim_flush(0), WEIR_OK);
	destroy(var);
}

/* Only the library announces an era. */
Test(read_section_again, announces_a_new_era_when_it_begins_again)
{
	weir_var *var = variable(1);
	weir_read_section section = begun();

	end(&section);
	if (!weiri_load_relaxed(&weiri_fence_asymmetric))
		cr_skip("membarrier is refused here: nothing is announced");
	for (int i = 0; i < 10; i++) {
		uint64_t era = weiri_era_begin();

		begin(&section);
		cr_expect_eq(weiri_load_relaxed(&weiri_record_mine->announced), era);
		cr_expect_eq(weiri_load_relaxed(&weiri_record_mine->lo), era);
		(void)expect_peek(&section, var, 1, 1);
		end(&section);
		expect_open(0);
	}
	destroy(var);
}

/* A read by a handle announces an era, too, but reserves none. */
Test(read_section_again, reserves_what_another_read_announced)
{
	weir_var *var = variable(1);
	weir_read_section section = begun();
	weir_read read;

	end(&section);
	for (int i = 0; i < 10; i++) {
		uint64_t era = weiri_era_begin();

		cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
		weir_read_release(&read);
		begin(&section);
		cr_expect_eq(weiri_load_relaxed(&weiri_record_mine->lo), era);
		cr_expect_eq(weiri_load_relaxed(&weiri_record_mine->hi), era);
		end(&section);
	}
	destroy(var);
}

/* As where membarrier is refused: nothing is announced, and the library begins and ends each section. */
Test(read_section_again, begins_again_without_announcements)
{
	weir_var *var = variable(1);
	weir_read_section section = begun();

	for (int i = 0; i < 10; i++) {
		weiri_announce_nothing(weiri_record_mine);
		end(&section);
		expect_open(0);
		weiri_announce_nothing(weiri_record_mine);
		begin(&section);
		expect_open(1);
		(void)expect_peek(&section, var, 1, 1);
	}
	end(&section);
	destroy(var);
}

static void *begin_for_the_first_time(void *context)
{
	weir_read_section section = begun();

	cr_expect_eq(section.reserved, (const uint64_t *)(uintptr_t)&weiri_record_mine->hi);
	end_by_call(&section);
	cr_expect_eq(section.reserved, &weiri_record_mine->shut);
	return context;
}

/* From its first section on, a thread needs no call to peek, and to begin it again: R2 of read_section.c. */
Test(read_section_again, is_ready_for_the_inlined_code_on_a_new_thread)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, begin_for_the_first_time, NULL), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

Test(read_section_again, mixes_with_calls_of_the_library)
{
	weir_var *var = variable(1);
	weir_read_section section = begun();

	end(&section);
	for (int i = 0; i < 16; i++) {
		cr_expect_eq(i & 1 ? begin_by_call(&section) : weir_read_section_begin(&section), WEIR_OK);
		expect_open(1);
		cr_expect_eq(i & 2 ? begin_by_call(&section) : weir_read_section_begin(&section), WEIR_FAILED_PRECONDITION);
		(void)expect_peek(&section, var, 1, 1);
		cr_expect_eq(i & 4 ? end_by_call(&section) : weir_read_section_end(&section), WEIR_OK);
		expect_open(0);
		cr_expect_eq(i & 8 ? end_by_call(&section) : weir_read_section_end(&section), WEIR_FAILED_PRECONDITION);
	}
	destroy(var);
}

Test(read_section_again, nests_when_it_began_again)
{
	weir_var *var = variable(1);
	weir_read_section outer = begun(), inner = {WEIR_READ_SECTION_INIT};

	end(&outer);
	for (int i = 0; i < 10; i++) {
		uint64_t lo;

		begin(&outer);
		lo = weiri_load_relaxed(&weiri_record_mine->lo);
		(void)weiri_era_begin();
		begin(&inner);
		expect_open(2);
		cr_expect_eq(weir_read_section_end(&outer), WEIR_FAILED_PRECONDITION);
		(void)expect_peek(&inner, var, 1, 1);
		end(&inner);
		expect_open(1);
		cr_expect_eq(weiri_load_relaxed(&weiri_record_mine->lo), lo);
		cr_expect_eq(weir_read_section_end(&inner), WEIR_FAILED_PRECONDITION);
		(void)expect_peek(&outer, var, 1, 1);
		end(&outer);
		expect_open(0);
		begin(&outer);
		begin(&inner);
		end(&inner);
		end(&outer);
		begin(&inner);
		cr_expect_eq(end_by_call(&inner), WEIR_OK, "it is an inner one no longer");
		expect_open(0);
	}
	destroy(var);
}

/* In a section of the library, as that of a handler or an allocator; afterwards outside of one. */
Test(read_section_again, begins_again_in_a_section_of_the_library)
{
	weir_var *var = variable(1);
	weir_read_section section = begun();
	struct weiri_record *record = weiri_record_mine;

	end(&section);
	for (int i = 0; i < 10; i++) {
		uint64_t outer = weiri_section_enter(record), lo = weiri_load_relaxed(&record->lo);

		begin(&section);
		(void)expect_peek(&section, var, 1, 1);
		end(&section);
		cr_expect_eq(weiri_load_relaxed(&record->lo), lo, "the section of the library goes on");
		weiri_section_leave(record, outer);
		begin(&section);
		expect_open(1);
		end(&section);
		expect_open(0);
	}
	destroy(var);
}

struct passed_on {
	weir_var *var;
	weir_read_section section;
	const struct weiri_record *record;
};

static void *begin_and_end(void *context)
{
	struct passed_on *on = context;

	for (int i = 0; i < 3; i++) {
		begin(&on->section);
		expect_open(1);
		(void)expect_peek(&on->section, on->var, 1, 1);
		end(&on->section);
		expect_open(0);
	}
	on->record = weiri_record_mine;
	return NULL;
}

/* The next thread finds its own record, be it another one, or that of the thread before. */
Test(read_section_again, of_one_thread_begins_again_on_another)
{
	struct passed_on on = {variable(1), {WEIR_READ_SECTION_INIT}, NULL};
	const struct weiri_record *before = NULL;
	size_t adopted = 0;
	pthread_t thread;

	for (int i = 0; i < 5; i++) {
		(void)begin_and_end(&on);
		cr_expect_eq(on.record, weiri_record_mine);
		for (int j = 0; j < 2; j++, before = on.record) {
			cr_assert_eq(pthread_create(&thread, NULL, begin_and_end, &on), 0);
			cr_assert_eq(pthread_join(thread, NULL), 0);
			cr_expect_neq(on.record, weiri_record_mine);
			adopted += on.record == before;
		}
		expect_open(0);
	}
	cr_expect_gt(adopted, 0, "a thread takes the record of one that ended");
	destroy(on.var);
}

static struct {
	struct coroutine coroutine;
	weir_var *var;
} moving;

enum { ROUNDS = 6 };

/* Not inlined: the compiler must find the thread anew. */
static WEIRI_NOINLINE void expect_open_here(uint32_t sections)
{
	expect_open(sections);
}

/* In one function, where a compiler could keep the address of a thread-local. */
static void begin_again_on_each_thread(void *context)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};

	(void)context;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 2; i++) {
			cr_expect_eq(weir_read_section_begin(&section), WEIR_OK);
			expect_open_here(1);
			cr_expect_not_null(weir_read_section_peek(&section, moving.var));
			cr_expect_eq(weir_read_section_end(&section), WEIR_OK);
			expect_open_here(0);
		}
		coroutine_stop(&moving.coroutine);
	}
}

/* A coroutine ends a section, goes on on another thread, and begins it there. */
Test(read_section_again, begins_again_where_a_coroutine_continues)
{
	coroutine_or_skip();
	moving.var = variable(1);
	moving.coroutine.call = begin_again_on_each_thread;
	coroutine_start(&moving.coroutine);
	for (int round = 0; round < ROUNDS; round++)
		(round % 2 == 0 ? coroutine_resume : coroutine_resume_on_a_thread)(&moving.coroutine);
	coroutine_end(&moving.coroutine);
	destroy(moving.var);
}

/* A thread without a record, and one with a section of its own open, which it ends afterwards. */
static void *end_what_another_began(void *context)
{
	struct passed_on *on = context;
	weir_read_section own = {WEIR_READ_SECTION_INIT};

	cr_expect_eq(weir_read_section_end(&on->section), WEIR_FAILED_PRECONDITION);
	begin(&own);
	cr_expect_eq(weir_read_section_end(&on->section), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_read_section_begin(&on->section), WEIR_FAILED_PRECONDITION);
	expect_open(1);
	end(&own);
	cr_expect_eq(weir_read_section_end(&on->section), WEIR_FAILED_PRECONDITION);
	return NULL;
}

Test(read_section_again, that_began_again_is_not_ended_by_another_thread)
{
	struct passed_on on = {variable(1), {WEIR_READ_SECTION_INIT}, NULL};
	pthread_t thread;

	(void)begin_and_end(&on);
	begin(&on.section);
	cr_assert_eq(pthread_create(&thread, NULL, end_what_another_began, &on), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	expect_open(1);
	(void)expect_peek(&on.section, on.var, 1, 1);
	end(&on.section);
	expect_open(0);
	destroy(on.var);
}

/* A thread that began again and ended leaves nothing. */
static void *leave_it_open(void *context)
{
	struct passed_on *on = context;

	(void)begin_and_end(on);
	begin(&on->section);
	return NULL;
}

Test(read_section_again, that_began_again_ends_with_its_thread)
{
	struct passed_on on = {variable(1), {WEIR_READ_SECTION_INIT}, NULL};
	pthread_t thread;

	(void)weiri_record_get();
	cr_assert_eq(pthread_create(&thread, NULL, leave_it_open, &on), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(weir_read_section_end(&on.section), WEIR_FAILED_PRECONDITION, "it is of no thread");
	cr_expect_eq(weiri_load_relaxed(&on.record->lo), 0);
	cr_expect_eq(weiri_load_relaxed(&on.record->read_sections), 0);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_OK);
	destroy(on.var);
}

/* ThreadSanitizer has locks of its own, which an interrupted thread may hold. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !__has_feature(thread_sanitizer)
static struct {
	weir_var *var;
	weir_read_section own, *interrupted;
	uint64_t steps;
	volatile sig_atomic_t under_way;
} steps;

/* Runs after each instruction of the interrupted thread, which the processor stops for it. */
static void read_after_an_instruction(int number_of_signal, siginfo_t *info, void *context)
{
	const long trap = 0x100; /* the processor stops after the next instruction */
	ucontext_t *interrupted = context;
	struct weiri_record *record = weiri_record_mine;
	uint64_t lo = weiri_load_relaxed(&record->lo);
	uint32_t sections = weiri_load_relaxed(&record->read_sections);
	bool is_open = weiri_read_section_is_open(steps.interrupted);
	const weir_read *read;

	(void)number_of_signal, (void)info;
	if (steps.under_way)
		interrupted->uc_mcontext.gregs[REG_EFL] |= trap;
	else
		interrupted->uc_mcontext.gregs[REG_EFL] &= ~trap;
	if (++steps.steps % 3 == 0)
		(void)weiri_era_begin(); /* so that the handler announces another era */
	if (weir_read_section_begin(&steps.own) != WEIR_OK)
		_exit(3);
	read = weir_read_section_peek(&steps.own, steps.var);
	if (read == NULL || *(const int64_t *)weir_tensor_data(read->tensor) != 1)
		_exit(4);
	read = weir_read_section_peek(steps.interrupted, steps.var);
	if (read != NULL && weiri_load_relaxed(&record->lo) == 0)
		_exit(5);
	if (sections != 0 && lo == 0)
		_exit(6);
	if (sections == 0 && is_open)
		_exit(9);
	if (weir_read_section_end(&steps.own) != WEIR_OK)
		_exit(7);
	if (weiri_load_relaxed(&record->lo) != lo || weiri_load_relaxed(&record->read_sections) != sections)
		_exit(8);
}

static void begin_and_end_by_steps(weir_read_section *section, bool by_call)
{
	enum weir_status status;

	steps.under_way = 1;
	(void)raise(SIGTRAP);
	status = by_call ? begin_by_call(section) : weir_read_section_begin(section);
	if (status == WEIR_OK && weir_read_section_peek(section, steps.var) != NULL)
		status = by_call ? end_by_call(section) : weir_read_section_end(section);
	steps.under_way = 0;
	cr_expect_eq(status, WEIR_OK);
	expect_open(0);
}

/* Where a begin, a peek and an end are interrupted does not matter: handlers read after each instruction. */
Test(read_section_again, is_interrupted_after_each_instruction)
{
	struct sigaction act = {.sa_sigaction = read_after_an_instruction, .sa_flags = SA_SIGINFO}, before;
	weir_read_section section = begun();

	end(&section);
	steps.var = variable(1);
	steps.own = begun();
	end(&steps.own);
	steps.interrupted = &section;
	cr_assert_eq(sigaction(SIGTRAP, &act, &before), 0);
	for (int i = 0; i < 12; i++)
		begin_and_end_by_steps(&section, i % 2 != 0);
	cr_assert_eq(sigaction(SIGTRAP, &before, NULL), 0);
	if (steps.steps == 12)
		cr_skip("instructions cannot be stepped here");
	cr_expect_gt(steps.steps, UINT64_C(12 * 20));
	destroy(steps.var);
}
#endif
