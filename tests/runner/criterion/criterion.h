/*
 * criterion.h - the part of Criterion that our tests use, run in one process.
 *
 * Criterion starts a process for each test. Under ThreadSanitizer such a process does not start,
 * and under LeakSanitizer a leak in it fails no test. A sanitizer build finds this header instead
 * of Criterion's and links runner.c. So the same tests run there one after the other, in one
 * process, and the sanitizer sets its exit code.
 *
 * The subset: Test(suite, name, options...) with .init, .fini, .timeout, .disabled (others are
 * ignored); cr_assert and cr_expect plain and as _not, _fail, _eq, _neq, _lt, _leq, _gt, _geq,
 * _null, _not_null, _str_eq, _str_neq, _arr_eq, _arr_neq, _float_eq, _float_neq, each with an
 * optional printf message; cr_skip, cr_skip_test, cr_log_info, cr_log_warn, cr_log_error.
 *
 * What differs from Criterion
 *   - A test finds what earlier tests left behind. A crash ends the run; its test is named and
 *     counted as failed.
 *   - A failed cr_assert leaves the test by longjmp only on the thread that runs the test. On
 *     another thread it marks the test as failed and ends that thread with pthread_exit, so that a
 *     join of that thread returns. Only the thread of the test may call cr_skip.
 *   - Timeouts are five times as long, because everything is slower under a sanitizer. The default
 *     is 60 s before that. A test that exceeds its timeout ends the run: its name is printed, and
 *     the exit code is 3.
 */
#ifndef CRITERION_IN_PROCESS_H
#define CRITERION_IN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Only this header defines it, for the few tests that must know that they share their process. */
#define CRITERION_IN_PROCESS 1

struct criterion_options {
	void (*init)(void);
	void (*fini)(void);
	double timeout; /* in seconds; 0 means the default */
	bool disabled;
	/* These three are ignored. */
	const char *description;
	int signal;
	int exit_code;
	int sentinel_;
};

struct criterion_case {
	const char *suite;
	const char *name;
	void (*body)(void);
	struct criterion_options options;
	struct criterion_case *next;
};

enum criterion_severity { CRITERION_EXPECT, CRITERION_ASSERT };

void criterion_enrol(struct criterion_case *test);
/*
 * Marks the running test as failed. For an assertion it does not return. The format starts with a
 * blank, so that it is never empty.
 */
void criterion_failed(enum criterion_severity severity, const char *file, int line, const char *what,
                      const char *format, ...) __attribute__((format(printf, 5, 6), cold));
