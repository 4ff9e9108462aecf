/*
 * critical_section.h - what the dataflow layer needs beyond weir/critical_section.h: entering a
 * section on one thread and leaving it on another.
 */
#ifndef WEIRI_RUN_CRITICAL_SECTION_H
#define WEIRI_RUN_CRITICAL_SECTION_H

#include <weir/critical_section.h>

#include "base/compiler.h"
#include "queue/queue.h"
#include "run/mark.h"

/*
 * Starts an entry, as weir_queue_start() starts an operation. done(context, WEIR_OK, ...) tells
 * that the execution is inside; the execution must then call weiri_critical_section_leave(). *room
 * must stay valid until done was called; its content means nothing.
 */
WEIRI_SHARED enum weir_status weiri_critical_section_start_enter(weir_critical_section *section, void **room,
                                                                 weir_queue_done_fn *done, void *context,
                                                                 weir_pending **handle, weir_error *error);
/*
 * For the execution that is inside, on any of its threads. With `begins` it gets a number: one more than
 * the execution that got one before. Returns its number.
 */
WEIRI_SHARED uint64_t weiri_critical_section_entry(weir_critical_section *section, bool begins);
/* Any thread of the execution that is inside may call it. */
WEIRI_SHARED void weiri_critical_section_leave(weir_critical_section *section);

/*
 * A list of the sections that the calling thread is inside, from the innermost outwards. Each entry
 * is on the stack of the function that runs the execution.
 */
struct weiri_inside {
	struct weiri_mark mark; /* of the section */
};
WEIRI_SHARED void weiri_inside_begin(struct weiri_inside *inside, const weir_critical_section *section);
WEIRI_SHARED void weiri_inside_end(const struct weiri_inside *inside);

#endif
