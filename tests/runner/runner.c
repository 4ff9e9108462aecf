/*
 * runner.c - runs the tests of a program one after the other in one process, with a second process looking on.
 *
 * The tests run in a child, the parent watches: it ends a test that outlives its timeout and names the one that crashed.
 * A watching thread would do the same, but then every fork() in a test would be that of a process with threads, which
 * ThreadSanitizer does not follow. The child leaves by exit(), so LeakSanitizer and ThreadSanitizer set the exit code, and the
 * parent passes it on.
 *
 * Exit codes: 0 all passed; 1 a test failed, or none ran; 2 wrong arguments; 3 a test took too long; 128 + n a signal ended it;
 * else that of the child: what a test passed to exit(), or what a sanitizer chose.
 */
#include "criterion/criterion.h"

#include <fnmatch.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_TIMEOUT_SECONDS = 60, SANITIZER_SLOWDOWN = 5 };
enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_TIMEOUT = 3, EXIT_SIGNAL = 128 };

/* Shared by the two processes. The child writes; the parent only adds the failure that ended it. */
struct progress {
	_Atomic(const struct criterion_case *) running; /* NULL between tests; the address is the same in both processes */
	_Atomic(int64_t) deadline_ns;
	_Atomic(unsigned) passed;
	_Atomic(unsigned) failed;
	_Atomic(unsigned) skipped;
};

static struct criterion_case *cases;
static struct criterion_case **cases_end = &cases;
static struct progress *progress;

/* The running test. */
static pthread_t test_thread;
static jmp_buf leave_test;
static atomic_bool test_failed;
static atomic_bool test_skipped;

void criterion_enrol(struct criterion_case *test)
{
	*cases_end = test;
	cases_end = &test->next;
}

static int64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- called by tests ---- */

static void leave(void)
{
	if (pthread_equal(pthread_self(), test_thread))
		longjmp(leave_test, 1);
	pthread_exit(NULL);
}

/* One write, so that lines of several threads do not mix. */
__attribute__((format(printf, 2, 0))) static void say(const char *start, const char *format, va_list arguments)
{
	char message[1024];

	(void)vsnprintf(message, sizeof(message), format, arguments);
	(void)printf("%s%s\n", start, message);
	(void)fflush(stdout);
}

void criterion_failed(enum criterion_severity severity, const char *file, int line, const char *what,
                      const char *format, ...)
{
	char start[512];
	va_list arguments;

	atomic_store_explicit(&test_failed, true, memory_order_relaxed);
	(void)snprintf(start, sizeof(start), "  %s:%d: %s:", file, line, what);
	va_start(arguments, format);
	say(start, format, arguments);
	va_end(arguments);
	if (severity == CRITERION_ASSERT)
		leave();
}

void criterion_skip(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say("  skipped:", format, arguments);
	va_end(arguments);
	if (!pthread_equal(pthread_self(), test_thread))
		atomic_store_explicit(&test_failed, true, memory_order_relaxed);
	atomic_store_explicit(&test_skipped, true, memory_order_relaxed);
	leave();
	abort();
}

void criterion_log(const char *level, const char *format, ...)
{
	char start[32];
	va_list arguments;

	(void)snprintf(start, sizeof(start), "  %s: ", level);
	va_start(arguments, format);
	say(start, format, arguments);
	va_end(arguments);
}

/* ---- the child: runs the tests ---- */

static void verdict(const char *word, const struct criterion_case *test, const char *why)
{
	(void)printf("%s %s.%s%s\n", word, test->suite, test->name, why);
	(void)fflush(stdout);
}

static void announce(const struct criterion_case *test)
{
	double seconds = test->options.timeout > 0 ? test->options.timeout : (double)DEFAULT_TIMEOUT_SECONDS;

	atomic_store_explicit(&progress->deadline_ns, now_ns() + (int64_t)(seconds * (double)SANITIZER_SLOWDOWN * 1e9),
	                      memory_order_relaxed);
	/* [release] the parent that sees the test sees its deadline too: pairs with the acquire in overdue(). */
	atomic_store_explicit(&progress->running, test, memory_order_release);
}

static void run_guarded(void (*body)(void))
{
	if (body != NULL && setjmp(leave_test) == 0)
		body();
}

static void run_case(const struct criterion_case *test)
{
	atomic_store_explicit(&test_failed, false, memory_order_relaxed);
	atomic_store_explicit(&test_skipped, false, memory_order_relaxed);
	announce(test);
	run_guarded(test->options.init);
	if (!atomic_load_explicit(&test_failed, memory_order_relaxed) &&
	    !atomic_load_explicit(&test_skipped, memory_order_relaxed))
		run_guarded(test->body);
	run_guarded(test->options.fini);
	atomic_store_explicit(&progress->running, NULL, memory_order_release);

	if (atomic_load_explicit(&test_failed, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&progress->failed, 1, memory_order_relaxed);
		verdict("FAIL", test, ": see above");
	} else if (atomic_load_explicit(&test_skipped, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&progress->skipped, 1, memory_order_relaxed);
		verdict("SKIP", test, "");
	} else {
		atomic_fetch_add_explicit(&progress->passed, 1, memory_order_relaxed);
		verdict("PASS", test, "");
	}
}

