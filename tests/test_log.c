/*
 * test_log.c - the log hook of the process.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>
#include <weir/log.h>
#include <weir/status.h>

#include "base/log.h"

static int heard, heard_second;
static enum weir_log_level heard_level;
static char heard_message[2 * WEIR_ERROR_MESSAGE_SIZE];

static void listen(void *context, enum weir_log_level level, const char *message)
{
	++*(int *)context;
	heard_level = level;
	(void)snprintf(heard_message, sizeof(heard_message), "%s", message);
}

static const weir_log_hook listener = {listen, &heard}, second_listener = {listen, &heard_second};

static void start_silent(void)
{
	weir_log_set_hook(NULL);
	heard_second = 0;
	heard = 0;
	heard_message[0] = '\0';
}

Test(log, silent_until_a_hook_is_set, .init = start_silent)
{
	weiri_log(WEIR_LOG_ERROR, "no hook gets %d", 1);
	cr_expect_eq(heard, 0);
}

Test(log, the_hook_gets_level_and_text, .init = start_silent, .fini = start_silent)
{
	weir_log_set_hook(&listener);
	weiri_log(WEIR_LOG_WARNING, "thread %d did not join: %s", 7, "stuck");
	cr_expect_eq(heard, 1);
	cr_expect_eq(heard_level, WEIR_LOG_WARNING);
	cr_expect_str_eq(heard_message, "thread 7 did not join: stuck");
}

Test(log, each_hook_gets_its_own_context, .init = start_silent, .fini = start_silent)
{
	weir_log_set_hook(&listener);
	weiri_log(WEIR_LOG_INFO, "the first one");
	weir_log_set_hook(&second_listener);
	weiri_log(WEIR_LOG_INFO, "the second one");
	cr_expect_eq(heard, 1);
	cr_expect_eq(heard_second, 1);
}

Test(log, null_silences_again, .init = start_silent)
{
	weir_log_set_hook(&listener);
	weir_log_set_hook(NULL);
	weiri_log(WEIR_LOG_INFO, "no hook gets this");
	cr_expect_eq(heard, 0);
}

Test(log, a_long_message_is_cut_and_terminated, .init = start_silent, .fini = start_silent)
{
	char text[2 * WEIR_ERROR_MESSAGE_SIZE];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	weir_log_set_hook(&listener);
	weiri_log(WEIR_LOG_INFO, "%s", text);
	cr_expect_eq(heard, 1);
	cr_expect_gt(strlen(heard_message), 200);
	cr_expect_lt(strlen(heard_message), sizeof(text) - 1);
}
