/*
 * test_version.c - the header, the library and the package have the same version.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <weir/version.h>

Test(version, the_header_the_library_and_the_package_agree)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%d.%d.%d", WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR, WEIR_VERSION_PATCH);
	cr_expect_str_eq(text, PACKAGE_VERSION);
	cr_expect_str_eq(weir_version_text(), PACKAGE_VERSION);
	cr_expect_eq(weir_version(), WEIR_VERSION);
}

Test(version, later_ones_are_larger_numbers)
{
	cr_expect_lt(WEIR_VERSION_OF(0, 1, 999), WEIR_VERSION_OF(0, 2, 0));
	cr_expect_lt(WEIR_VERSION_OF(0, 999, 999), WEIR_VERSION_OF(1, 0, 0));
	cr_expect_eq(WEIR_VERSION_OF(2, 3, 4), 2003004);
}