/* "suite/name" against a shell pattern, as Criterion's --filter. */
static bool selected(const struct criterion_case *test, const char *pattern)
{
	char name[256];

	(void)snprintf(name, sizeof(name), "%s/%s", test->suite, test->name);
	return pattern == NULL || fnmatch(pattern, name, 0) == 0;
}

static void run_selected(const char *pattern)
{
	test_thread = pthread_self();
	for (const struct criterion_case *test = cases; test != NULL; test = test->next) {
		if (!selected(test, pattern))
			continue;
		if (test->options.disabled) {
			atomic_fetch_add_explicit(&progress->skipped, 1, memory_order_relaxed);
			verdict("SKIP", test, ": disabled");
		} else {
			run_case(test);
		}
	}
}

/* Prints the last line of the output and returns the exit code that it means. */
static int sum_up(void)
{
	unsigned passed = atomic_load_explicit(&progress->passed, memory_order_relaxed);
	unsigned failed = atomic_load_explicit(&progress->failed, memory_order_relaxed);
	unsigned skipped = atomic_load_explicit(&progress->skipped, memory_order_relaxed);

	if (skipped != 0)
		(void)printf("%u skipped\n", skipped);
	(void)printf("%u passed, %u failed\n", passed, failed);
	(void)fflush(stdout);
	return failed != 0 || passed == 0 ? EXIT_FAILED : EXIT_SUCCESS;
}

/* ---- the parent: looks on ---- */

static bool overdue(void)
{
	/* [acquire] pairs with announce(). */
	const struct criterion_case *test = atomic_load_explicit(&progress->running, memory_order_acquire);

	return test != NULL && now_ns() > atomic_load_explicit(&progress->deadline_ns, memory_order_relaxed);
}

/* The child is gone, or about to be, in the middle of a test. */
static int blame_running_case(const char *why, int code)
{
	const struct criterion_case *test = atomic_load_explicit(&progress->running, memory_order_acquire);

	atomic_fetch_add_explicit(&progress->failed, 1, memory_order_relaxed);
	if (test != NULL)
		verdict("FAIL", test, why);
	else
		(void)printf("FAIL between tests%s\n", why);
	(void)sum_up();
	return code;
}

static int judge(int wait_status)
{
	char why[64];

	if (WIFSIGNALED(wait_status)) {
		(void)snprintf(why, sizeof(why), ": ended by signal %d", WTERMSIG(wait_status));
		return blame_running_case(why, EXIT_SIGNAL + WTERMSIG(wait_status));
	}
	if (atomic_load_explicit(&progress->running, memory_order_acquire) != NULL) {
		(void)snprintf(why, sizeof(why), ": ended the program with exit code %d", WEXITSTATUS(wait_status));
		return blame_running_case(why, WEXITSTATUS(wait_status) != 0 ? WEXITSTATUS(wait_status) : EXIT_FAILED);
	}
	return WEXITSTATUS(wait_status);
}

static int watch(pid_t child, const sigset_t *child_signal)
{
	const struct timespec look_again = {.tv_nsec = 50000000};
	int wait_status;

	for (;;) {
		if (waitpid(child, &wait_status, WNOHANG) == child)
			return judge(wait_status);
		if (overdue()) {
			(void)kill(child, SIGKILL);
			(void)waitpid(child, &wait_status, 0);
			return blame_running_case(": took too long", EXIT_TIMEOUT);
		}
		(void)sigtimedwait(child_signal, NULL, &look_again);
	}
}

static int run_watched(const char *pattern)
{
	sigset_t child_signal, before;
	pid_t parent = getpid(), child;

	(void)sigemptyset(&child_signal);
	(void)sigaddset(&child_signal, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child_signal, &before);
	child = fork();
	if (child < 0) {
		perror("fork");
		return EXIT_FAILED;
	}
	if (child > 0)
		return watch(child, &child_signal);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	/* A child whose parent was killed must not go on alone; the second look closes the gap before prctl. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
	run_selected(pattern);
	exit(sum_up());
}

static int usage(const char *program)
{
	(void)fprintf(stderr,
	              "usage: %s [--list | --here] [--filter 'suite/name', may hold * and ?]\n"
	              "  --here runs the tests in the first process, for a debugger: no timeout\n",
	              program);
	return EXIT_USAGE;
}

static void list(const char *pattern)
{
	for (const struct criterion_case *test = cases; test != NULL; test = test->next)
		if (selected(test, pattern))
			(void)printf("%s/%s\n", test->suite, test->name);
}

int main(int count, char **arguments)
{
	const char *pattern = NULL;
	bool only_list = false, here = false;

	for (int i = 1; i < count; i++) {
		if (strcmp(arguments[i], "--list") == 0)
			only_list = true;
		else if (strcmp(arguments[i], "--here") == 0)
			here = true;
		else if (strcmp(arguments[i], "--filter") == 0 && i + 1 < count)
			pattern = arguments[++i];
		else
			return usage(arguments[0]);
	}
	if (only_list) {
		list(pattern);
		return EXIT_SUCCESS;
	}
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (progress == MAP_FAILED) {
		perror("mmap");
		return EXIT_FAILED;
	}
	if (!here)
		return run_watched(pattern);
	run_selected(pattern);
	return sum_up();
}
