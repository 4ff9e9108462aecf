/*
 * frame.h - what the calling thread is in the middle of: a list of marks on its stack.
 *
 * A function that runs tasks of a pool, or the user's code in a critical section, or the function
 * of a coordinator's thread, puts a mark onto the list as long as it runs. Calls that the user's
 * code makes find it there: a task that submits to its own pool, an execution that would enter its
 * section again, a thread that would join itself. One list for all, because its head is one of the
 * few thread-local variables (base/compiler.h). Calls nest, so marks leave in the reverse order.
 */
#ifndef WEIRI_RUN_FRAME_H
#define WEIRI_RUN_FRAME_H

#include <stddef.h>

#include "base/compiler.h"

enum weiri_frame_kind { WEIRI_FRAME_POOL, WEIRI_FRAME_SECTION, WEIRI_FRAME_COORDINATOR };

struct weiri_frame {
	const void *of; /* the pool, section or coordinator */
	enum weiri_frame_kind kind;
	struct weiri_frame *outer;
};

extern WEIRI_TLS struct weiri_frame *weiri_frames_mine;

static inline void weiri_frame_begin(struct weiri_frame *frame, enum weiri_frame_kind kind, const void *of)
{
	*frame = (struct weiri_frame){of, kind, weiri_frames_mine};
	weiri_frames_mine = frame;
}

static inline void weiri_frame_end(const struct weiri_frame *frame)
{
	weiri_frames_mine = frame->outer;
}

/* Returns the innermost mark of this kind for this object, or NULL. */
static inline struct weiri_frame *weiri_frame_of(enum weiri_frame_kind kind, const void *of)
{
	struct weiri_frame *frame = weiri_frames_mine;

	while (frame != NULL && (frame->kind != kind || frame->of != of))
		frame = frame->outer;
	return frame;
}

#endif
