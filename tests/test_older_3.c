/*
 * test_older_3.c - programs that were compiled with headers that inline begin and end of a section that begins
 * again on its thread.
 */
#include "older/form_3.h"
#include "older/uses.h"
#include "older/begins.h"
