/*
 * pin.c - see pin.h.
 */
#include "base/pin.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include "base/uncancelled.h"

/*
 * Weak, because a C library may have it in another library (glibc before 2.34: libdl), or not at
 * all (a program without shared libraries). Where it is missing, no plug-in can be closed.
 */
/* NOLINTNEXTLINE(readability-redundant-declaration): this one makes it weak. */
__attribute__((weak)) extern __typeof__(dladdr) dladdr;

void weiri_pin_self(void)
{
	int saved_errno = errno;
	static const char here;
	Dl_info about;

	if (dladdr != NULL && dladdr(&here, &about) != 0 && about.dli_fname != NULL)
		weiri_dlopen_to_stay(about.dli_fname);
	errno = saved_errno;
}
