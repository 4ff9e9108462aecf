/*
 * trace.h - records what the runs of sessions did, so that a program can check them afterwards.
 *
 * A trace has, for each op that ran: its frame, thread, start and end, which events it saw as its
 * inputs, the versions that it read and published, and the items that it put and took. The tool
 * weir-trace decides from it whether the runs kept the rules of a dataflow (`weir-trace check
 * FILE`), and draws it (`weir-trace chrome FILE`). docs/trace.md describes the format. Use it in
 * tests, and to see where the time of a step goes.
 *
 * | call                | threads   | progress             | blocks on  | allocates | signal-safe |
 * |---------------------|-----------|----------------------|------------|-----------|-------------|
 * | weir_trace_create   | any       | allocator            | allocator  | yes       | no          |
 * | weir_trace_destroy  | one, last | wait-free + releases | nothing    | no        | no          |
 * | weir_trace_write    | any       | the writer's         | the writer | no        | no          |
 * | weir_trace_dropped  | any       | wait-free            | nothing    | no        | yes         |
 *
 * A run that is recorded does not wait for another thread to record. Each thread has a buffer of its
 * own, which grows through the allocator. What finds no room is dropped, and counted.
 */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/flow/graph.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_trace weir_trace;

/*
 * flags: also record a checksum of each tensor when it is made, and before and after each use. This
 * reads all data several times.
 */
enum weir_trace_flags { WEIR_TRACE_CHECKSUMS = 1 };

struct weir_trace_options {
	size_t struct_size; /* WEIR_TRACE_OPTIONS_INIT sets it */
	uint32_t flags;
	size_t bytes_per_thread;         /* at most so many; 0: 64 MiB. A no-op takes 16 bytes */
	const weir_allocator *allocator; /* NULL: the default allocator */
};
#define WEIR_TRACE_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_trace_options)

/*
 * Creates an empty trace. options may be NULL. Besides the buffers of threads it keeps, until it is
 * destroyed, one description of each plan that it recorded: a few words for each node. Errors:
 * WEIR_INVALID_ARGUMENT if out is NULL, struct_size is wrong, a flag is unknown, or bytes_per_thread is
 * below 128 KiB. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_trace_create(const struct weir_trace_options *options,
                                            weir_trace **out, weir_error *error);

/*
 * Frees the trace. Accepts NULL. Errors: WEIR_FAILED_PRECONDITION, and nothing happens, while a
 * session has it, or a run records into it. The run may have told its end a moment before; once its
 * session is destroyed, it has ended in every respect.
 * @since 0.1
 */
WEIR_API enum weir_status weir_trace_destroy(weir_trace *trace, weir_error *error);

/*
 * Writes the trace: write(context, ...) is called on this thread with pieces of the file, which are
 * bytes and no text. Runs may go on meanwhile; then the file has a part of what they record. Errors:
 * WEIR_INVALID_ARGUMENT if trace or write is NULL, and the status of a writer that fails.
 * @since 0.1
 */
WEIR_API enum weir_status weir_trace_write(const weir_trace *trace, weir_write_fn *write,
                                           void *context, weir_error *error);

/* How many records were dropped, for lack of memory or room; 0 for NULL. @since 0.1 */
WEIR_API uint64_t weir_trace_dropped(const weir_trace *trace);

WEIR_END_DECLS

#endif
