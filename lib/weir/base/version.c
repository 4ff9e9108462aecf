/*
 * version.c - the version that was compiled.
 */
#include <weir/version.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

int weir_version(void)
{
	return WEIR_VERSION;
}

const char *weir_version_text(void)
{
	return TEXT(WEIR_VERSION_MAJOR) "." TEXT(WEIR_VERSION_MINOR) "." TEXT(WEIR_VERSION_PATCH);
}
