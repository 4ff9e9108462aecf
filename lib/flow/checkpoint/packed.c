/*
 * packed.c - see packed.h.
 */
#include "checkpoint/packed.h"

#include <stdalign.h>
#include <string.h>

enum { BITS = 7, PAYLOAD = (1 << BITS) - 1, MORE = 1 << BITS };
/* The size and alignment with which packed.h computes the room for the index. */
_Static_assert(sizeof(struct weiri_saved_key) <= 16 && alignof(struct weiri_saved_key) <= 8, "the index fits");

static char *pack_number(char *to, uint64_t number)
{
	for (; number > PAYLOAD; number >>= BITS)
		*to++ = (char)(unsigned char)(MORE | (number & PAYLOAD));
	*to++ = (char)(unsigned char)number;
	return to;
}

static const char *unpack_number(const char *from, uint64_t *number)
{
	unsigned char byte;
	unsigned shift = 0;

	*number = 0;
	do {
		byte = (unsigned char)*from++;
		*number |= (uint64_t)(byte & PAYLOAD) << shift;
		shift += BITS;
	} while ((byte & MORE) != 0);
	return from;
}

char *weiri_pack(char *to, const struct weiri_saved_tensor *tensor)
{
	size_t size = strlen(tensor->name) + 1;

	memmove(to, tensor->name, size);
	to += size;
	*to++ = (char)(tensor->dtype - weiri_saved_dtypes);
	*to++ = (char)tensor->shape.rank;
	for (uint32_t i = 0; i < tensor->shape.rank; i++)
		to = pack_number(to, (uint64_t)tensor->shape.dims[i]);
	return pack_number(pack_number(to, tensor->begin), tensor->end);
}

const char *weiri_unpack(const char *record, struct weiri_saved_tensor *tensor)
{
	const char *from = record + strlen(record) + 1;

	*tensor = (struct weiri_saved_tensor){.name = record};
	tensor->dtype = &weiri_saved_dtypes[(size_t)*from++];
	tensor->shape.rank = (uint32_t)*from++;
	for (uint32_t i = 0; i < tensor->shape.rank; i++) {
		uint64_t dim;

		from = unpack_number(from, &dim);
		tensor->shape.dims[i] = (int64_t)dim;
	}
	return unpack_number(unpack_number(from, &tensor->begin), &tensor->end);
}

struct weiri_saved_key *weiri_packed_keys(char *end)
{
	size_t past = (uintptr_t)end % alignof(struct weiri_saved_key);

	return (void *)(past != 0 ? end + alignof(struct weiri_saved_key) - past : end);
}
