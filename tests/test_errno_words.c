/*
 * test_errno_words.c - words for an errno, whichever strerror_r the C library declares: here POSIX's, as with musl; the library under
 * test has the other one.
 */
#undef _GNU_SOURCE
#define _POSIX_C_SOURCE 200809L
#define weiri_errno_words words_by_posix
#include "../lib/base/errno_words.c"
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
