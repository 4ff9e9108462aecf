/*
 * urcu_inline.c - liburcu-bp with its read side inlined: the fastest it can be.
 */
#define _LGPL_SOURCE
#include "urcu_section.h"

const struct read_contender urcu_inline_read_contender = {
	"liburcu-bp section (inlined)", "liburcu", 0, urcu_create, urcu_destroy, urcu_thread_begin, urcu_thread_end,
	urcu_section_read_many,         urcu_write};
