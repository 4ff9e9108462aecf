/*
 * mark.c - see mark.h.
 */
#include "run/mark.h"

WEIRI_TLS struct weiri_mark *weiri_marks_mine;
