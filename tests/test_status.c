/*
 * test_status.c - names of status codes and the filling of a weir_error.
 */
#include <criterion/criterion.h>

#include <string.h>
#include <weir/status.h>

#include "base/error.h"
#include "base/options.h"

Test(status, every_code_has_its_own_name)
{
	for (int a = WEIR_OK; a <= WEIR_UNAVAILABLE; a++) {
		const char *name = weir_status_name((enum weir_status)a);

		cr_assert_eq(strncmp(name, "WEIR_", 5), 0, "code %d is %s", a, name);
		cr_expect_str_neq(name, "WEIR_UNKNOWN_STATUS", "code %d", a);
		for (int b = WEIR_OK; b < a; b++)
			cr_expect_str_neq(name, weir_status_name((enum weir_status)b), "codes %d and %d", a, b);
	}
}

Test(status, names_are_those_of_the_constants)
{
	cr_expect_str_eq(weir_status_name(WEIR_OK), "WEIR_OK");
	cr_expect_str_eq(weir_status_name(WEIR_DEADLINE_EXCEEDED), "WEIR_DEADLINE_EXCEEDED");
	cr_expect_str_eq(weir_status_name(WEIR_WOULD_BLOCK), "WEIR_WOULD_BLOCK");
	cr_expect_str_eq(weir_status_name(WEIR_UNAVAILABLE), "WEIR_UNAVAILABLE");
}

Test(status, a_number_that_is_no_code_is_named_unknown)
{
	cr_expect_str_eq(weir_status_name((enum weir_status)(WEIR_UNAVAILABLE + 1)), "WEIR_UNKNOWN_STATUS");
	cr_expect_str_eq(weir_status_name((enum weir_status)99999), "WEIR_UNKNOWN_STATUS");
}

Test(status, fail_fills_the_error_and_returns_the_code)
{
	weir_error error = {WEIR_OK, "untouched"};

	cr_assert_eq(weiri_fail(&error, WEIR_ABORTED, "queue \"%s\": %d of %d", "in", 3, 4), WEIR_ABORTED);
	cr_expect_eq(error.code, WEIR_ABORTED);
	cr_expect_str_eq(error.message, "queue \"in\": 3 of 4");
}

Test(status, fail_without_an_error_returns_the_code)
{
	cr_expect_eq(weiri_fail(NULL, WEIR_NOT_FOUND, "%s", "dropped"), WEIR_NOT_FOUND);
}

Test(status, a_message_that_is_too_long_is_cut_and_terminated)
{
	char text[2 * WEIR_ERROR_MESSAGE_SIZE];
	weir_error error;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_assert_eq(weiri_fail(&error, WEIR_INTERNAL, "%s", text), WEIR_INTERNAL);
	cr_expect_eq(strlen(error.message), WEIR_ERROR_MESSAGE_SIZE - 1);
}

Test(status, options_of_some_release_have_at_least_a_size_and_at_most_a_page)
{
	cr_expect(weiri_options_size_ok(sizeof(size_t)));
	cr_expect(weiri_options_size_ok(4096));
	cr_expect_not(weiri_options_size_ok(0));
	cr_expect_not(weiri_options_size_ok(sizeof(size_t) - 1));
	cr_expect_not(weiri_options_size_ok(4097));
}
