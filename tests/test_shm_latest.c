/*
 * test_shm_latest.c - the newest value between processes: versions, the writer's role, death at each
 * instruction.
 */
#include "shm_kit.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <weir/cancel.h>
#include <weir/shm_latest.h>
#include <weir/shm_ring.h>

enum { WORDS = 64, VALUE = WORDS * sizeof(uint64_t) };

static weir_shm_latest *make(int file, size_t value_size, uint32_t processes, uint32_t reads)
{
	struct weir_shm_latest_options options = {WEIR_SHM_LATEST_OPTIONS_INIT, .processes = processes,
	                                          .reads_per_process = reads};
	weir_shm_latest *latest = NULL;
	weir_error error = {.message = ""};

	cr_assert_eq(weir_shm_latest_create(file, value_size, &options, &latest, &error), WEIR_OK, "%s", error.message);
	return latest;
}

static weir_shm_latest *join(int file)
{
	weir_shm_latest *latest = NULL;
	weir_error error = {.message = ""};

	cr_assert_eq(weir_shm_latest_attach(file, &latest, &error), WEIR_OK, "%s", error.message);
	return latest;
}

/* A value whose words all tell its number. */
static enum weir_status put(weir_shm_latest *latest, uint64_t number)
{
	uint64_t value[WORDS], version = 0;
	enum weir_status status;

	for (size_t i = 0; i < WORDS; i++)
		value[i] = number * WORDS + i;
	status = weir_shm_latest_write(latest, value, sizeof(value), &version, NULL);
	return status;
}

/* *number is UINT64_MAX if the value is torn. */
static enum weir_status get(weir_shm_latest *latest, uint64_t newer_than, uint64_t *number, uint64_t *version)
{
	uint64_t value[WORDS];
	size_t size = 0;
	enum weir_status status = weir_shm_latest_try_read(latest, newer_than, value, sizeof(value), &size, version);

	if (status != WEIR_OK)
		return status;
	*number = value[0] / WORDS;
	for (size_t i = 0; i < WORDS; i++) {
		if (size != sizeof(value) || value[i] != *number * WORDS + i)
			*number = UINT64_MAX;
	}
	return WEIR_OK;
}

Test(shm_latest, versions_grow_and_are_seen_at_two_addresses)
{
	int file = shm_file();
	weir_shm_latest *one = make(file, VALUE, 2, 1), *two = join(file);
	uint64_t number = 0, version = 0;

	cr_assert_eq(weir_shm_latest_version(two), 0u);
	cr_assert_eq(get(two, 0, &number, &version), WEIR_WOULD_BLOCK);
	for (uint64_t i = 1; i < 50; i++) {
		cr_assert_eq(put(one, i + 100), WEIR_OK);
		cr_assert_eq(weir_shm_latest_version(two), i);
		cr_assert_eq(get(two, i - 1, &number, &version), WEIR_OK);
		cr_assert_eq(version, i);
		cr_assert_eq(number, i + 100);
		cr_assert_eq(get(two, i, &number, &version), WEIR_WOULD_BLOCK);
		cr_assert_eq(get(two, 0, &number, &version), WEIR_OK);
		cr_assert_eq(get(one, 0, &number, NULL), WEIR_OK);
	}
	cr_assert_eq(weir_shm_latest_value_size(two), (size_t)VALUE);
	cr_assert_eq(weir_shm_latest_destroy(one, NULL), WEIR_OK);
	cr_assert_eq(get(two, 0, &number, &version), WEIR_OK);
	cr_assert_eq(version, 49u);
	cr_assert_eq(weir_shm_latest_destroy(two, NULL), WEIR_OK);
	(void)close(file);
}

Test(shm_latest, one_handle_is_the_writer_until_it_is_destroyed)
{
	int file = shm_file();
	weir_shm_latest *one = make(file, VALUE, 2, 1), *two = join(file);
	weir_error error = {.message = ""};
	uint64_t number = 0, version = 0, word = 1;

	cr_assert_eq(put(one, 1), WEIR_OK);
	cr_assert_eq(weir_shm_latest_write(two, &word, sizeof(word), NULL, &error), WEIR_FAILED_PRECONDITION);
	cr_assert_not_null(strstr(error.message, "is the writer"));
	cr_assert_eq(weir_shm_latest_destroy(one, NULL), WEIR_OK);
	one = join(file); /* in the seat of the writer that has left */
	cr_assert_eq(put(two, 2), WEIR_OK);
	cr_assert_eq(get(two, 1, &number, &version), WEIR_OK);
	cr_assert_eq(number, 2u);
	cr_assert_eq(version, 2u);
	cr_assert_eq(put(one, 3), WEIR_FAILED_PRECONDITION);
	cr_assert_eq(weir_shm_latest_destroy(one, NULL), WEIR_OK);
	cr_assert_eq(weir_shm_latest_destroy(two, NULL), WEIR_OK);
	(void)close(file);
}

