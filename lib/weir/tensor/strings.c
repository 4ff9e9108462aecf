/*
 * strings.c - chunks of string bytes, and copies into memory of a known size.
 */
#include "tensor/strings.h"

#include <string.h>

#include "base/memory.h"

/*
 * The first chunk suits a few short strings; the largest bounds the memory that a tensor can leave
 * unused.
 */
enum { FIRST_CHUNK = 256, LARGEST_CHUNK = 65536 };

struct weiri_strings {
	struct weiri_strings *older;
	size_t room; /* bytes of text[] */
	size_t used; /* of those */
	char text[];
};

static const size_t chunk_alignment = _Alignof(struct weiri_strings);

/* Returns twice the room of the newest chunk, within bounds, but at least `size`. */
static size_t next_room(const struct weiri_strings *newest, size_t size)
{
	size_t room =
		newest != NULL ? 2 * (newest->room < LARGEST_CHUNK / 2 ? newest->room : LARGEST_CHUNK / 2) : FIRST_CHUNK;

	return room < size ? size : room;
}

static struct weiri_strings *create_chunk(size_t room, struct weiri_strings *older, const weir_allocator *allocator)
{
	struct weiri_strings *chunk;
	size_t size;

	if (!weiri_add(sizeof(*chunk), room, &size))
		return NULL;
	chunk = weiri_allocate(allocator, size, chunk_alignment);
	if (chunk == NULL)
		return NULL;
	chunk->older = older;
	chunk->room = room;
	chunk->used = 0;
	return chunk;
}

char *weiri_strings_reserve(struct weiri_strings **strings, size_t size, const weir_allocator *allocator)
{
	struct weiri_strings *chunk = *strings;
	char *text;

	if (chunk == NULL || chunk->room - chunk->used < size) {
		chunk = create_chunk(next_room(*strings, size), *strings, allocator);
		if (chunk == NULL)
			return NULL;
		*strings = chunk;
	}
	text = chunk->text + chunk->used;
	chunk->used += size;
	return text;
}

size_t weiri_strings_allocated(const struct weiri_strings *strings)
{
	size_t bytes = 0;

	for (; strings != NULL; strings = strings->older)
		bytes += sizeof(*strings) + strings->room;
	return bytes;
}

void weiri_strings_release(struct weiri_strings *strings, const weir_allocator *allocator)
{
	while (strings != NULL) {
		struct weiri_strings *older = strings->older;

		weiri_release(allocator, strings, sizeof(*strings) + strings->room, chunk_alignment);
		strings = older;
	}
}

bool weiri_strings_measure(const weir_bytes strings[], int64_t count, size_t *total)
{
	size_t sum = 0;

	for (int64_t i = 0; i < count; i++)
		if ((strings[i].data == NULL && strings[i].size != 0) || !weiri_add(sum, strings[i].size, &sum))
			return false;
	*total = sum;
	return true;
}

char *weiri_strings_copy(weir_bytes to[], const weir_bytes from[], int64_t count, char *room)
{
	for (int64_t i = 0; i < count; i++) {
		size_t size = from[i].size;

		/* An empty string needs no address, and memcpy() must not be given NULL. */
		to[i] = (weir_bytes){size != 0 ? room : NULL, size};
		if (size != 0)
			room = (char *)memcpy(room, from[i].data, size) + size;
	}
	return room;
}
