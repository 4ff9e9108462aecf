/*
 * trace_format.h - the words of a trace. docs/trace.md describes the format for others.
 *
 * A file is a row of 64-bit words, each with its lowest byte first: the head, then records. The
 * first word of a record has the kind (bits 0-7), the length in words, this one included (bits
 * 8-31), and an argument (bits 32-63).
 */
#ifndef WEIRI_TRACE_FORMAT_H
#define WEIRI_TRACE_FORMAT_H

#include <stdint.h>

/* The first word of a record has so much room for the length. */
enum { WEIRI_TRACE_MOST_WORDS = (1 << 24) - 1 };

/* "WEIRTRC" and a zero. */
#define WEIRI_TRACE_MAGIC UINT64_C(0x0043525452494557)

enum { WEIRI_TRACE_VERSION = 3 };

/* The head of a file. */
enum {
	WEIRI_TRACE_HEAD_MAGIC = 0,
	WEIRI_TRACE_HEAD_VERSION = 1,
	WEIRI_TRACE_HEAD_FLAGS = 2,   /* WEIR_TRACE_CHECKSUMS */
	WEIRI_TRACE_HEAD_DROPPED = 3, /* records */
	WEIRI_TRACE_HEAD_WORDS = 4
};

enum weiri_trace_record {
	/* argument: the thread. Then the number of its buffer. The records of that thread follow, up to the next. */
	WEIRI_TRACE_THREAD = 1,
	/* argument: the number of nodes. Then the number of the plan */
	WEIRI_TRACE_PLAN = 2,
	/*
	 * argument: the node. Then plan, WEIRI_TRACE_NODE_* flags, the numbers of dependencies, of objects
	 * and of functions; the dependencies; of each function, the plan of its body; of each object its
	 * address, and the texts of its kind and name; the texts of the name and the op of the node.
	 */
	WEIRI_TRACE_NODE = 3,
	/* argument: enum weiri_trace_frame_kind. Then frame, plan, the event of which it is a part or 0, iteration, time */
	WEIRI_TRACE_FRAME = 4,
	/* argument: 1 if all its nodes succeeded. Then frame, time */
	WEIRI_TRACE_FRAME_END = 5,
	/* argument: the node. Then event, frame, time; of each dependency, the event that was seen to have ended, or 0 */
	WEIRI_TRACE_START = 6,
	/* argument: the status. Then event, time */
	WEIRI_TRACE_END = 7,
	/* argument: enum weiri_trace_effect_kind. Then event, object, number */
	WEIRI_TRACE_EFFECT = 8,
	/* argument: 0 the frame got the value, 1 it gave it. Then frame, which feed or result, checksum */
	WEIRI_TRACE_VALUE = 9,
	/*
	 * A start and an end in one record, of an op that succeeded and of which nothing else is recorded. It
	 * follows from the records of this thread so far: the event is the next one after that of the last
	 * start or brief record; the frame is that of the same record; the op started when the last event
	 * ended. argument: the node (bits 0-23), the number of dependencies, at most 2 (bits 24-31). Then one
	 * word: ns from the start to the end (bits 0-31); of each dependency (bits 32-47 and 48-63) by how much
	 * the event that was seen to have ended is less than this one, or 0: none was seen.
	 */
	WEIRI_TRACE_BRIEF = 10
};

enum {
	WEIRI_TRACE_THREAD_WORDS = 2,
	WEIRI_TRACE_PLAN_WORDS = 2,
	WEIRI_TRACE_NODE_WORDS = 6,
	WEIRI_TRACE_FRAME_WORDS = 6
};
enum {
	WEIRI_TRACE_FRAME_END_WORDS = 3,
	WEIRI_TRACE_START_WORDS = 4,
	WEIRI_TRACE_END_WORDS = 3,
	WEIRI_TRACE_EFFECT_WORDS = 4,
	WEIRI_TRACE_VALUE_WORDS = 4,
	WEIRI_TRACE_BRIEF_WORDS = 2
};

/* Of a brief record: what does not fit has a start and an end. */
enum {
	WEIRI_TRACE_BRIEF_NODES = 1 << 24,
	WEIRI_TRACE_BRIEF_COUNT_SHIFT = 24, /* in the argument */
	WEIRI_TRACE_BRIEF_MOST = 2,         /* dependencies */
	WEIRI_TRACE_BRIEF_SEEN_SHIFT = 32,
	WEIRI_TRACE_BRIEF_SEEN_BITS = 16
};

/*
 * A dependency: the node of the plan (bits 0-31), which output of it (bits 32-62); bit 63: a control
 * edge. A text: its length in bytes, then its bytes, the first in the lowest bits of a word.
 */
#define WEIRI_TRACE_CONTROL (UINT64_C(1) << 63)

enum {
	WEIRI_TRACE_NODE_LEAVES = 1, /* also runs when a dependency did not */
	WEIRI_TRACE_NODE_WANTED = 2, /* a fetch or target */
	WEIRI_TRACE_NODE_WAITS = 4,
	WEIRI_TRACE_NODE_PARTS_SHIFT = 4 /* from this bit on, four bits: the kind of frames that it makes, or 0 */
};

/* What a value of WEIRI_TRACE_VALUE is to its frame. */
enum { WEIRI_TRACE_GOT = 0, WEIRI_TRACE_GAVE = 1 };

enum weiri_trace_frame_kind {
	WEIRI_TRACE_STEP = 0, /* a run of a session */
	WEIRI_TRACE_CALL = 1,
	WEIRI_TRACE_BRANCH = 2,    /* `iteration` is the number of the branch */
	WEIRI_TRACE_ITERATION = 3, /* of a loop, from 0 */
	WEIRI_TRACE_ROW = 4,       /* of a map, from 0 */
	WEIRI_TRACE_TEST = 5       /* of the condition of a loop, before the iteration of the same number */
};

enum weiri_trace_effect_kind {
	WEIRI_TRACE_READ = 1,     /* number: the version */
	WEIRI_TRACE_PUBLISH = 2,  /* number: the version */
	WEIRI_TRACE_PUT = 3,      /* number: the item; the event may still fail */
	WEIRI_TRACE_TAKE = 4,     /* number: the item; 0: it was put by a call that is not in the trace */
	WEIRI_TRACE_CHOOSE = 5,   /* number: the branch that the case takes */
	WEIRI_TRACE_MADE = 6,     /* object: the number of the output; number: its checksum */
	WEIRI_TRACE_USED = 7,     /* object: which dependency; number: its checksum */
	WEIRI_TRACE_TESTED = 8,   /* object: the number of the test; number: 1 if the iteration runs, 0 if the loop ends */
	WEIRI_TRACE_ROWS = 9,     /* number: how many rows the map has */
	WEIRI_TRACE_ENTERED = 10, /* object: a critical section; number: of the entry */
	WEIRI_TRACE_LEFT = 11,    /* object: a critical section; number: of the entry */
	WEIRI_TRACE_PASSED = 12   /* object: which tensor of its parts; number: its checksum */
};

#endif
