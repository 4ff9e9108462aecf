/*
 * urcu_inline.c - liburcu-bp with its read side inlined: the fastest it can be.
 */
#define _LGPL_SOURCE
#include "urcu_section.h"

const struct read_contender urcu_inline_read_contender = {
	.about = {.name = "liburcu-bp section (inlined)", .version = "liburcu", .lacks = "retains nothing"},
	.create = urcu_create,
	.destroy = urcu_destroy,
	.thread_begin = urcu_thread_begin,
	.thread_end = urcu_thread_end,
	.read_many = urcu_section_read_many,
	.scan_many = urcu_section_scan_many,
	.write = urcu_write,
};