void criterion_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void criterion_log(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define Test(...) CRITERION_TEST(__VA_ARGS__, .sentinel_ = 0)
#define CRITERION_TEST(suite_, name_, ...) \
	static void suite_##_##name_##_body(void); \
	__attribute__((constructor)) static void suite_##_##name_##_enrol(void) \
	{ \
		static struct criterion_case test = { \
			.suite = #suite_, .name = #name_, .body = suite_##_##name_##_body, .options = {__VA_ARGS__}}; \
		criterion_enrol(&test); \
	} \
	static void suite_##_##name_##_body(void)

/*
 * The message is optional. Each check counts its arguments, and expands to its bare form (B) or to
 * the form with a message (M). ISO C has no other way to leave out a printf format.
 */
#define CRITERION_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, form, ...) form
#define CRITERION_FORM1(...) CRITERION_PICK(__VA_ARGS__, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, B, _)
#define CRITERION_FORM2(...) CRITERION_PICK(__VA_ARGS__, M, M, M, M, M, M, M, M, M, M, M, M, M, M, B, _, _)
#define CRITERION_FORM3(...) CRITERION_PICK(__VA_ARGS__, M, M, M, M, M, M, M, M, M, M, M, M, M, B, _, _, _)
#define CRITERION_JOIN_(a, b) a##b
#define CRITERION_JOIN(a, b) CRITERION_JOIN_(a, b)

#define CRITERION_REPORT(severity, what, ...) criterion_failed(severity, __FILE__, __LINE__, what, " " __VA_ARGS__)
#define CRITERION_CHECK(severity, ok, what, ...) ((ok) ? (void)0 : CRITERION_REPORT(severity, what, __VA_ARGS__))

#define CRITERION_TRUTH_B(s, a) CRITERION_CHECK(s, a, #a, "")
#define CRITERION_TRUTH_M(s, a, ...) CRITERION_CHECK(s, a, #a, __VA_ARGS__)
#define CRITERION_FALSITY_B(s, a) CRITERION_CHECK(s, !(a), "!(" #a ")", "")
#define CRITERION_FALSITY_M(s, a, ...) CRITERION_CHECK(s, !(a), "!(" #a ")", __VA_ARGS__)
#define CRITERION_NULL_B(s, a) CRITERION_CHECK(s, (a) == NULL, #a " is NULL", "")
#define CRITERION_NULL_M(s, a, ...) CRITERION_CHECK(s, (a) == NULL, #a " is NULL", __VA_ARGS__)
#define CRITERION_NOT_NULL_B(s, a) CRITERION_CHECK(s, (a) != NULL, #a " is not NULL", "")
#define CRITERION_NOT_NULL_M(s, a, ...) CRITERION_CHECK(s, (a) != NULL, #a " is not NULL", __VA_ARGS__)
#define CRITERION_COMPARE_B(s, op, a, b) CRITERION_CHECK(s, (a)op(b), #a " " #op " " #b, "")
#define CRITERION_COMPARE_M(s, op, a, b, ...) CRITERION_CHECK(s, (a)op(b), #a " " #op " " #b, __VA_ARGS__)
#define CRITERION_STRING_B(s, op, a, b) CRITERION_CHECK(s, strcmp(a, b) op 0, #a " " #op " " #b " as strings", "")
#define CRITERION_STRING_M(s, op, a, b, ...) \
	CRITERION_CHECK(s, strcmp(a, b) op 0, #a " " #op " " #b " as strings", __VA_ARGS__)
#define CRITERION_BYTES_B(s, op, a, b, n) \
	CRITERION_CHECK(s, memcmp(a, b, n) op 0, #a " " #op " " #b " over " #n " bytes", "")
#define CRITERION_BYTES_M(s, op, a, b, n, ...) \
	CRITERION_CHECK(s, memcmp(a, b, n) op 0, #a " " #op " " #b " over " #n " bytes", __VA_ARGS__)
#define CRITERION_NEAR(a, b, e) ((a) - (b) <= (e) && (b) - (a) <= (e))
#define CRITERION_FLOAT_B(s, is, a, b, e) \
	CRITERION_CHECK(s, is CRITERION_NEAR(a, b, e), #is " " #a " == " #b " within " #e, "")
#define CRITERION_FLOAT_M(s, is, a, b, e, ...) \
	CRITERION_CHECK(s, is CRITERION_NEAR(a, b, e), #is " " #a " == " #b " within " #e, __VA_ARGS__)

#define CRITERION_ONE(kind, s, ...) CRITERION_JOIN(CRITERION_##kind##_, CRITERION_FORM1(__VA_ARGS__))(s, __VA_ARGS__)
#define CRITERION_TWO(kind, s, op, ...) \
	CRITERION_JOIN(CRITERION_##kind##_, CRITERION_FORM2(__VA_ARGS__))(s, op, __VA_ARGS__)
#define CRITERION_THREE(kind, s, op, ...) \
	CRITERION_JOIN(CRITERION_##kind##_, CRITERION_FORM3(__VA_ARGS__))(s, op, __VA_ARGS__)

#define cr_assert(...) CRITERION_ONE(TRUTH, CRITERION_ASSERT, __VA_ARGS__)
#define cr_expect(...) CRITERION_ONE(TRUTH, CRITERION_EXPECT, __VA_ARGS__)
#define cr_assert_not(...) CRITERION_ONE(FALSITY, CRITERION_ASSERT, __VA_ARGS__)
#define cr_expect_not(...) CRITERION_ONE(FALSITY, CRITERION_EXPECT, __VA_ARGS__)
#define cr_assert_fail(...) CRITERION_REPORT(CRITERION_ASSERT, "failed", __VA_ARGS__)
#define cr_expect_fail(...) CRITERION_REPORT(CRITERION_EXPECT, "failed", __VA_ARGS__)
#define cr_assert_eq(...) CRITERION_TWO(COMPARE, CRITERION_ASSERT, ==, __VA_ARGS__)
#define cr_expect_eq(...) CRITERION_TWO(COMPARE, CRITERION_EXPECT, ==, __VA_ARGS__)
#define cr_assert_neq(...) CRITERION_TWO(COMPARE, CRITERION_ASSERT, !=, __VA_ARGS__)
#define cr_expect_neq(...) CRITERION_TWO(COMPARE, CRITERION_EXPECT, !=, __VA_ARGS__)
#define cr_assert_lt(...) CRITERION_TWO(COMPARE, CRITERION_ASSERT, <, __VA_ARGS__)
#define cr_expect_lt(...) CRITERION_TWO(COMPARE, CRITERION_EXPECT, <, __VA_ARGS__)
#define cr_assert_leq(...) CRITERION_TWO(COMPARE, CRITERION_ASSERT, <=, __VA_ARGS__)
#define cr_expect_leq(...) CRITERION_TWO(COMPARE, CRITERION_EXPECT, <=, __VA_ARGS__)
#define cr_assert_gt(...) CRITERION_TWO(COMPARE, CRITERION_ASSERT, >, __VA_ARGS__)
#define cr_expect_gt(...) CRITERION_TWO(COMPARE, CRITERION_EXPECT, >, __VA_ARGS__)
#define cr_assert_geq(...) CRITERION_TWO(COMPARE, CRITERION_ASSERT, >=, __VA_ARGS__)
#define cr_expect_geq(...) CRITERION_TWO(COMPARE, CRITERION_EXPECT, >=, __VA_ARGS__)
#define cr_assert_null(...) CRITERION_ONE(NULL, CRITERION_ASSERT, __VA_ARGS__)
#define cr_expect_null(...) CRITERION_ONE(NULL, CRITERION_EXPECT, __VA_ARGS__)
#define cr_assert_not_null(...) CRITERION_ONE(NOT_NULL, CRITERION_ASSERT, __VA_ARGS__)
#define cr_expect_not_null(...) CRITERION_ONE(NOT_NULL, CRITERION_EXPECT, __VA_ARGS__)
#define cr_assert_str_eq(...) CRITERION_TWO(STRING, CRITERION_ASSERT, ==, __VA_ARGS__)
#define cr_expect_str_eq(...) CRITERION_TWO(STRING, CRITERION_EXPECT, ==, __VA_ARGS__)
#define cr_assert_str_neq(...) CRITERION_TWO(STRING, CRITERION_ASSERT, !=, __VA_ARGS__)
#define cr_expect_str_neq(...) CRITERION_TWO(STRING, CRITERION_EXPECT, !=, __VA_ARGS__)
#define cr_assert_arr_eq(...) CRITERION_THREE(BYTES, CRITERION_ASSERT, ==, __VA_ARGS__)
#define cr_expect_arr_eq(...) CRITERION_THREE(BYTES, CRITERION_EXPECT, ==, __VA_ARGS__)
#define cr_assert_arr_neq(...) CRITERION_THREE(BYTES, CRITERION_ASSERT, !=, __VA_ARGS__)
#define cr_expect_arr_neq(...) CRITERION_THREE(BYTES, CRITERION_EXPECT, !=, __VA_ARGS__)
#define cr_assert_float_eq(...) CRITERION_THREE(FLOAT, CRITERION_ASSERT, , __VA_ARGS__)
#define cr_expect_float_eq(...) CRITERION_THREE(FLOAT, CRITERION_EXPECT, , __VA_ARGS__)
#define cr_assert_float_neq(...) CRITERION_THREE(FLOAT, CRITERION_ASSERT, !, __VA_ARGS__)
#define cr_expect_float_neq(...) CRITERION_THREE(FLOAT, CRITERION_EXPECT, !, __VA_ARGS__)

#define cr_skip(...) criterion_skip(" " __VA_ARGS__)
#define cr_skip_test(...) criterion_skip(" " __VA_ARGS__)
#define cr_log_info(...) criterion_log("info", __VA_ARGS__)
#define cr_log_warn(...) criterion_log("warning", __VA_ARGS__)
#define cr_log_error(...) criterion_log("error", __VA_ARGS__)

#endif
