/*
 * critical_section.h - what the dataflow layer needs of a section beyond weir/critical_section.h: coming in on one thread and going out on
 * another.
 */
#ifndef WEIRI_RUN_CRITICAL_SECTION_H
#define WEIRI_RUN_CRITICAL_SECTION_H

#include <weir/critical_section.h>
#include <weir/tensor.h>

#include "queue/queue.h"

/* The right to be inside, as an item and as a tensor: the section's, and nothing but its presence counts. */
typedef weir_tensor weiri_right;

/*
 * Starts to come in, as weir_queue_start(): done(context, WEIR_OK, ...) with the right in items[0], of which there is room for one until then.
 * Who has it calls weiri_critical_section_leave().
 */
enum weir_status weiri_critical_section_start_enter(weir_critical_section *section, void *items[],
                                                    weir_queue_done_fn *done, void *context, weir_queue_op **op,
                                                    weir_error *error);
/* By any thread that belongs to who is inside. */
void weiri_critical_section_leave(weir_critical_section *section);

/* The sections that the calling thread is inside of, from the innermost out; each stands on the stack of who runs what is inside. */
struct weiri_inside {
	const weir_critical_section *section;
	struct weiri_inside *outer;
};
void weiri_inside_begin(struct weiri_inside *inside, const weir_critical_section *section);
void weiri_inside_end(const struct weiri_inside *inside);

#endif
