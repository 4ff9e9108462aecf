/*
 * test_errno_words.c - the words for an errno, whichever strerror_r the C library declares. This
 * file compiles the source with that of POSIX, which musl has. The library under test uses the
 * other.
 */
#undef _GNU_SOURCE
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>

/* A cancellation point, as POSIX allows it to be. */
static int strerror_r_that_is_a_point(int reason, char room[], size_t size)
{
	pthread_testcancel();
	return strerror_r(reason, room, size);
}

#define weiri_errno_words words_by_posix
#define strerror_r strerror_r_that_is_a_point
#include "../lib/weir/base/errno_words.c"
#undef strerror_r
#undef weiri_errno_words

#include <criterion/criterion.h>

#include <errno.h>

const char *weiri_errno_words(int reason, char room[], size_t size);

Test(errno_words, are_the_same_by_either_strerror_r)
{
	char one[64], other[64];

	cr_expect_str_eq(words_by_posix(ENOENT, one, sizeof(one)), "No such file or directory");
	cr_expect_str_eq(weiri_errno_words(ENOENT, other, sizeof(other)), "No such file or directory");
	cr_expect_str_eq(words_by_posix(ENOSPC, one, sizeof(one)), weiri_errno_words(ENOSPC, other, sizeof(other)));
}

Test(errno_words, that_do_not_fit_are_the_number)
{
	char little[24];

	cr_expect_str_eq(words_by_posix(ENOENT, little, sizeof(little)), "errno 2");
}

Test(errno_words, leave_cancellation_as_it_was)
{
	char room[64];
	int before;

	(void)words_by_posix(ENOENT, room, sizeof(room));
	cr_assert_eq(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before), 0);
	cr_expect_eq(before, PTHREAD_CANCEL_ENABLE);
	(void)weiri_errno_words(ENOENT, room, sizeof(room));
	cr_assert_eq(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before), 0);
	cr_expect_eq(before, PTHREAD_CANCEL_DISABLE);
}

static void *ask_when_cancelled(void *came_back)
{
	char room[64];

	(void)pthread_cancel(pthread_self());
	(void)words_by_posix(ENOENT, room, sizeof(room));
	*(int *)came_back = 1;
	pthread_testcancel();
	return NULL;
}

Test(errno_words, are_no_cancellation_point_though_strerror_r_is_one)
{
	int came_back = 0;
	void *result = NULL;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, ask_when_cancelled, &came_back), 0);
	cr_assert_eq(pthread_join(thread, &result), 0);
	cr_expect(came_back, "the thread was cancelled inside the call");
	cr_expect(result == PTHREAD_CANCELED, "the thread's own cancellation point ends it");
}
