/*
 * fuzz_shm.c - any bytes as the contents of shared memory: calls refuse or return wrong data, but
 * access nothing outside of the mapping.
 *
 * The input is a list of steps, a byte each and their arguments. A step writes a word into the file,
 * or makes a call. Each frame that a call lends must lie inside the mapping, with all its bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weir/shm_latest.h>
#include <weir/shm_ring.h>

#include "shm/frames.h"

enum { HEAD = 1 << 16, MOST_STEPS = 400, ITEM = 24, VALUE = 100 };

struct input {
	const uint8_t *bytes;
	size_t size;
};

static uint8_t next(struct input *input)
{
	if (input->size == 0)
		return 0;
	input->size--;
	return *input->bytes++;
}

static uint64_t next_word(struct input *input)
{
	uint64_t word = 0;
	size_t size = next(input) % 9;

	for (size_t i = 0; i < size; i++)
		word = word << 8 | next(input);
	return word;
}

/* Writes a word into the head, the words of the ring, or anywhere. */
static void damage(struct input *input, int file, size_t size)
{
	uint64_t word = next_word(input), at = next(input) | (uint64_t)next(input) << 8;
	int where = next(input) % 3;

	at = where == 0 ? at % 80 : where == 1 ? HEAD + at % 4096 : HEAD + at % (size - HEAD);
	if (at + sizeof(word) <= size && pwrite(file, &word, sizeof(word), (off_t)at) != (ssize_t)sizeof(word))
		abort();
}

static void expect_inside(weir_shm_ring *ring, const struct weir_shm_frame *frame)
{
	const struct weiri_frames *frames = (const struct weiri_frames *)(void *)ring;
	const char *data = frame->data;

	if (data < frames->shared || frame->size > ITEM || data + ITEM > frames->shared + frames->layout.size)
		abort();
	memset(frame->data, 7, ITEM);
}

static void use_ring(struct input *input, weir_shm_ring *ring)
{
	struct weir_shm_frame frame;
	char item[ITEM] = {0};
	size_t size;

	switch (next(input) % 6) {
	case 0: (void)weir_shm_ring_try_enqueue(ring, item, next(input) % (ITEM + 2)); break;
	case 1:
		if (weir_shm_ring_try_dequeue(ring, item, sizeof(item), &size) == WEIR_OK && size > ITEM)
			abort();
		break;
	case 2:
		if (weir_shm_ring_try_take(ring, &frame) == WEIR_OK) {
			expect_inside(ring, &frame);
			(void)weir_shm_ring_release(ring, &frame);
		}
		break;
	case 3: (void)weir_shm_ring_recover(ring, NULL); break;
	case 4:
		if (weir_shm_ring_size_approx(ring) > weir_shm_ring_capacity(ring))
			abort();
		break;
	default:
		if (weir_shm_ring_try_reserve(ring, &frame) == WEIR_OK) {
			expect_inside(ring, &frame);
			if (weir_shm_ring_try_publish(ring, &frame, next(input) % (ITEM + 1)) != WEIR_OK)
				(void)weir_shm_ring_release(ring, &frame);
		}
	}
}

static void fuzz_ring(struct input *input)
{
	struct weir_shm_ring_options options = {WEIR_SHM_RING_OPTIONS_INIT, .processes = 1 + next(input) % 4,
	                                        .frames_per_process = 1 + next(input) % 3};
	int file = memfd_create("fuzz", MFD_ALLOW_SEALING);
	weir_shm_ring *ring, *other;
	size_t size;

	if (weir_shm_ring_create(file, 1 + next(input) % 9, ITEM, &options, &ring, NULL) != WEIR_OK)
		abort();
	size = (size_t)lseek(file, 0, SEEK_END);
	for (int i = 0; i < MOST_STEPS && input->size > 0; i++) {
		if (next(input) % 2 == 0)
			damage(input, file, size);
		else
			use_ring(input, ring);
	}
	if (weir_shm_ring_attach(file, &other, NULL) == WEIR_OK) {
		use_ring(input, other);
		(void)weir_shm_ring_destroy(other, NULL);
	}
	(void)weir_shm_ring_destroy(ring, NULL);
	(void)close(file);
}

static void fuzz_latest(struct input *input)
{
	struct weir_shm_latest_options options = {WEIR_SHM_LATEST_OPTIONS_INIT, .processes = 1 + next(input) % 4,
	                                          .reads_per_process = 1 + next(input) % 3};
	int file = memfd_create("fuzz", MFD_ALLOW_SEALING);
	weir_shm_latest *latest, *other;
	char value[VALUE] = {0};
	size_t size, found;

	if (weir_shm_latest_create(file, VALUE, &options, &latest, NULL) != WEIR_OK)
		abort();
	size = (size_t)lseek(file, 0, SEEK_END);
	for (int i = 0; i < MOST_STEPS && input->size > 0; i++) {
		switch (next(input) % 3) {
		case 0: damage(input, file, size); break;
		case 1: (void)weir_shm_latest_write(latest, value, 1 + next(input) % VALUE, NULL, NULL); break;
		default:
			if (weir_shm_latest_try_read(latest, next(input), value, VALUE, &found, NULL) == WEIR_OK && found > VALUE)
				abort();
		}
	}
	if (weir_shm_latest_attach(file, &other, NULL) == WEIR_OK) {
		(void)weir_shm_latest_write(other, value, VALUE, NULL, NULL);
		(void)weir_shm_latest_destroy(other, NULL);
	}
	(void)weir_shm_latest_destroy(latest, NULL);
	(void)close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};

	if (next(&input) % 2 == 0)
		fuzz_ring(&input);
	else
		fuzz_latest(&input);
	return 0;
}
