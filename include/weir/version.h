/*
 * version.h - the version of Weir that a program was compiled with, and the one that it runs with.
 *
 * Versions are semantic (semver 2.0). Before 1.0 another minor version may change the interface;
 * the name of the shared library says which versions are interchangeable.
 *
 * | call                        | threads | progress  | blocks on | allocates | signal-safe |
 * |-----------------------------|---------|-----------|-----------|-----------|-------------|
 * | weir_version, _version_text | any     | wait-free | nothing   | no        | yes         |
 */
#ifndef WEIR_VERSION_H
#define WEIR_VERSION_H

#include <weir/api.h>

WEIR_BEGIN_DECLS

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0

/* A version as one number, for #if; minor and patch are below 1,000. */
#define WEIR_VERSION_OF(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define WEIR_VERSION 1000
#if WEIR_VERSION != WEIR_VERSION_OF(WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR, WEIR_VERSION_PATCH)
#error WEIR_VERSION is not that of its parts
#endif

/* WEIR_VERSION of the library that runs. @since 0.1 */
WEIR_API int weir_version(void);
/* The same as text, "0.1.0"; static until the library is unloaded. @since 0.1 */
WEIR_API const char *weir_version_text(void);

WEIR_END_DECLS

#endif
