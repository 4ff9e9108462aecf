/*
 * ring.c - the public face of the ring: creating, and choosing the format.
 */
#include "ring/ring.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/options.h"

/* Copies the options to *given; afterwards given->format is not WEIR_RING_FORMAT_BEST. */
static enum weir_status read_options(size_t capacity, const struct weir_ring_options *options, weir_ring **out,
                                     struct weir_ring_options *given, weir_error *error)
{
	enum weir_status status;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "ring: out is NULL");
	if (capacity == 0 || capacity > WEIR_RING_MAX_CAPACITY)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "ring: capacity is %zu, must be 1 to %d", capacity,
		                  WEIR_RING_MAX_CAPACITY);
	status = weiri_options_read("ring", options, given, sizeof(*given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags("ring", given->flags, 0, error);
	if (status != WEIR_OK)
		return status;
	if (given->format > WEIR_RING_FORMAT_SPAN16)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "ring: %d is not a format", (int)given->format);
	if ((given->format == WEIR_RING_FORMAT_LTQ16 || given->format == WEIR_RING_FORMAT_SPAN16) &&
	    !weiri_ltq16_available())
		return weiri_fail(error, WEIR_UNIMPLEMENTED, "ring: this machine has no lock-free 16-byte CAS");
	if (given->format == WEIR_RING_FORMAT_BEST)
		given->format = weiri_ltq16_available() ? WEIR_RING_FORMAT_LTQ16 : WEIR_RING_FORMAT_LTQ64;
	return WEIR_OK;
}

_Static_assert((int)WEIR_RING_ALIGNMENT == (int)WEIRI_APART, "what the header promises");

static size_t size_of(size_t capacity, enum weir_ring_format format)
{
	switch (format) {
	case WEIR_RING_FORMAT_LTQ16: return sizeof(struct weir_ring) + weiri_ltq16_slots_size(capacity);
	case WEIR_RING_FORMAT_SPAN16: return sizeof(struct weir_ring) + weiri_span16_slots_size(capacity);
	default: return sizeof(struct weir_ring) + weiri_ltq64_slots_size(capacity);
	}
}

static struct weiri_ring_shape shape_of(size_t capacity)
{
	struct weiri_ring_shape shape = {.shift = 0};

	while ((size_t)1 << shape.shift < capacity)
		shape.shift++;
	shape.mask = ((size_t)1 << shape.shift) - 1;
	shape.end_index = capacity & shape.mask;
	return shape;
}

/* Makes a ring in `memory`, which is cleared and as large as size_of() says. */
static weir_ring *make(void *memory, size_t capacity, enum weir_ring_format format)
{
	weir_ring *ring = memory;

	ring->capacity = capacity;
	ring->format = format;
	ring->shape = shape_of(capacity);
	ring->slots = ring->end; /* LTQ16: all slots zero, which is free for lap 0 */
	if (format == WEIR_RING_FORMAT_LTQ64)
		weiri_ltq64_init(ring, ring->end);
	if (format == WEIR_RING_FORMAT_SPAN16)
		weiri_span16_init(ring, ring->end);
	return ring;
}

enum weir_status weir_ring_create(size_t capacity, const struct weir_ring_options *options, weir_ring **out,
                                  weir_error *error)
{
	struct weir_ring_options given;
	enum weir_status status = read_options(capacity, options, out, &given, error);
	weir_allocator allocator;
	size_t size;
	void *memory;

	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(given.allocator);
	size = size_of(capacity, given.format);
	memory = weiri_allocate_zeroed(&allocator, size, WEIRI_APART);
	if (memory == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "ring: no memory for %zu values", capacity);
	*out = make(memory, capacity, given.format);
	(*out)->memory_size = size;
	(*out)->allocator = allocator;
	return WEIR_OK;
}

size_t weir_ring_memsize(size_t capacity, const struct weir_ring_options *options)
{
	struct weir_ring_options given;
	weir_ring *ring;

	return read_options(capacity, options, &ring, &given, NULL) == WEIR_OK ? size_of(capacity, given.format) : 0;
}

enum weir_status weir_ring_init(void *memory, size_t size, size_t capacity, const struct weir_ring_options *options,
                                weir_ring **out, weir_error *error)
{
	struct weir_ring_options given;
	enum weir_status status = read_options(capacity, options, out, &given, error);

	if (status != WEIR_OK)
		return status;
	if (memory == NULL || (uintptr_t)memory % WEIR_RING_ALIGNMENT != 0 || size < size_of(capacity, given.format))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "ring: %zu bytes at %p, expected %zu aligned to %d", size,
		                  memory, size_of(capacity, given.format), WEIR_RING_ALIGNMENT);
	memset(memory, 0, size_of(capacity, given.format));
	*out = make(memory, capacity, given.format);
	return WEIR_OK;
}

