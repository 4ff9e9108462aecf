/*
 * poison.c - see poison.h.
 */
#include "poison.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "harness.h"

enum { MAPPED_FROM = 512 << 10, QUARANTINE = 1024, QUARANTINE_BYTES = 16 << 10, POISON_BYTE = 0xdd };

#define POISON_WORD UINT64_C(0xdddddddddddddddd)
#define LIVE UINT64_C(0x11feb10c11feb10c)
#define DEAD UINT64_C(0xdeadb10cdeadb10c)

/* Lies immediately before the allocated memory. */
struct block {
	uint64_t state;
	size_t size, alignment;
	void *raw;
};

/*
 * Freed blocks, oldest first. With a sanitizer, which has a quarantine of its own, this one stays
 * empty.
 */
static _Atomic(void *) quarantine[QUARANTINE];
static _Atomic(uint64_t) quarantine_next;
static _Atomic(uint64_t) bytes, peak;

static struct block *block_of(void *memory)
{
	return (struct block *)((char *)memory - sizeof(struct block));
}

static void note_peak(uint64_t now)
{
	uint64_t seen = weiri_load_relaxed(&peak); /* [relaxed] a figure */

	while (seen < now && !weiri_cas_relaxed(&peak, &seen, now))
		;
}

/*
 * Large blocks are mapped. Resident memory is then live memory, whatever the allocator of the
 * process keeps.
 */
static void *raw_allocate(size_t size, size_t alignment)
{
	void *raw = NULL;

	if (size < MAPPED_FROM)
		return posix_memalign(&raw, alignment, size) == 0 ? raw : NULL;
	/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file: mmap(2) needs -1 */
	raw = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (raw == MAP_FAILED)
		return NULL;
	return raw;
}

static void raw_free(void *raw, size_t size)
{
	if (size < MAPPED_FROM)
		free(raw);
	else
		(void)munmap(raw, size);
}

static void *allocate(void *context, size_t size, size_t alignment)
{
	size_t offset = (sizeof(struct block) + alignment - 1) / alignment * alignment;
	void *raw = raw_allocate(offset + size, alignment);
	char *memory;

	(void)context;
	STRESS_CHECK(raw != NULL, "the harness has no memory");
	memory = (char *)raw + offset;
	*block_of(memory) = (struct block){LIVE, size, alignment, raw};
	note_peak(weiri_fetch_add_relaxed(&bytes, size) + size); /* [relaxed] a figure */
	return memory;
}

static void really_free(void *memory)
{
	const struct block *block = block_of(memory);
	const unsigned char *byte = memory;

	for (size_t i = 0; i < block->size; i++)
		STRESS_CHECK(byte[i] == POISON_BYTE, "freed memory was written: byte %zu of %zu is 0x%02x", i, block->size,
		             byte[i]);
	raw_free(block->raw, (size_t)((char *)memory - (char *)block->raw) + block->size);
}

static void release(void *context, void *memory, size_t size, size_t alignment)
{
	struct block *block = block_of(memory);

	(void)context;
	STRESS_CHECK(block->state != DEAD, "%zu bytes were freed twice", size);
	STRESS_CHECK(block->state == LIVE,
	             "%zu bytes were freed that were never allocated, or memory before them was overwritten", size);
	STRESS_CHECK(block->size == size && block->alignment == alignment,
	             "freed with size %zu alignment %zu, allocated with %zu, %zu", size, alignment, block->size,
	             block->alignment);
	block->state = DEAD;
	memset(memory, POISON_BYTE, size);
	(void)weiri_fetch_sub_relaxed(&bytes, size); /* [relaxed] a figure */
	if (!STRESS_ASAN && !STRESS_TSAN && size <= QUARANTINE_BYTES) {
		/*
		 * [acq_rel] the block passes from the thread that freed it to the thread that removes it.
		 */
		memory =
			weiri_exchange_acq_rel(&quarantine[weiri_fetch_add_relaxed(&quarantine_next, 1u) % QUARANTINE], memory);
	}
	if (memory != NULL)
		really_free(memory);
}

const weir_allocator *stress_poison(void)
{
	static const weir_allocator allocator = {allocate, release, NULL};

	return &allocator;
}

uint64_t stress_poison_bytes(void)
{
	return weiri_load_relaxed(&bytes); /* [relaxed] a figure */
}

uint64_t stress_poison_peak(void)
{
	return weiri_load_relaxed(&peak); /* [relaxed] a figure */
}

void stress_poison_reset_peak(void)
{
	weiri_store_relaxed(&peak, weiri_load_relaxed(&bytes)); /* [relaxed] a figure */
}

void stress_poison_check_empty(void)
{
	for (size_t i = 0; i < QUARANTINE; i++) {
		void *memory = weiri_exchange_acq_rel(&quarantine[i], NULL); /* [acq_rel] as in release() */

		if (memory != NULL)
			really_free(memory);
	}
	STRESS_CHECK(stress_poison_bytes() == 0, "%" PRIu64 " bytes were not freed", stress_poison_bytes());
}

/* -- payloads ---------------------------------------------------------------------------------- */

static int64_t word_of(uint64_t tag, size_t index)
{
	return (int64_t)(index == 0 ? tag : stress_mix(tag + index));
}

static uint64_t check_words(const int64_t *words, size_t count, const char *who)
{
	uint64_t tag = (uint64_t)words[0];

	for (size_t i = 0; i < count; i++) {
		uint64_t expected = (uint64_t)word_of(tag, i), got = (uint64_t)words[i];

		STRESS_CHECK(got != POISON_WORD, "%s: use after free: word %zu of %zu is poison", who, i, count);
		STRESS_CHECK(got == expected,
		             "%s: word %zu of %zu is 0x%" PRIx64 ", expected 0x%" PRIx64 " of version %" PRIu64, who, i, count,
		             got, expected, tag);
	}
	return tag;
}

static void release_payload(void *context, void *data)
{
	size_t words = (size_t)(uintptr_t)context;

	(void)check_words(data, words, "a payload that is being freed");
	release(NULL, data, words * sizeof(int64_t), WEIR_TENSOR_ALIGNMENT);
}

weir_tensor *stress_payload(uint64_t tag, size_t words)
{
	weir_shape shape = {1, {(int64_t)words}};
	int64_t *data = allocate(NULL, words * sizeof(*data), WEIR_TENSOR_ALIGNMENT);
	weir_tensor *tensor = NULL;
	enum weir_status status;

	for (size_t i = 0; i < words; i++)
		data[i] = word_of(tag, i);
	status =
		weir_tensor_wrap(WEIR_I64, &shape, data, release_payload, (void *)(uintptr_t)words, stress_poison(), &tensor);
	STRESS_CHECK(status == WEIR_OK, "weir_tensor_wrap: %s", weir_status_name(status));
	return tensor;
}

uint64_t stress_payload_check(const weir_tensor *tensor, const char *who)
{
	STRESS_CHECK(tensor != NULL, "%s: no tensor", who);
	STRESS_CHECK(weir_tensor_element_count(tensor) >= 1 && weir_tensor_dtype(tensor) == WEIR_I64, "%s: not a payload",
	             who);
	return check_words(weir_tensor_data(tensor), (size_t)weir_tensor_element_count(tensor), who);
}
