/*
 * test_older_1.c - programs that were compiled with the headers of before 26 November 2026.
 */
#include "older/form_1.h"
#include "older/uses.h"
