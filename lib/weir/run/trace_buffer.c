/*
 * trace_buffer.c - see trace_buffer.h.
 */
#include "run/trace_buffer.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "reclaim/record.h"
#include "run/trace_format.h"

#if defined(WEIRI_UNDER_MODEL) /* stress/model: two records fill a chunk */
enum { CHUNK_WORDS = 2 * WEIRI_TRACE_EFFECT_WORDS };
#else
enum { CHUNK_WORDS = 8 * 1024 - 4 };
#endif

static struct weiri_serial set_ids;

void weiri_trace_buffers_init(struct weiri_trace_buffers *set, const weir_allocator *allocator, size_t most_bytes)
{
	set->id = weiri_serial_take(&set_ids) + 1;
	set->allocator = *allocator;
	set->most_bytes = most_bytes;
	weiri_published_init(&set->list);
	weiri_serial_init(&set->numbers);
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&set->lost, 0);
}

static size_t chunk_bytes(size_t words)
{
	return sizeof(struct weiri_trace_chunk) + words * sizeof(uint64_t);
}

static struct weiri_trace_buffer *buffer_of(struct weiri_published *link)
{
	return link != NULL ? WEIRI_CONTAINER_OF(link, struct weiri_trace_buffer, link) : NULL;
}

void weiri_trace_buffers_fini(struct weiri_trace_buffers *set)
{
	struct weiri_published *next;

	for (struct weiri_published *link = weiri_published_first(&set->list); link != NULL; link = next) {
		struct weiri_trace_buffer *buffer = buffer_of(link);
		struct weiri_trace_chunk *after;

		next = link->next;
		for (struct weiri_trace_chunk *chunk = buffer->first; chunk != NULL; chunk = after) {
			after = weiri_trace_next(chunk);
			weiri_release(&set->allocator, chunk, chunk_bytes(chunk->size), _Alignof(struct weiri_trace_chunk));
		}
		weiri_release(&set->allocator, buffer, sizeof(*buffer), _Alignof(struct weiri_trace_buffer));
	}
}

/* Appends a chunk. Returns false if there is no memory. */
static bool append_chunk(struct weiri_trace_buffer *buffer, size_t words)
{
	size_t bytes = chunk_bytes(words);
	struct weiri_trace_chunk *chunk =
		weiri_allocate(&buffer->set->allocator, bytes, _Alignof(struct weiri_trace_chunk));

	if (chunk == NULL)
		return false;
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&chunk->next, NULL);
	weiri_store_relaxed(&chunk->used, 0);
	chunk->size = words;
	/* [P2 release] pairs with weiri_trace_next(). */
	if (buffer->last != NULL)
		weiri_store_release(&buffer->last->next, chunk);
	else
		buffer->first = chunk;
	buffer->last = chunk;
	buffer->at = chunk->words;
	buffer->left = words;
	buffer->bytes += bytes;
	return true;
}

static struct weiri_trace_buffer *make_buffer(struct weiri_trace_buffers *set, uint32_t thread)
{
	struct weiri_trace_buffer *buffer =
		weiri_allocate_zeroed(&set->allocator, sizeof(*buffer), _Alignof(struct weiri_trace_buffer));

	if (buffer == NULL)
		return NULL;
	buffer->thread = thread;
	buffer->set = set;
	if (!append_chunk(buffer, CHUNK_WORDS)) {
		weiri_release(&set->allocator, buffer, sizeof(*buffer), _Alignof(struct weiri_trace_buffer));
		return NULL;
	}
	buffer->number = (uint32_t)weiri_serial_take(&set->numbers) + 1;
	while (!weiri_published_push_after(&set->list, &buffer->link, weiri_published_first(&set->list)))
		;
	return buffer;
}

struct weiri_trace_buffer *weiri_trace_buffer_mine(struct weiri_trace_buffers *set)
{
	uint32_t thread = weiri_record_my_thread();
	struct weiri_published *link = weiri_published_first(&set->list);
	struct weiri_trace_buffer *buffer;

	while (link != NULL && buffer_of(link)->thread != thread)
		link = link->next;
	if (link != NULL) {
		/* [P3 acquire] pairs with weiri_trace_rest(). */
		(void)weiri_load_acquire(&buffer_of(link)->rests);
		return buffer_of(link);
	}
	buffer = make_buffer(set, thread);
	if (buffer == NULL)
		weiri_trace_lose(set);
	return buffer;
}

uint64_t *weiri_trace_grow(struct weiri_trace_buffer *buffer, size_t words)
{
	size_t size = words > CHUNK_WORDS ? words : CHUNK_WORDS;

	WEIR_ASSERT2(T1, weiri_trace_used(buffer->last) == buffer->last->size - buffer->left);
	if (words <= WEIRI_TRACE_MOST_WORDS && buffer->bytes + chunk_bytes(size) <= buffer->set->most_bytes &&
	    append_chunk(buffer, size))
		return buffer->at;
	/* [relaxed] a count, which only this thread changes. */
	weiri_store_relaxed(&buffer->dropped, weiri_load_relaxed(&buffer->dropped) + 1);
	return NULL;
}

void weiri_trace_effect(const struct weiri_trace_point *point, uint32_t kind, const void *object, uint64_t number)
{
	struct weiri_trace_buffer *buffer = weiri_trace_buffer_mine(point->set);
	uint64_t *record = buffer != NULL ? weiri_trace_reserve(buffer, WEIRI_TRACE_EFFECT_WORDS) : NULL;

	if (record != NULL) {
		record[0] = weiri_trace_head(WEIRI_TRACE_EFFECT, WEIRI_TRACE_EFFECT_WORDS, kind);
		record[1] = point->event;
		record[2] = (uintptr_t)object;
		record[3] = number;
		weiri_trace_commit(buffer, WEIRI_TRACE_EFFECT_WORDS);
	}
	if (buffer != NULL)
		weiri_trace_rest(buffer);
}

uint64_t weiri_trace_dropped(const struct weiri_trace_buffers *set)
{
	/* [relaxed] counts. */
	uint64_t dropped = weiri_load_relaxed(&set->lost);

	for (struct weiri_published *link = weiri_published_first(&set->list); link != NULL; link = link->next)
		dropped += weiri_load_relaxed(&buffer_of(link)->dropped);
	return dropped;
}
