/*
 * ending.c - how a run ends that found something: wrong, a hang, a crash, or a sanitizer's report.
 *
 * Whatever it is, scenario, seed and one command that tries again are printed, and the JSON file is written. What is called here writes to
 * descriptors and does not allocate, for a crash may have interrupted malloc.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run.h"

static _Atomic(uint32_t) failing;

void stress_become_the_one_that_fails(void)
{
	/* [relaxed] nothing is handed over. */
	if (weiri_exchange_relaxed(&failing, 1u) == 0)
		return;
	for (;;)
		(void)pause();
}

static void report(const char *outcome)
{
	struct stress_result *result = stress_result();

	result->outcome = outcome;
	result->seconds = stress_seconds_so_far();
	/* The lock may be held by the thread that a signal handler interrupted; the sum is worth less than the report. */
	if (pthread_mutex_trylock(&stress_now.lock) == 0) {
		result->operations = stress_count_operations();
		(void)pthread_mutex_unlock(&stress_now.lock);
	}
	stress_print_failure(result, stress_now.options);
	if (stress_now.options->json != NULL)
		(void)stress_write_json(stress_now.options->json, stress_now.options, stress_now.results,
		                        stress_now.result_count + 1);
}

_Noreturn void stress_end_process(const char *outcome, enum stress_exit code)
{
	report(outcome);
	/* Not _exit(): ThreadSanitizer would report the threads that stand as leaked, and change the code. */
	(void)syscall(SYS_exit_group, (int)code);
	abort();
}

_Noreturn void stress_fail(const char *format, ...)
{
	va_list arguments;

	stress_become_the_one_that_fails();
	va_start(arguments, format);
	(void)vsnprintf(stress_result()->message, sizeof(stress_result()->message), format, arguments);
	va_end(arguments);
	stress_end_process("wrong", STRESS_WRONG);
}

/* -- crashes ------------------------------------------------------------------------------------------------------------------ */

/* The handler is gone when it runs: the signal comes again, and ends the process as if nobody had looked. */
static void on_crash(int signal_number)
{
	const struct stress_thread *thread = stress_current != NULL ? stress_current : &stress_now.self;

	/* [relaxed] nothing is handed over. */
	if (stress_now.scenario != NULL && weiri_exchange_relaxed(&failing, 1u) == 0) {
		(void)snprintf(stress_result()->message, sizeof(stress_result()->message), "signal %d in %s %u, last: %s",
		               signal_number, thread->role, thread->number, weiri_load_relaxed(&thread->doing));
		report("crash");
	}
	(void)raise(signal_number);
}

/* Sanitizers that are linked in call this before they end the process. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static void on_report(void)
{
	/* Between scenarios, at exit for instance, there is nothing to replay. */
	if (stress_now.scenario == NULL || weiri_exchange_relaxed(&failing, 1u) != 0) /* [relaxed] as above */
		return;
	(void)snprintf(stress_result()->message, sizeof(stress_result()->message), "the sanitizer's report is above");
	report("sanitizer");
}

/* So that its reports have an exit code of their own: AddressSanitizer's is that of "wrong" otherwise. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "exitcode=66";
}

void stress_catch_crashes(void)
{
	static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
	struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
	/* A sanitizer has handlers of its own for the others, which say more. */
	size_t count = STRESS_TSAN || STRESS_ASAN ? 1 : sizeof(signals) / sizeof(signals[0]);

	for (size_t i = 0; i < count; i++)
		STRESS_CHECK(sigaction(signals[i], &action, NULL) == 0, "no signal handler could be set");
	if (__sanitizer_set_death_callback != NULL)
		__sanitizer_set_death_callback(on_report);
}