Test(shm_latest, refuses_what_it_cannot_do)
{
	int file = shm_file();
	struct weir_shm_latest_options options = {WEIR_SHM_LATEST_OPTIONS_INIT};
	weir_shm_latest *latest = NULL;
	weir_shm_ring *ring = NULL;
	weir_error error = {.message = ""};
	char value[VALUE] = {0};
	size_t size = 7;

	cr_assert_eq(weir_shm_latest_create(file, VALUE, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_create(file, 0, NULL, &latest, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_create(file, (size_t)WEIR_SHM_LATEST_MAX_VALUE + 1, NULL, &latest, &error),
	             WEIR_INVALID_ARGUMENT);
	options.processes = 65;
	cr_assert_eq(weir_shm_latest_create(file, VALUE, &options, &latest, &error), WEIR_INVALID_ARGUMENT);
	options.processes = 1;
	options.reads_per_process = 17;
	cr_assert_eq(weir_shm_latest_create(file, VALUE, &options, &latest, &error), WEIR_INVALID_ARGUMENT);
	options.reads_per_process = 1;
	options.flags = 4;
	cr_assert_eq(weir_shm_latest_create(file, VALUE, &options, &latest, &error), WEIR_INVALID_ARGUMENT);
	options.flags = 0;
	cr_assert_eq(weir_shm_latest_attach(file, &latest, &error), WEIR_FAILED_PRECONDITION);
	cr_assert_eq(weir_shm_latest_attach(file, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_create(file, VALUE, &options, &latest, &error), WEIR_OK);
	cr_assert_eq(weir_shm_ring_attach(file, &ring, &error), WEIR_INVALID_ARGUMENT, "another kind");
	cr_assert_eq(weir_shm_latest_write(latest, value, VALUE + 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_write(latest, value, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_write(latest, NULL, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_write(NULL, value, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_write(latest, value, 1, NULL, &error), WEIR_OK);
	cr_assert_eq(weir_shm_latest_try_read(latest, 0, value, VALUE - 1, &size, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_try_read(NULL, 0, value, VALUE, &size, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_read(NULL, 0, value, VALUE, NULL, NULL, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_read(latest, 0, value, 1, NULL, NULL, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_try_read(latest, 0, value, VALUE, &size, NULL), WEIR_OK);
	cr_assert_eq(size, 1u);
	cr_assert_eq(weir_shm_latest_set_bell(latest, -2), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_set_bell(NULL, -1), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_ask_bell(NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_shm_latest_version(NULL) + weir_shm_latest_value_size(NULL), 0u);
	cr_assert_eq(weir_shm_latest_destroy(latest, NULL), WEIR_OK);
	cr_assert_eq(weir_shm_latest_destroy(NULL, NULL), WEIR_OK);
	(void)close(file);
}

/* The word of the newest version: the version, and in its low bits the number of the buffer. */
static uint64_t *word_of(void *memory, size_t size, uint64_t version, unsigned bits)
{
	uint64_t *word = memory;

	while ((char *)word < (char *)memory + size && *word >> bits != version)
		word++;
	cr_assert((char *)word < (char *)memory + size);
	return word;
}

Test(shm_latest, a_number_of_no_buffer_is_damage)
{
	enum { BITS = 2, VERSIONS = 1000 }; /* of 3 buffers; no other word before the buffers is so great */
	int file = shm_file();
	weir_shm_latest *latest = make(file, VALUE, 1, 1);
	weir_error error = {.message = ""};
	uint64_t value[WORDS], number = 0, version = 0, *word, right;
	off_t size = lseek(file, 0, SEEK_END);
	void *memory = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	cr_assert_neq(memory, MAP_FAILED);
	for (uint64_t i = 1; i <= VERSIONS; i++)
		cr_assert_eq(put(latest, i), WEIR_OK);
	word = word_of(memory, (size_t)size, VERSIONS, BITS);
	right = *word;
	*word |= (1u << BITS) - 1;
	cr_assert_eq(get(latest, 0, &number, &version), WEIR_DATA_LOSS);
	cr_assert_eq(weir_shm_latest_read(latest, 0, value, sizeof(value), NULL, NULL, 0, NULL, &error), WEIR_DATA_LOSS);
	cr_assert_not_null(strstr(error.message, "damaged"), "%s", error.message);
	*word = right;
	cr_assert_eq(get(latest, 0, &number, &version), WEIR_OK);
	cr_assert_eq(number, (uint64_t)VERSIONS);
	cr_assert_eq(munmap(memory, (size_t)size), 0);
	cr_assert_eq(weir_shm_latest_destroy(latest, NULL), WEIR_OK);
	(void)close(file);
}

/* -- waiting ----------------------------------------------------------------------------------- */

static void *fire(void *context)
{
	(void)weir_cancel_fire(context, NULL);
	return NULL;
}

Test(shm_latest, a_wait_ends_by_deadline_or_token)
{
	int file = shm_file();
	weir_shm_latest *latest = make(file, VALUE, 1, 1);
	weir_error error = {.message = ""};
	weir_cancel *token;
	pthread_t thread;
	char value[VALUE];

	cr_assert_eq(weir_shm_latest_read(latest, 0, value, VALUE, NULL, NULL, weir_deadline_in(1000000), NULL, &error),
	             WEIR_DEADLINE_EXCEEDED);
	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	cr_assert_eq(pthread_create(&thread, NULL, fire, token), 0);
	cr_assert_eq(weir_shm_latest_read(latest, 0, value, VALUE, NULL, NULL, WEIR_NO_DEADLINE, token, &error),
	             WEIR_CANCELLED);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	weir_cancel_release(token);
	cr_assert_eq(weir_shm_latest_destroy(latest, NULL), WEIR_OK);
	(void)close(file);
}

enum { WRITES = 20000 };

struct peers {
	int file, bell;
	weir_shm_latest *parents;
	bool reads;
};

static int write_many(void *context)
{
	const struct peers *peers = context;
	weir_shm_latest *latest;

	CHILD_CHECK(weir_shm_latest_attach(peers->file, &latest, NULL) == WEIR_OK);
	CHILD_CHECK(weir_shm_latest_set_bell(latest, peers->bell) == WEIR_OK);
	for (uint64_t n = 1; n <= WRITES; n++)
		CHILD_CHECK(put(latest, n) == WEIR_OK);
	return 0;
}

Test(shm_latest, a_reader_follows_a_writing_process)
{
	struct peers peers = {.file = shm_file(), .bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	weir_shm_latest *latest = make(peers.file, VALUE, 2, 1);
	uint64_t value[WORDS], version = 0, before = 0;
	weir_error error = {.message = ""};
	pid_t child = shm_child(write_many, &peers);

	while (version < WRITES) {
		enum weir_status status = weir_shm_latest_read(latest, before, value, sizeof(value), NULL, &version,
		                                               weir_deadline_in(shm_patience_ns), NULL, &error);

		cr_assert_eq(status, WEIR_OK, "%s", error.message);
		cr_assert_gt(version, before);
		for (size_t i = 0; i < WORDS; i++)
			cr_assert_eq(value[i], version * WORDS + i, "version %llu is torn", (unsigned long long)version);
		before = version;
	}
	shm_join(child);
	cr_assert_eq(weir_shm_latest_destroy(latest, NULL), WEIR_OK);
	(void)close(peers.bell);
	(void)close(peers.file);
}

static int use_the_parents_handle(void *context)
{
	const struct peers *peers = context;
	uint64_t number, version, value[WORDS];
	weir_error error = {.message = ""};

	CHILD_CHECK(put(peers->parents, 1) == WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(get(peers->parents, 0, &number, &version) == WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(weir_shm_latest_read(peers->parents, 0, value, sizeof(value), NULL, NULL, 0, NULL, &error) ==
	            WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(strstr(error.message, "belongs to the parent") != NULL);
	CHILD_CHECK(weir_shm_latest_version(peers->parents) == 0);
	CHILD_CHECK(weir_shm_latest_set_bell(peers->parents, -1) == WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(weir_shm_latest_ask_bell(peers->parents) == WEIR_FAILED_PRECONDITION);
	CHILD_CHECK(weir_shm_latest_destroy(peers->parents, NULL) == WEIR_FAILED_PRECONDITION);
	return 0;
}

Test(shm_latest, the_child_of_a_fork_cannot_use_its_parents_seat)
{
	struct peers peers = {.file = shm_file()};
	uint64_t number = 0;

	peers.parents = make(peers.file, VALUE, 1, 1);
	cr_assert_eq(put(peers.parents, 3), WEIR_OK);
	shm_join(shm_child(use_the_parents_handle, &peers));
	cr_assert_eq(get(peers.parents, 0, &number, NULL), WEIR_OK);
	cr_assert_eq(number, 3u);
	cr_assert_eq(weir_shm_latest_destroy(peers.parents, NULL), WEIR_OK);
	(void)close(peers.file);
}

/* -- kill -9 ----------------------------------------------------------------------------------- */

static int die_in_a_call(void *context)
{
	const struct peers *peers = context;
	weir_shm_latest *latest;
	uint64_t number, version;

	CHILD_CHECK(weir_shm_latest_attach(peers->file, &latest, NULL) == WEIR_OK);
	if (!peers->reads)
		CHILD_CHECK(put(latest, 2) == WEIR_OK); /* it is the writer now */
	CHILD_CHECK(shm_begin_steps() == 0);
	if (peers->reads)
		(void)get(latest, 0, &number, &version);
	else
		(void)put(latest, 3);
	(void)shm_end_steps();
	return 0;
}

static int die_at(bool reads, size_t at)
{
	struct peers peers = {.file = shm_file(), .reads = reads};
	weir_shm_latest *latest = make(peers.file, VALUE, 2, 1), *other;
	uint64_t number = 0, version = 0, before;
	int goes_on;

	if (reads)
		cr_assert_eq(put(latest, 2), WEIR_OK);
	goes_on = shm_kill_after(shm_stepped_child(die_in_a_call, &peers), at);
	cr_assert_eq(get(latest, 0, &number, &version), WEIR_OK);
	cr_assert(version <= 2 && number == version + 1, "version %llu has value %llu", (unsigned long long)version,
	          (unsigned long long)number);
	before = version;
	/* Its buffer stays pinned; more writes than there are buffers. */
	for (uint64_t i = 1; i <= 6; i++) {
		cr_assert_eq(put(latest, 10 + i), WEIR_OK, "it takes over the role");
		cr_assert_eq(get(latest, before, &number, &version), WEIR_OK);
		cr_assert_eq(number, 10 + i);
		cr_assert_eq(version, before + 1);
		before = version;
	}
	other = join(peers.file); /* in the seat of the dead process */
	cr_assert_eq(get(other, 0, &number, &version), WEIR_OK);
	cr_assert_eq(number, 16u);
	cr_assert_eq(put(other, 1), WEIR_FAILED_PRECONDITION);
	cr_assert_eq(weir_shm_latest_destroy(other, NULL), WEIR_OK);
	cr_assert_eq(weir_shm_latest_destroy(latest, NULL), WEIR_OK);
	(void)close(peers.file);
	return goes_on;
}

Test(shm_latest, a_writer_is_killed_at_each_instruction)
{
	shm_steps_or_skip();
	for (size_t at = 0; die_at(false, at); at += SHM_STEP_STRIDE * 5)
		;
}

Test(shm_latest, a_reader_is_killed_at_each_instruction)
{
	shm_steps_or_skip();
	for (size_t at = 0; die_at(true, at); at += SHM_STEP_STRIDE * 5)
		;
}

static int write_for_ever(void *context)
{
	const struct peers *peers = context;
	weir_shm_latest *latest;

	CHILD_CHECK(weir_shm_latest_attach(peers->file, &latest, NULL) == WEIR_OK);
	for (;;) {
		uint64_t version = weir_shm_latest_version(latest);

		(void)put(latest, version + 1); /* refused while another process is the writer */
	}
}

static int read_for_ever(void *context)
{
	const struct peers *peers = context;
	weir_shm_latest *latest;
	uint64_t number = 0, version = 0, before = 0;

	CHILD_CHECK(weir_shm_latest_attach(peers->file, &latest, NULL) == WEIR_OK);
	for (;;) {
		if (get(latest, 0, &number, &version) != WEIR_OK)
			continue;
		CHILD_CHECK(number != UINT64_MAX && version >= before);
		before = version;
	}
}

Test(shm_latest, writers_and_readers_are_killed_at_random)
{
	enum { WRITERS = 2, CHILDREN = 4, KILLS = 150 };
	struct peers peers = {.file = shm_file()};
	weir_shm_latest *latest = make(peers.file, VALUE, CHILDREN + 1, 1);
	uint64_t random = 12345, number = 0, version = 0, before = 0;
	pid_t child[CHILDREN];

	for (int i = 0; i < CHILDREN; i++)
		child[i] = shm_child(i < WRITERS ? write_for_ever : read_for_ever, &peers);
	for (int kills = 0; kills < KILLS; kills++) {
		size_t victim;
		uint64_t until;

		random = random * 6364136223846793005u + 1442695040888963407u;
		victim = (size_t)(random >> 33) % CHILDREN;
		until = weir_now_ns() + (random >> 20) % 700000;
		do {
			if (get(latest, 0, &number, &version) == WEIR_OK) {
				cr_assert_neq(number, UINT64_MAX, "version %llu is torn", (unsigned long long)version);
				cr_assert_geq(version, before);
				before = version;
			}
		} while (weir_now_ns() < until);
		shm_kill(child[victim]);
		child[victim] = shm_child(victim < WRITERS ? write_for_ever : read_for_ever, &peers);
	}
	for (int i = 0; i < CHILDREN; i++)
		shm_kill(child[i]);
	cr_assert_eq(put(latest, 7), WEIR_OK);
	cr_assert_eq(get(latest, 0, &number, &version), WEIR_OK);
	cr_assert_eq(number, 7u);
	cr_assert_gt(version, 100u);
	cr_assert_eq(weir_shm_latest_destroy(latest, NULL), WEIR_OK);
	(void)close(peers.file);
}
