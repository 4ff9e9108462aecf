/*
 * test_shm_ring.c - the ring between processes: order, bounds, frames, damaged memory, waits.
 */
#include "shm_ring_kit.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <weir/cancel.h>
#include <weir/shm_latest.h>

#include "shm/mapping.h"
#include "stepped.h"

/* -- one process ------------------------------------------------------------------------------- */

Test(shm_ring, items_leave_in_order_at_two_addresses)
{
	const size_t capacities[] = {1, 2, 3, 7, 64, 1000};

	for (size_t c = 0; c < sizeof(capacities) / sizeof(capacities[0]); c++) {
		int file = shm_file();
		weir_shm_ring *one = make(file, capacities[c], ITEM, 2, 1), *two = join(file);
		uint64_t number;

		cr_assert_neq((void *)one, (void *)two);
		cr_assert_eq(weir_shm_ring_capacity(two), capacities[c]);
		cr_assert_eq(weir_shm_ring_item_size(two), (size_t)ITEM);
		for (uint64_t i = 0; i < 3 * capacities[c] + 5; i++) {
			cr_assert_eq(put(one, i), WEIR_OK);
			cr_assert_eq(weir_shm_ring_size_approx(two), 1u);
			cr_assert_eq(get(two, &number), WEIR_OK);
			cr_assert_eq(number, i);
		}
		expect_exact(two, 77);
		expect_whole(one);
		cr_assert_eq(weir_shm_ring_destroy(one, NULL), WEIR_OK);
		expect_exact(two, 7);
		cr_assert_eq(weir_shm_ring_destroy(two, NULL), WEIR_OK);
		(void)close(file);
	}
}

Test(shm_ring, items_of_each_size_are_whole)
{
	const size_t sizes[] = {8, 9, 48, 49, 64, 100, 4096, 262144, 1048576};

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		int file = shm_file();
		weir_shm_ring *ring = make(file, 3, sizes[s], 1, 2);
		struct weir_shm_frame in, out;

		for (int round = 0; round < 7; round++) {
			size_t size = round == 0 ? 0 : sizes[s] - (size_t)(round % 2);

			cr_assert_eq(weir_shm_ring_try_reserve(ring, &in), WEIR_OK);
			cr_assert_eq(in.size, sizes[s]);
			cr_assert_eq((uintptr_t)in.data % (sizes[s] <= 48 ? 16 : 64), 0u);
			memset(in.data, round + 1, size);
			cr_assert_eq(weir_shm_ring_try_publish(ring, &in, size), WEIR_OK);
			cr_assert_eq(weir_shm_ring_try_take(ring, &out), WEIR_OK);
			cr_assert_eq(out.size, size);
			for (size_t i = 0; i < size; i++)
				cr_assert_eq(((unsigned char *)out.data)[i], round + 1);
			cr_assert_eq(weir_shm_ring_release(ring, &out), WEIR_OK);
		}
		expect_whole(ring);
		cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
		(void)close(file);
	}
}

Test(shm_ring, a_process_lends_no_more_frames_than_it_has)
{
	int file = shm_file();
	weir_shm_ring *ring = make(file, 4, ITEM, 2, 2);
	struct weir_shm_frame one, two, three, stale;
	uint64_t number;

	cr_assert_eq(weir_shm_ring_try_reserve(ring, &one), WEIR_OK);
	cr_assert_eq(weir_shm_ring_try_reserve(ring, &two), WEIR_OK);
	cr_assert_neq(one.data, two.data);
	cr_assert_eq(weir_shm_ring_try_reserve(ring, &three), WEIR_RESOURCE_EXHAUSTED);
	cr_assert_eq(weir_shm_ring_try_take(ring, &three), WEIR_RESOURCE_EXHAUSTED);
	cr_assert_eq(put(ring, 1), WEIR_RESOURCE_EXHAUSTED);
	cr_assert_eq(get(ring, &number), WEIR_RESOURCE_EXHAUSTED);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_FAILED_PRECONDITION);
	stale = one;
	cr_assert_eq(weir_shm_ring_try_publish(ring, &one, ITEM + 1), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_try_publish(ring, &one, ITEM), WEIR_OK);
	cr_assert_eq(weir_shm_ring_try_publish(ring, &stale, ITEM), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_release(ring, &stale), WEIR_INVALID_ARGUMENT);
	stale.hand = 64;
	cr_assert_eq(weir_shm_ring_release(ring, &stale), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_try_publish(ring, &stale, ITEM), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_release(ring, &two), WEIR_OK);
	cr_assert_eq(weir_shm_ring_try_take(ring, &two), WEIR_OK);
	/* An item that was taken can be published again, without a copy. */
	cr_assert_eq(weir_shm_ring_try_publish(ring, &two, two.size), WEIR_OK);
	cr_assert_eq(weir_shm_ring_size_approx(ring), 1u);
	expect_whole(ring);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(file);
}

