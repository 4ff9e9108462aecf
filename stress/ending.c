/*
 * ending.c - ends a run that found a fault: a violation, a hang, a crash, or a sanitizer's report.
 *
 * In every case the scenario, the seed and one command that repeats the run are printed, and the
 * JSON file is written. The functions that are called here write to descriptors and do not
 * allocate, because a crash may have interrupted malloc().
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
	/*
	 * The thread that a signal handler interrupted may hold the lock. The report matters more than
	 * the sum.
	 */
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
	/*
	 * This is not _exit(), because ThreadSanitizer would then report the stopped threads as leaked,
	 * and change the exit code.
	 */
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

/* -- crashes ----------------------------------------------------------------------------------- */

/*
 * The handler is removed when it runs. The signal is raised again, and ends the process as if there
 * had been no handler.
 */
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

/* Sanitizers that are linked in call the callback before they end the process. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static void on_report(void)
{
	/* Between scenarios, for instance at exit, there is nothing to replay. */
	/* [relaxed] as above */
	if (stress_now.scenario == NULL || weiri_exchange_relaxed(&failing, 1u) != 0)
		return;
	(void)snprintf(stress_result()->message, sizeof(stress_result()->message), "the sanitizer's report is above");
	report("sanitizer");
}

/*
 * Gives AddressSanitizer's reports an exit code of their own. Its default is the code of a failed
 * check.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "exitcode=66";
}

void stress_catch_crashes(void)
{
	static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
	struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
	/* A sanitizer has its own handlers for the other signals, which report more. */
	size_t count = STRESS_TSAN || STRESS_ASAN ? 1 : sizeof(signals) / sizeof(signals[0]);

	for (size_t i = 0; i < count; i++)
		STRESS_CHECK(sigaction(signals[i], &action, NULL) == 0, "cannot install the signal handler");
	if (__sanitizer_set_death_callback != NULL)
		__sanitizer_set_death_callback(on_report);
}
