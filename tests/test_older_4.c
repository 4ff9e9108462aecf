/*
 * test_older_4.c - programs that were compiled with headers whose peek takes its offset from a constant of the
 * library.
 */
#include "older/form_4.h"
#include "older/uses.h"
#include "older/begins.h"
