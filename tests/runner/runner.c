/*
 * runner.c - runs the tests of a program one after the other in one process, while a second process
 * watches.
 *
 * The tests run in a child, and the parent watches. The parent ends a test that exceeds its limit
 * or hangs, and names a test that crashed. The limit is of processor time, because a busy machine
 * may leave a test little of it. Time that several processors spend at once counts once, so that a
 * test of many threads does not end sooner on a machine of many processors. A test hangs if,
 * over PATIENCE_SECONDS, it used less than a twentieth of a processor, and one of its threads
 * wanted to run at less than half of the looks. scripts/limits.py does the same. A thread could
 * watch too, but then every fork() in a test would fork a process with threads, which
 * ThreadSanitizer does not follow. The child ends by exit(), so LeakSanitizer and ThreadSanitizer
 * set its exit code, and the parent passes that on.
 *
 * Exit codes: 0 all tests passed; 1 a test failed, or none ran; 2 wrong arguments; 3 a test took
 * too long or hung; 128 + n signal n ended a test; else that of the child: what a test passed to
 * exit(), or what a sanitizer chose.
 */
#include "criterion/criterion.h"

#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_TIMEOUT_SECONDS = 60, SANITIZER_SLOWDOWN = 5, PATIENCE_SECONDS = 120 };
enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_TIMEOUT = 3, EXIT_SIGNAL = 128 };

/*
 * Shared by the two processes. The child writes it. The parent only adds the failure of the test
 * that it ended.
 */
struct progress {
	/* NULL between tests. The address is the same in both processes. */
	_Atomic(const struct criterion_case *) running;
	_Atomic(unsigned) passed;
	_Atomic(unsigned) failed;
	_Atomic(unsigned) skipped;
};

static struct criterion_case *cases;
static struct criterion_case **cases_end = &cases;
static struct progress *progress;

/* The thread of the running test. */
static pthread_t test_thread;
static jmp_buf leave_test;
static atomic_bool test_failed;
static atomic_bool test_skipped;

void criterion_enrol(struct criterion_case *test)
{
	*cases_end = test;
	cases_end = &test->next;
}

/* ---- called by tests ---- */

static void leave(void)
{
	if (pthread_equal(pthread_self(), test_thread))
		longjmp(leave_test, 1);
	pthread_exit(NULL);
}

/* One write, so that the lines of several threads do not mix. */
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

static void run_guarded(void (*body)(void))
{
	if (body != NULL && setjmp(leave_test) == 0)
		body();
}

static void run_case(const struct criterion_case *test)
{
	atomic_store_explicit(&test_failed, false, memory_order_relaxed);
	atomic_store_explicit(&test_skipped, false, memory_order_relaxed);
	/* [release] pairs with the acquire in look() */
	atomic_store_explicit(&progress->running, test, memory_order_release);
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

/* Matches "suite/name" against a shell pattern, as Criterion's --filter does. */
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

/* Prints the last line of the output, and returns the exit code that corresponds to it. */
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

/* ---- the parent: watches ---- */

enum { SECOND_NS = 1000000000 };

/* What the parent has seen of the running test. */
struct watch {
	pid_t child;
	int64_t patience_ns;
	const struct criterion_case *test; /* NULL: between tests */
	int64_t looked_ns;
	/* The processor time that the child had used at that look. */
	int64_t processor_ns;
	/* The processor time that counts towards the limit. */
	int64_t charged_ns;
	/* Since hung() was last called, or since the test began. */
	int64_t stretch_ns;
	int64_t stretch_used_ns;
	unsigned looks;
	/* Looks at which a thread wanted to run. */
	unsigned wanted;
};

static int64_t time_of(clockid_t clock)
{
	struct timespec now = {0, 0};

	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* The processor time of all threads of the child, including ended ones. */
static int64_t processor_time_of(pid_t child)
{
	clockid_t clock;

	return clock_getcpuclockid(child, &clock) == 0 ? time_of(clock) : 0;
}

/* Returns whether a thread runs, waits for a processor, or waits for a disk. */
static bool wants_to_run(const char *stat_path)
{
	char text[512];
	FILE *file = fopen(stat_path, "r");
	size_t size = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
	const char *name_end;

	if (file != NULL)
		(void)fclose(file);
	text[size] = '\0';
	/* The name stands in parentheses and may contain any character. */
	name_end = strrchr(text, ')');
	return name_end != NULL && name_end[1] == ' ' && (name_end[2] == 'R' || name_end[2] == 'D');
}

static bool a_thread_wants_to_run(pid_t child)
{
	char path[64 + NAME_MAX];
	const struct dirent *entry;
	bool wants = false;
	DIR *threads;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)child);
	threads = opendir(path);
	while (!wants && threads != NULL && (entry = readdir(threads)) != NULL) {
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)child, entry->d_name);
		wants = entry->d_name[0] != '.' && wants_to_run(path);
	}
	if (threads != NULL)
		(void)closedir(threads);
	return wants;
}

