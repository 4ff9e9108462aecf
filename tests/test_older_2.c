/*
 * test_older_2.c - programs that were compiled with headers whose inlined code is that of release 0.1.
 */
#include "older/form_2.h"
#include "older/uses.h"