enum weir_status weir_ring_destroy(weir_ring *ring, weir_error *error)
{
	(void)error; /* it never fails */
	/* memory_size 0: the memory is the caller's. */
	if (ring != NULL && ring->memory_size != 0) {
		weir_allocator allocator = ring->allocator;

		WEIR_ASSERT_WALK(weiri_ring_assert_whole(ring));
		weiri_release(&allocator, ring, ring->memory_size, WEIRI_APART);
	}
	return WEIR_OK;
}

enum weir_status weir_ring_try_enqueue(weir_ring *ring, uint64_t value)
{
	if (WEIRI_UNLIKELY(ring == NULL))
		return WEIR_INVALID_ARGUMENT;
	return weiri_ring_enqueue_one(ring, value);
}

enum weir_status weir_ring_try_dequeue(weir_ring *ring, uint64_t *value)
{
	if (WEIRI_UNLIKELY(ring == NULL || value == NULL))
		return WEIR_INVALID_ARGUMENT;
	if (WEIRI_LIKELY(ring->format == WEIR_RING_FORMAT_LTQ16))
		return weiri_ltq16_dequeue(ring, value);
	return ring->format == WEIR_RING_FORMAT_SPAN16 ? weiri_span16_dequeue(ring, value)
	                                               : weiri_ltq64_dequeue(ring, value);
}

enum weir_status weir_ring_try_enqueue_many(weir_ring *ring, const uint64_t values[], size_t count, size_t *done)
{
	enum weir_status status;

	if (ring == NULL || done == NULL || (values == NULL && count != 0))
		return WEIR_INVALID_ARGUMENT;
	*done = weiri_ring_enqueue(ring, values, count, false, &status);
	return *done != 0 || count == 0 ? WEIR_OK : status;
}

enum weir_status weir_ring_try_dequeue_many(weir_ring *ring, uint64_t values[], size_t count, size_t *done)
{
	enum weir_status status;

	if (ring == NULL || done == NULL || (values == NULL && count != 0))
		return WEIR_INVALID_ARGUMENT;
	*done = weiri_ring_dequeue(ring, values, count, WEIRI_RING_SEAL, NULL, &status);
	return *done != 0 || count == 0 ? WEIR_OK : status;
}

size_t weiri_ring_enqueue(weir_ring *ring, const uint64_t values[], size_t count, bool admitted,
                          enum weir_status *status)
{
	return weiri_ring_ops_of(ring)->enqueue(ring, values, count, admitted, status);
}

size_t weiri_ring_dequeue(weir_ring *ring, uint64_t values[], size_t count, enum weiri_ring_at_end at_end,
                          weiri_ring_before *before, enum weir_status *status)
{
	return weiri_ring_ops_of(ring)->dequeue(ring, values, count, at_end, before, status);
}

void weir_ring_close(weir_ring *ring)
{
	if (ring != NULL)
		/* [P3 release] see algorithm.h. */
		weiri_store_release(&ring->closed, 1u);
}

bool weir_ring_closed(const weir_ring *ring)
{
	/* [P3 acquire] pairs with weir_ring_close(). */
	return ring != NULL && weiri_load_acquire(&ring->closed) != 0;
}

size_t weir_ring_capacity(const weir_ring *ring)
{
	return ring != NULL ? ring->capacity : 0;
}

struct weiri_ring_counts weiri_ring_counts(const weir_ring *ring)
{
	return weiri_ring_ops_of(ring)->counts(ring);
}

bool weiri_ring_can_draw(const weir_ring *ring, size_t min_left)
{
	struct weiri_ring_counts counts;

	if (min_left == 0 || weir_ring_closed(ring))
		return weiri_ring_ops_of(ring)->has_value(ring);
	do { /* `out` was exact at an earlier moment than `in`: if it has not changed, both are of one */
		counts = weiri_ring_counts(ring);
	} while (counts.in - counts.out > min_left && weiri_ring_counts(ring).out != counts.out);
	return counts.in - counts.out > min_left;
}

size_t weir_ring_size_approx(const weir_ring *ring)
{
	struct weiri_ring_counts counts;
	uint64_t size;

	if (ring == NULL)
		return 0;
	counts = weiri_ring_counts(ring);
	size = counts.in > counts.out ? counts.in - counts.out : 0;
	return size < ring->capacity ? (size_t)size : ring->capacity;
}

enum weir_ring_format weir_ring_format(const weir_ring *ring)
{
	return ring != NULL ? ring->format : WEIR_RING_FORMAT_BEST;
}