static int64_t look_every_ns(const struct watch *watch)
{
	int64_t every = watch->patience_ns / 20;

	return every < SECOND_NS ? every : SECOND_NS;
}

static int64_t limit_ns_of(const struct criterion_case *test)
{
	double seconds = test->options.timeout > 0 ? test->options.timeout : (double)DEFAULT_TIMEOUT_SECONDS;

	return (int64_t)(seconds * (double)SANITIZER_SLOWDOWN * (double)SECOND_NS);
}

/* Called at the end of a stretch as long as the patience. */
static bool hung(struct watch *watch)
{
	const int64_t share = 20;
	bool result = watch->stretch_used_ns < watch->stretch_ns / share && watch->wanted * 2 < watch->looks;

	watch->stretch_ns = watch->stretch_used_ns = 0;
	watch->looks = watch->wanted = 0;
	return result;
}

/* Returns NULL if all is well so far, else what is wrong with the running test. */
static const char *look(struct watch *watch)
{
	static char why[128];
	/*
	 * [acquire] pairs with the release in run_case(). Only the address counts: the parent has its
	 * own copy of the test's options.
	 */
	const struct criterion_case *test = atomic_load_explicit(&progress->running, memory_order_acquire);
	int64_t now = time_of(CLOCK_MONOTONIC), processor = processor_time_of(watch->child);
	int64_t elapsed = now - watch->looked_ns, used = processor - watch->processor_ns, most = 2 * look_every_ns(watch);

	if (test == NULL || test != watch->test) {
		*watch = (struct watch){watch->child, watch->patience_ns, test, now, processor, 0, 0, 0, 0, 0};
		return NULL;
	}
	watch->looked_ns = now;
	watch->processor_ns = processor;
	watch->charged_ns += used < elapsed ? used : elapsed;
	/*
	 * After a long time without a look, the whole machine may have been stopped. So only a little
	 * of that time counts.
	 */
	watch->stretch_ns += elapsed < most ? elapsed : most;
	watch->stretch_used_ns += used;
	watch->looks++;
	watch->wanted += a_thread_wants_to_run(watch->child);
	if (watch->charged_ns > limit_ns_of(test)) {
		(void)snprintf(why, sizeof(why), ": took more than %g s of processor time",
		               (double)limit_ns_of(test) / (double)SECOND_NS);
		return why;
	}
	if (watch->stretch_ns < watch->patience_ns || !hung(watch))
		return NULL;
	(void)snprintf(why, sizeof(why), ": hung: it used next to no processor time for %g s",
	               (double)watch->patience_ns / (double)SECOND_NS);
	return why;
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

static int watch_over(pid_t child, int64_t patience_ns, const sigset_t *child_signal)
{
	struct watch watch = {.child = child, .patience_ns = patience_ns};
	const int64_t every = look_every_ns(&watch);
	const struct timespec look_again = {(time_t)(every / SECOND_NS), (long)(every % SECOND_NS)};
	const char *why;
	int wait_status;

	for (;;) {
		if (waitpid(child, &wait_status, WNOHANG) == child)
			return judge(wait_status);
		why = look(&watch);
		if (why != NULL) {
			(void)kill(child, SIGKILL);
			(void)waitpid(child, &wait_status, 0);
			return blame_running_case(why, EXIT_TIMEOUT);
		}
		(void)sigtimedwait(child_signal, NULL, &look_again);
	}
}

static int run_watched(const char *pattern, int64_t patience_ns)
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
		return watch_over(child, patience_ns, &child_signal);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	/*
	 * A child whose parent was killed must not go on alone. getppid() tells whether the parent was
	 * killed before the prctl().
	 */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
	run_selected(pattern);
	exit(sum_up());
}

static int usage(const char *program)
{
	(void)fprintf(stderr,
	              "usage: %s [--list | --here] [--filter 'suite/name', may hold * and ?] [--patience SECONDS]\n"
	              "  --here runs the tests in the first process, for a debugger: no limits\n"
	              "  a test that uses next to no processor time for --patience (%d) hangs\n",
	              program, (int)PATIENCE_SECONDS);
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
	double patience = PATIENCE_SECONDS;
	bool only_list = false, here = false;

	for (int i = 1; i < count; i++) {
		if (strcmp(arguments[i], "--list") == 0)
			only_list = true;
		else if (strcmp(arguments[i], "--here") == 0)
			here = true;
		else if (strcmp(arguments[i], "--filter") == 0 && i + 1 < count)
			pattern = arguments[++i];
		else if (strcmp(arguments[i], "--patience") == 0 && i + 1 < count && atof(arguments[i + 1]) > 0)
			patience = atof(arguments[++i]);
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
		return run_watched(pattern, (int64_t)(patience * (double)SECOND_NS));
	run_selected(pattern);
	return sum_up();
}