Test(shm_ring, a_full_ring_leaves_the_frame_reserved)
{
	int file = shm_file();
	weir_shm_ring *ring = make(file, 1, ITEM, 1, 2);
	struct weir_shm_frame frame;
	uint64_t number;

	cr_assert_eq(put(ring, 1), WEIR_OK);
	cr_assert_eq(weir_shm_ring_try_reserve(ring, &frame), WEIR_OK);
	memset(frame.data, 0, ITEM);
	cr_assert_eq(weir_shm_ring_try_publish(ring, &frame, ITEM), WEIR_WOULD_BLOCK);
	cr_assert_eq(weir_shm_ring_publish(ring, &frame, ITEM, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_assert_eq(get(ring, &number), WEIR_OK);
	cr_assert_eq(weir_shm_ring_publish(ring, &frame, ITEM, 0, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(file);
}

Test(shm_ring, a_closed_ring_is_drained)
{
	int file = shm_file();
	weir_shm_ring *one = make(file, 2, ITEM, 2, 1), *two = join(file);
	weir_error error = {.message = ""};
	uint64_t number, item[WORDS];
	size_t size;

	cr_assert_eq(put(one, 5), WEIR_OK);
	cr_assert_not(weir_shm_ring_closed(two));
	weir_shm_ring_close(one);
	cr_assert(weir_shm_ring_closed(two));
	cr_assert_eq(put(two, 6), WEIR_CANCELLED);
	cr_assert_eq(get(two, &number), WEIR_OK);
	cr_assert_eq(number, 5u);
	cr_assert_eq(get(two, &number), WEIR_OUT_OF_RANGE);
	cr_assert_eq(get(one, &number), WEIR_OUT_OF_RANGE);
	cr_assert_eq(weir_shm_ring_dequeue(one, item, sizeof(item), &size, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OUT_OF_RANGE);
	cr_assert_not_null(strstr(error.message, "drained"));
	cr_assert_eq(weir_shm_ring_enqueue(one, item, sizeof(item), WEIR_NO_DEADLINE, NULL, &error), WEIR_CANCELLED);
	expect_whole(one);
	cr_assert_eq(weir_shm_ring_destroy(one, NULL), WEIR_OK);
	cr_assert_eq(weir_shm_ring_destroy(two, NULL), WEIR_OK);
	(void)close(file);
}

Test(shm_ring, refuses_what_it_cannot_do)
{
	int file = shm_file(), pipe_ends[2];
	struct weir_shm_ring_options options = {WEIR_SHM_RING_OPTIONS_INIT};
	weir_shm_ring *ring = NULL;
	struct weir_shm_frame frame = {0};
	weir_error error = {.message = ""};
	char item[ITEM];
	size_t size;

	cr_assert_eq(weir_shm_ring_create(file, 4, ITEM, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_create(file, 0, ITEM, NULL, &ring, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_create(file, WEIR_SHM_RING_MAX_CAPACITY + 1, ITEM, NULL, &ring, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_create(file, 4, 7, NULL, &ring, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_create(file, 4, WEIR_SHM_RING_MAX_ITEM + 1, NULL, &ring, &error), WEIR_INVALID_ARGUMENT);
	options.processes = 65;
	cr_assert_eq(weir_shm_ring_create(file, 4, ITEM, &options, &ring, &error), WEIR_INVALID_ARGUMENT);
	options.processes = 1;
	options.frames_per_process = 65;
	cr_assert_eq(weir_shm_ring_create(file, 4, ITEM, &options, &ring, &error), WEIR_INVALID_ARGUMENT);
	options.frames_per_process = 1;
	options.flags = 1;
	cr_assert_eq(weir_shm_ring_create(file, 4, ITEM, &options, &ring, &error), WEIR_INVALID_ARGUMENT);
	options.flags = 0;
	options.struct_size = 3;
	cr_assert_eq(weir_shm_ring_create(file, 4, ITEM, &options, &ring, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_create(-1, 4, ITEM, NULL, &ring, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(pipe(pipe_ends), 0);
	cr_assert_eq(weir_shm_ring_create(pipe_ends[0], 4, ITEM, NULL, &ring, &error), WEIR_RESOURCE_EXHAUSTED);
	cr_assert_eq(weir_shm_ring_attach(pipe_ends[0], &ring, &error), WEIR_FAILED_PRECONDITION);
	cr_assert_eq(weir_shm_ring_attach(-1, &ring, &error), WEIR_FAILED_PRECONDITION);
	cr_assert_eq(weir_shm_ring_attach(file, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_attach(file, &ring, &error), WEIR_FAILED_PRECONDITION, "an empty file");
	cr_assert_null(ring);
	cr_assert_eq(weir_shm_ring_destroy(NULL, &error), WEIR_OK);
	cr_assert_eq(weir_shm_ring_try_reserve(NULL, &frame), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_try_publish(NULL, &frame, 1), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_try_take(NULL, &frame), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_release(NULL, &frame), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_try_enqueue(NULL, item, 1), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_try_dequeue(NULL, item, ITEM, &size), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_recover(NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_publish(NULL, &frame, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_take(NULL, &frame, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_set_bell(NULL, WEIR_SHM_RING_ITEMS, 0), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_ask_bell(NULL, WEIR_SHM_RING_ITEMS), WEIR_INVALID_ARGUMENT);
	weir_shm_ring_close(NULL);
	cr_assert_not(weir_shm_ring_closed(NULL));
	cr_assert_eq(weir_shm_ring_size_approx(NULL) + weir_shm_ring_capacity(NULL) + weir_shm_ring_item_size(NULL), 0u);
	ring = make(file, 4, ITEM, 1, 1);
	cr_assert_eq(weir_shm_ring_try_dequeue(ring, item, ITEM - 1, &size), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_try_enqueue(ring, item, ITEM + 1), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_set_bell(ring, (enum weir_shm_ring_side)2, -1), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_create(file, 4, ITEM, NULL, &ring, &error), WEIR_FAILED_PRECONDITION, "not empty");
	cr_assert_eq(weir_shm_ring_attach(file, &ring, &error), WEIR_RESOURCE_EXHAUSTED, "one seat");
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(file);
}

/* -- files that are no ring -------------------------------------------------------------------- */

Test(shm_ring, each_changed_byte_of_the_head_is_refused)
{
	int file = shm_file();
	weir_shm_ring *ring = make(file, 4, ITEM, 4, 1), *other = NULL;
	unsigned char head[128];

	cr_assert_eq(pread(file, head, sizeof(head), 0), (ssize_t)sizeof(head));
	for (size_t i = 0; i < 16 + sizeof(struct weiri_mapping_head); i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			unsigned char changed = (unsigned char)(head[i] ^ 1u << bit);

			cr_assert_eq(pwrite(file, &changed, 1, (off_t)i), 1);
			cr_assert_neq(weir_shm_ring_attach(file, &other, NULL), WEIR_OK, "byte %zu, bit %u", i, bit);
		}
		cr_assert_eq(pwrite(file, &head[i], 1, (off_t)i), 1);
	}
	other = join(file);
	cr_assert_eq(weir_shm_ring_destroy(other, NULL), WEIR_OK);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(file);
}

/* As mapping.c stores it. */
struct stored_head {
	uint64_t magic;
	struct weiri_mapping_head head;
	uint64_t check;
};

/* Writes a head with a right check sum (FNV-1a), as an attacker would. */
static void write_head(int file, struct stored_head stored)
{
	const unsigned char *bytes = (const unsigned char *)&stored;

	stored.check = UINT64_C(0xCBF29CE484222325);
	for (size_t i = 0; i < offsetof(struct stored_head, check); i++)
		stored.check = (stored.check ^ bytes[i]) * UINT64_C(0x100000001B3);
	cr_assert_eq(pwrite(file, &stored, sizeof(stored), 0), (ssize_t)sizeof(stored));
}

/* 0: the system has no such namespaces. */
static uint64_t number_of(const char *namespace)
{
	struct stat about;

	return stat(namespace, &about) == 0 ? about.st_ino : 0;
}

Test(shm_ring, a_head_of_another_version_is_refused_by_name)
{
	int file = shm_file();
	weir_shm_ring *ring = make(file, 4, ITEM, 2, 1), *other = NULL;
	weir_shm_latest *latest = NULL;
	struct stored_head stored;
	weir_error error = {.message = ""};

	cr_assert_eq(pread(file, &stored, sizeof(stored), 0), (ssize_t)sizeof(stored));
	cr_assert_eq(stored.head.namespace, number_of("/proc/self/ns/pid") << 32 ^ number_of("/proc/self/ns/time"));
	stored.head.version++;
	write_head(file, stored);
	cr_assert_eq(weir_shm_ring_attach(file, &other, &error), WEIR_UNIMPLEMENTED);
	cr_assert_not_null(strstr(error.message, "version 2, this library has 1"), "%s", error.message);
	cr_assert_eq(weir_shm_latest_attach(file, &latest, NULL), WEIR_UNIMPLEMENTED);
	stored.head.version--;
	stored.head.namespace ++;
	write_head(file, stored);
	cr_assert_eq(weir_shm_ring_attach(file, &other, &error), WEIR_FAILED_PRECONDITION);
	cr_assert_not_null(strstr(error.message, "namespace"), "%s", error.message);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(file);
}

Test(shm_ring, a_head_with_wrong_geometry_and_right_check_is_refused)
{
	int file = shm_file();
	weir_shm_ring *ring = make(file, 4, ITEM, 4, 1), *other = NULL;
	const uint32_t numbers[] = {0, 3, 5, 64, 65, 1u << 20, (1u << 20) + 1, 1u << 31, UINT32_MAX};
	struct stored_head right, wrong;

	cr_assert_eq(pread(file, &right, sizeof(right), 0), (ssize_t)sizeof(right));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		for (int field = 0; field < 6; field++) {
			wrong = right;
			switch (field) {
			case 0: wrong.head.capacity = numbers[i]; break;
			case 1: wrong.head.item_size = numbers[i]; break;
			case 2: wrong.head.seats = numbers[i]; break;
			case 3: wrong.head.hands = numbers[i]; break;
			case 4: wrong.head.size = numbers[i]; break;
			default: wrong.head.size = UINT64_MAX - numbers[i];
			}
			if (memcmp(&wrong, &right, sizeof(wrong)) == 0)
				continue;
			write_head(file, wrong);
			cr_assert_neq(weir_shm_ring_attach(file, &other, NULL), WEIR_OK, "field %d is %u", field, numbers[i]);
		}
	}
	write_head(file, right);
	cr_assert_eq(weir_shm_ring_destroy(join(file), NULL), WEIR_OK);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(file);
}

/* The first part of a ring's file, in a file of its own. */
static int copy_of(int file, off_t size, unsigned flags)
{
	int copy = memfd_create("weir-copy", flags | MFD_CLOEXEC);
	static char bytes[1 << 16];

	cr_assert_geq(copy, 0);
	cr_assert_eq(ftruncate(copy, size), 0);
	cr_assert_eq(pread(file, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
	cr_assert_eq(pwrite(copy, bytes, (size_t)(size < (off_t)sizeof(bytes) ? size : (off_t)sizeof(bytes)), 0),
	             size < (off_t)sizeof(bytes) ? size : (ssize_t)sizeof(bytes));
	return copy;
}

Test(shm_ring, a_truncated_or_unsealed_file_is_refused)
{
	int file = shm_file(), copy;
	weir_shm_ring *ring = make(file, 4, ITEM, 4, 1), *other = NULL;
	weir_shm_latest *latest = NULL;
	off_t size = lseek(file, 0, SEEK_END);
	const off_t sizes[] = {0, 1, 63, 64, 65535, 65536, 65537, size / 2, size - 1};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		copy = copy_of(file, sizes[i], MFD_ALLOW_SEALING);
		cr_assert_neq(weir_shm_ring_attach(copy, &other, NULL), WEIR_OK, "%lld bytes", (long long)sizes[i]);
		(void)close(copy);
	}
	copy = copy_of(file, size, 0);
	cr_assert_eq(weir_shm_ring_attach(copy, &other, NULL), WEIR_FAILED_PRECONDITION, "cannot be sealed");
	(void)close(copy);
	copy = copy_of(file, size, MFD_ALLOW_SEALING);
	cr_assert_eq(weir_shm_latest_attach(copy, &latest, NULL), WEIR_INVALID_ARGUMENT, "another kind");
	/* Of the ring it has only the head: hands without frames. It is sealed now, and refused or harmless. */
	if (weir_shm_ring_attach(copy, &other, NULL) == WEIR_OK) {
		cr_assert_eq(weir_shm_ring_destroy(other, NULL), WEIR_OK);
	}
	cr_assert_eq(ftruncate(copy, 65536), -1);
	cr_assert_eq(ftruncate(file, 65536), -1, "the creator seals");
	(void)close(copy);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(file);
}

Test(shm_ring, damaged_memory_makes_wrong_data_and_no_wrong_access)
{
	uint64_t random = 88172645463325252u;

	for (unsigned round = 0; round < 300; round++) {
		int file = shm_file();
		weir_shm_ring *ring = make(file, round % 3 == 0 ? 5 : 8, ITEM, 3, 2), *other = NULL;
		off_t size = lseek(file, 0, SEEK_END);
		uint64_t number = 0;

		for (unsigned i = 0; i < 6; i++)
			(void)put(ring, i);
		for (unsigned i = 0; i < 1 + round % 40; i++) {
			uint64_t word, at;

			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			word = random % 4 == 0 ? UINT64_MAX : random >> random % 60;
			at = (random >> 8) % ((uint64_t)size - 65536 - 8);
			cr_assert_eq(pwrite(file, &word, 8, (off_t)(65536 + (round % 2 == 0 ? at : at % 1024))), 8);
		}
		for (unsigned i = 0; i < 40; i++) {
			(void)put(ring, i);
			(void)get(ring, &number);
			(void)get(ring, &number);
		}
		(void)weir_shm_ring_size_approx(ring);
		if (weir_shm_ring_attach(file, &other, NULL) == WEIR_OK)
			(void)weir_shm_ring_destroy(other, NULL);
		(void)weir_shm_ring_recover(ring, NULL);
		cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
		(void)close(file);
	}
}

/* -- other processes --------------------------------------------------------------------------- */

enum { MANY = 3000 };

struct peers {
	int file, bell;
	weir_shm_ring *parents;
};

static int send_many(void *context)
{
	const struct peers *peers = context;
	uint64_t item[WORDS];
	weir_shm_ring *ring;

	CHILD_CHECK(weir_shm_ring_attach(peers->file, &ring, NULL) == WEIR_OK);
	for (uint64_t n = 1; n <= MANY; n++) {
		for (size_t i = 0; i < WORDS; i++)
			item[i] = n * WORDS + i;
		CHILD_CHECK(weir_shm_ring_enqueue(ring, item, sizeof(item), weir_deadline_in(shm_patience_ns), NULL, NULL) ==
		            WEIR_OK);
	}
	CHILD_CHECK(weir_shm_ring_destroy(ring, NULL) == WEIR_OK);
	return 0;
}

static void receive_many(weir_shm_ring *ring)
{
	for (uint64_t n = 1; n <= MANY; n++) {
		struct weir_shm_frame frame;
		weir_error error = {.message = ""};
		enum weir_status status = weir_shm_ring_take(ring, &frame, weir_deadline_in(shm_patience_ns), NULL, &error);

		cr_assert_eq(status, WEIR_OK, "%s", error.message);
		for (size_t i = 0; i < WORDS; i++)
			cr_assert_eq(((uint64_t *)frame.data)[i], n * WORDS + i);
		cr_assert_eq(weir_shm_ring_release(ring, &frame), WEIR_OK);
	}
}

Test(shm_ring, two_processes_wait_for_each_other)
{
	struct peers peers = {.file = shm_file()};
	weir_shm_ring *ring = make(peers.file, 4, ITEM, 2, 1);
	pid_t child = shm_child(send_many, &peers);

	receive_many(ring);
	shm_join(child);
	expect_whole(ring);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(peers.file);
}

/* Runs before main() in a process that executes this program with the variable set. */
__attribute__((constructor)) static void be_an_executed_peer(void)
{
	const char *descriptor = getenv("WEIR_TEST_SHM_PEER");
	struct peers peers;

	if (descriptor == NULL)
		return;
	peers.file = atoi(descriptor);
	_exit(send_many(&peers) != 0);
}

static int execute(void *context)
{
	const struct peers *peers = context;
	char descriptor[16];

	(void)snprintf(descriptor, sizeof(descriptor), "%d", peers->file);
	CHILD_CHECK(fcntl(peers->file, F_SETFD, 0) == 0);
	CHILD_CHECK(setenv("WEIR_TEST_SHM_PEER", descriptor, 1) == 0);
	(void)execl("/proc/self/exe", "peer", (char *)NULL);
	return __LINE__;
}

Test(shm_ring, an_executed_program_attaches_by_the_descriptor)
{
	struct peers peers = {.file = shm_file()};
	weir_shm_ring *ring = make(peers.file, 16, ITEM, 2, 1);
	pid_t child = shm_child(execute, &peers);

	receive_many(ring);
	shm_join(child);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(peers.file);
}

static int use_the_parents_handle(void *context)
{
	const struct peers *peers = context;
	struct weir_shm_frame frame = {0};
	weir_shm_ring *own;
	uint64_t number;

	CHILD_CHECK(put(peers->parents, 1) == WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(get(peers->parents, &number) == WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(weir_shm_ring_try_reserve(peers->parents, &frame) == WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(weir_shm_ring_try_publish(peers->parents, &frame, 8) == WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(weir_shm_ring_try_take(peers->parents, &frame) == WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(weir_shm_ring_release(peers->parents, &frame) == WEIR_INVALID_ARGUMENT);
	CHILD_CHECK(weir_shm_ring_recover(peers->parents, NULL) == WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(weir_shm_ring_ask_bell(peers->parents, WEIR_SHM_RING_ROOM) == WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(weir_shm_ring_set_bell(peers->parents, WEIR_SHM_RING_ROOM, 1) == WEIR_FAILED_PRECONDITION);
	weir_shm_ring_close(peers->parents);
	CHILD_CHECK(!weir_shm_ring_closed(peers->parents) && weir_shm_ring_size_approx(peers->parents) == 0);
	CHILD_CHECK(weir_shm_ring_destroy(peers->parents, NULL) == WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(weir_shm_ring_attach(peers->file, &own, NULL) == WEIR_OK);
	CHILD_CHECK(put(own, 2) == WEIR_OK);
	return 0;
}

Test(shm_ring, the_child_of_a_fork_cannot_use_its_parents_seat)
{
	struct peers peers = {.file = shm_file()};
	uint64_t number = 0;

	peers.parents = make(peers.file, 2, ITEM, 2, 1);
	shm_join(shm_child(use_the_parents_handle, &peers));
	cr_assert_eq(get(peers.parents, &number), WEIR_OK);
	cr_assert_eq(number, 2u);
	cr_assert_not(weir_shm_ring_closed(peers.parents));
	cr_assert_eq(weir_shm_ring_destroy(peers.parents, NULL), WEIR_OK);
	(void)close(peers.file);
}

/* -- waiting ----------------------------------------------------------------------------------- */

static void *fire(void *context)
{
	(void)weir_cancel_fire(context, &(weir_error){WEIR_UNAVAILABLE, "gone"});
	return NULL;
}

static void *close_it(void *context)
{
	weir_shm_ring_close(context);
	return NULL;
}

Test(shm_ring, a_wait_ends_by_deadline_token_or_close)
{
	int file = shm_file();
	weir_shm_ring *ring = make(file, 2, ITEM, 1, 2);
	struct weir_shm_frame frame;
	weir_error error = {.message = ""};
	weir_cancel *token;
	pthread_t thread;
	uint64_t begun = weir_now_ns();

	cr_assert_eq(weir_shm_ring_take(ring, &frame, weir_deadline_in(1000000), NULL, &error), WEIR_DEADLINE_EXCEEDED);
	cr_assert_geq(weir_now_ns(), begun + 1000000);
	cr_assert_eq(weir_shm_ring_take(ring, &frame, 0, NULL, &error), WEIR_DEADLINE_EXCEEDED);
	for (int i = 0; i < 50; i++) {
		cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
		cr_assert_eq(pthread_create(&thread, NULL, fire, token), 0);
		cr_assert_eq(weir_shm_ring_take(ring, &frame, weir_deadline_in(shm_patience_ns), token, &error),
		             WEIR_CANCELLED);
		cr_assert_eq(weir_shm_ring_take(ring, &frame, WEIR_NO_DEADLINE, token, &error), WEIR_CANCELLED);
		/* The code of a cause is in the message; the status stays WEIR_CANCELLED. */
		cr_assert_str_eq(error.message, "shm_ring: the wait was cancelled by its token; WEIR_UNAVAILABLE: gone");
		cr_assert_eq(pthread_join(thread, NULL), 0);
		weir_cancel_release(token);
	}
	cr_assert_eq(pthread_create(&thread, NULL, close_it, ring), 0);
	cr_assert_eq(weir_shm_ring_take(ring, &frame, WEIR_NO_DEADLINE, NULL, &error), WEIR_OUT_OF_RANGE);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(file);
}

static int ring_the_bell(void *context)
{
	const struct peers *peers = context;
	weir_shm_ring *ring;

	CHILD_CHECK(weir_shm_ring_attach(peers->file, &ring, NULL) == WEIR_OK);
	CHILD_CHECK(weir_shm_ring_set_bell(ring, WEIR_SHM_RING_ITEMS, peers->bell) == WEIR_OK);
	CHILD_CHECK(put(ring, 9) == WEIR_OK);
	CHILD_CHECK(put(ring, 10) == WEIR_OK);
	return 0;
}

static void close_ring(void *ring)
{
	weir_shm_ring_close(ring);
}

/* Who hears the bell of a close finds the ring closed. */
Test(shm_ring, a_close_comes_before_its_bell)
{
	int file, bell, stands;
	struct stepped close_it = {.call = close_ring};
	uint64_t rung = 0;

	stepped_or_skip();
	file = shm_file();
	bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	close_it.context = make(file, 4, ITEM, 1, 1);
	cr_assert_eq(weir_shm_ring_set_bell(close_it.context, WEIR_SHM_RING_ITEMS, bell), WEIR_OK);
	cr_assert_eq(weir_shm_ring_ask_bell(close_it.context, WEIR_SHM_RING_ITEMS), WEIR_OK);
	for (stands = stepped_start(&close_it, 0); stands; stands = stepped_next(&close_it)) {
		if (read(bell, &rung, sizeof(rung)) == (ssize_t)sizeof(rung))
			break;
	}
	cr_assert(weir_shm_ring_closed(close_it.context), "the bell is rung before the close");
	stepped_finish(&close_it);
	cr_assert(rung != 0 || read(bell, &rung, sizeof(rung)) == (ssize_t)sizeof(rung));
	cr_assert_eq(weir_shm_ring_destroy(close_it.context, NULL), WEIR_OK);
	(void)close(bell);
	(void)close(file);
}

Test(shm_ring, a_bell_is_rung_once_for_a_poller_that_asked)
{
	struct peers peers = {.file = shm_file(), .bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	weir_shm_ring *ring = make(peers.file, 4, ITEM, 2, 1);
	struct pollfd readable = {.fd = peers.bell, .events = POLLIN};
	uint64_t count = 0, number;

	cr_assert_eq(weir_shm_ring_ask_bell(ring, WEIR_SHM_RING_ITEMS), WEIR_OK);
	cr_assert_eq(get(ring, &number), WEIR_WOULD_BLOCK);
	shm_join(shm_child(ring_the_bell, &peers));
	cr_assert_eq(poll(&readable, 1, 100000), 1);
	cr_assert_eq(read(peers.bell, &count, sizeof(count)), (ssize_t)sizeof(count));
	cr_assert_eq(count, 1u, "only the first item after the question rings");
	cr_assert_eq(get(ring, &number), WEIR_OK);
	cr_assert_eq(get(ring, &number), WEIR_OK);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(peers.bell);
	(void)close(peers.file);
}

Test(shm_ring, a_bell_that_could_block_or_kill_is_refused)
{
	int file = shm_file(), blocking = eventfd(0, EFD_CLOEXEC), fit = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	weir_shm_ring *ring = make(file, 4, ITEM, 1, 1);
	int ends[2];

	cr_assert_eq(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	cr_assert_eq(weir_shm_ring_set_bell(ring, WEIR_SHM_RING_ITEMS, blocking), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_set_bell(ring, WEIR_SHM_RING_ITEMS, ends[1]), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_ring_set_bell(ring, WEIR_SHM_RING_ITEMS, -2), WEIR_INVALID_ARGUMENT);
	(void)close(ends[0]);
	(void)close(ends[1]);
	cr_assert_eq(weir_shm_ring_set_bell(ring, WEIR_SHM_RING_ITEMS, ends[1]), WEIR_INVALID_ARGUMENT, "closed");
	cr_assert_eq(weir_shm_ring_set_bell(ring, WEIR_SHM_RING_ITEMS, fit), WEIR_OK);
	cr_assert_eq(weir_shm_ring_set_bell(ring, WEIR_SHM_RING_ITEMS, -1), WEIR_OK);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(blocking);
	(void)close(fit);
	(void)close(file);
}

/* In a process of its own, for the limit stays. */
static int create_beyond_the_limit(void *context)
{
	const struct peers *peers = context;
	const struct rlimit limit = {100000, 100000};
	weir_shm_ring *ring = NULL;
	weir_error error = {.message = ""};
	sigset_t pending, mask;

	CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	CHILD_CHECK(weir_shm_ring_create(peers->file, 1024, 4096, NULL, &ring, &error) == WEIR_RESOURCE_EXHAUSTED);
	CHILD_CHECK(strstr(error.message, "cannot grow") != NULL && ring == NULL);
	CHILD_CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, SIGXFSZ) == 0);
	/* A signal that was pending before is still pending. */
	CHILD_CHECK(sigaddset(&mask, SIGXFSZ) == 0 && pthread_sigmask(SIG_BLOCK, &mask, NULL) == 0);
	CHILD_CHECK(weir_shm_ring_create(peers->file, 1024, 4096, NULL, &ring, &error) == WEIR_RESOURCE_EXHAUSTED);
	CHILD_CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 0);
	CHILD_CHECK(raise(SIGXFSZ) == 0);
	CHILD_CHECK(weir_shm_ring_create(peers->file, 1024, 4096, NULL, &ring, &error) == WEIR_RESOURCE_EXHAUSTED);
	CHILD_CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1);
	return 0;
}

Test(shm_ring, a_limit_of_file_size_is_a_status_and_no_signal)
{
	struct peers peers = {.file = shm_file()};

	shm_join(shm_child(create_beyond_the_limit, &peers));
	(void)close(peers.file);
}
