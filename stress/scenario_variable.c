/*
 * scenario_variable.c - variables: handles stay valid, versions never decrease, no update is lost.
 *
 * Every payload's words follow from its tag, and the tag tells for which variable and version it
 * was made. A handle can therefore be judged by itself at any time: torn, freed, reused or confused
 * memory does not fit. Tensors, versions and variables are in poisoned memory (poison.h).
 */
#include "harness.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <weir/reclaim.h>
#include <weir/var.h>

#include "poison.h"
#include "scenarios.h"

/*
 * A tag is the number of a variable, and then that of a version. With this bit it is any number
 * instead, because a plain assign does not know its version beforehand.
 */
#define TAG_ANY (UINT64_C(1) << 63)
enum { TAG_BITS = 48 };

static uint64_t tag_of(unsigned index, uint64_t version)
{
	return (uint64_t)index << TAG_BITS | version;
}

/* -- variable_read ----------------------------------------------------------------------------- */

enum { VARIABLES = 3, BAG = 12, MAILBOXES = 4 };

struct held {
	weir_read read;
	unsigned index;
};

/* A handle on its way from one thread to another; NULL: none. */
static _Atomic(struct held *) mailbox[MAILBOXES];
static weir_var *variables[VARIABLES];

static size_t draw_words(struct stress_thread *self)
{
	return stress_one_in(self, 50) ? 1 + (size_t)stress_below(self, 4000) : 1 + (size_t)stress_below(self, 40);
}

static weir_tensor *payload_for(struct stress_thread *self, unsigned index, uint64_t version)
{
	return stress_payload(tag_of(index, version), draw_words(self));
}

static void check_handle(const weir_read *read, unsigned index, const char *who)
{
	uint64_t tag = stress_payload_check(read->tensor, who), version = tag & ((UINT64_C(1) << TAG_BITS) - 1);

	STRESS_CHECK((tag & ~TAG_ANY) >> TAG_BITS == index, "%s: variable %u returned a value of variable %" PRIu64, who,
	             index, (tag & ~TAG_ANY) >> TAG_BITS);
	STRESS_CHECK((tag & TAG_ANY) != 0 || version == read->version,
	             "%s: variable %u: the handle has version %" PRIu64 ", but its value is of version %" PRIu64, who,
	             index, read->version, version);
}

static void check_forward(uint64_t last[], unsigned index, uint64_t version, const char *who)
{
	STRESS_CHECK(version >= last[index], "%s: variable %u went back from version %" PRIu64 " to %" PRIu64, who, index,
	             last[index], version);
	last[index] = version;
}

static void check_ok(enum weir_status status, const char *call, const weir_error *error)
{
	STRESS_CHECK(status == WEIR_OK, "%s: %s: %s", call, weir_status_name(status), error->message);
}

/* Takes a handle; the caller must check it again and release it. */
static weir_read read_one(struct stress_thread *self, uint64_t last[], unsigned index)
{
	weir_error error = {WEIR_OK, ""};
	weir_read read;

	stress_begin(self, "read");
	check_ok(weir_var_read(variables[index], &read), "weir_var_read", &error);
	check_handle(&read, index, "read");
	check_forward(last, index, read.version, "read");
	stress_end(self, 1);
	return read;
}

/* More handles than there are hazard slots, each for a while. */
static void read_into_bag(struct stress_thread *self, uint64_t last[], struct held bag[])
{
	struct held *place = &bag[stress_below(self, BAG)];

	if (place->read.tensor != NULL) {
		check_handle(&place->read, place->index, "release of an old handle");
		weir_read_release(&place->read);
	}
	place->index = (unsigned)stress_below(self, VARIABLES);
	place->read = read_one(self, last, place->index);
}

static void read_and_pass_on(struct stress_thread *self, uint64_t last[])
{
	struct held *ours = malloc(sizeof(*ours)), *theirs;

	STRESS_CHECK(ours != NULL, "the harness has no memory");
	ours->index = (unsigned)stress_below(self, VARIABLES);
	ours->read = read_one(self, last, ours->index);
	/* [acq_rel] the handle passes to the thread that takes it. */
	theirs = weiri_exchange_acq_rel(&mailbox[stress_below(self, MAILBOXES)], ours);
	if (theirs == NULL)
		return;
	check_handle(&theirs->read, theirs->index, "another thread's handle");
	weir_read_release(&theirs->read);
	free(theirs);
}

static void snapshot_all(struct stress_thread *self, uint64_t last[])
{
	weir_error error = {WEIR_OK, ""};
	weir_read reads[VARIABLES];

	stress_begin(self, "snapshot");
	check_ok(weir_var_snapshot(variables, VARIABLES, reads, &error), "weir_var_snapshot", &error);
	for (unsigned i = 0; i < VARIABLES; i++) {
		check_handle(&reads[i], i, "snapshot");
		check_forward(last, i, reads[i].version, "snapshot");
	}
	weir_read_release_many(reads, VARIABLES);
	stress_end(self, 1);
}

static void reader(struct stress_thread *self, void *context)
{
	uint64_t last[VARIABLES] = {0};
	struct held bag[BAG] = {{{.hold = NULL}, 0}};

	(void)context;
	while (stress_goes_on()) {
		unsigned index = (unsigned)stress_below(self, VARIABLES);
		weir_read read;

		switch (stress_below(self, 8)) {
		case 0: read_into_bag(self, last, bag); break;
		case 1: read_and_pass_on(self, last); break;
		case 2: snapshot_all(self, last); break;
		case 3: check_forward(last, index, weir_var_version(variables[index]), "weir_var_version"); break;
		default:
			read = read_one(self, last, index);
			check_handle(&read, index, "read, a moment later");
			weir_read_release(&read);
		}
	}
	for (size_t i = 0; i < BAG; i++)
		weir_read_release(&bag[i].read);
}

static void assign(struct stress_thread *self, uint64_t last[], unsigned index)
{
	weir_tensor *value =
		stress_payload(TAG_ANY | tag_of(index, stress_random(self) >> (64 - TAG_BITS)), draw_words(self));
	weir_error error = {WEIR_OK, ""};
	weir_read published;
	uint64_t version;

	stress_begin(self, "assign");
	check_ok(weir_var_assign(variables[index], value, WEIR_NO_DEADLINE, &published, &error), "weir_var_assign", &error);
	STRESS_CHECK(published.tensor == value, "version %" PRIu64 " is not the value that the assign published",
	             published.version);
	version = published.version;
	weir_read_release(&published);
	weir_tensor_release(value);
	STRESS_CHECK(version > last[index],
	             "an assign published version %" PRIu64 " after version %" PRIu64 " had been seen", version,
	             last[index]);
	last[index] = version;
	stress_end(self, 1);
}

static void compare_assign(struct stress_thread *self, uint64_t last[], unsigned index)
{
	uint64_t expected = weir_var_version(variables[index]), version;
	weir_read published = {.hold = NULL};
	weir_tensor *value = payload_for(self, index, expected + 1);
	weir_error error = {WEIR_OK, ""};
	enum weir_status status;

	stress_begin(self, "compare_assign");
	status = weir_var_compare_assign(variables[index], expected, value, WEIR_NO_DEADLINE, &published, &error);
	version = published.version;
	weir_read_release(&published);
	weir_tensor_release(value);
	if (status == WEIR_ABORTED)
		STRESS_CHECK(version > expected,
		             "aborted although version %" PRIu64 " was expected and version %" PRIu64 " was found", expected,
		             version);
	else
		check_ok(status, "weir_var_compare_assign", &error);
	STRESS_CHECK(status == WEIR_ABORTED || version == expected + 1, "%" PRIu64 " follows %" PRIu64, version, expected);
	check_forward(last, index, version, "compare_assign");
	stress_end(self, 1);
}

struct next {
	struct stress_thread *self;
	unsigned index;
};

static enum weir_status make_next(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	const struct next *ask = context;

	(void)error;
	check_handle(current, ask->index, "the current value of an update");
	*next = payload_for(ask->self, ask->index, current->version + 1);
	return WEIR_OK;
}

static void update(struct stress_thread *self, uint64_t last[], unsigned index)
{
	struct next ask = {self, index};
	weir_error error = {WEIR_OK, ""};
	weir_read published;

	stress_begin(self, "update");
	check_ok(weir_var_update(variables[index], make_next, &ask, WEIR_NO_DEADLINE, &published, &error),
	         "weir_var_update", &error);
	check_handle(&published, index, "published by update");
	STRESS_CHECK(published.version > last[index],
	             "an update published version %" PRIu64 " after version %" PRIu64 " had been seen", published.version,
	             last[index]);
	last[index] = published.version;
	weir_read_release(&published);
	stress_end(self, 1);
}

static void commit(struct stress_thread *self, uint64_t last[])
{
	struct weir_commit_part parts[VARIABLES];
	weir_read published[VARIABLES];
	weir_error error = {WEIR_OK, ""};
	enum weir_status status;
	unsigned first = (unsigned)stress_below(self, VARIABLES), count = 1 + (unsigned)stress_below(self, VARIABLES);

	for (unsigned i = 0; i < count; i++) {
		unsigned index = (first + i) % VARIABLES;
		uint64_t expected = weir_var_version(variables[index]);

		parts[i] = (struct weir_commit_part){variables[index], expected, payload_for(self, index, expected + 1)};
	}
	stress_begin(self, "commit");
	status = weir_var_commit(parts, count, WEIR_NO_DEADLINE, published, &error);
	if (status != WEIR_ABORTED)
		check_ok(status, "weir_var_commit", &error);
	for (unsigned i = 0; i < count; i++) {
		if (status == WEIR_OK)
			check_forward(last, (first + i) % VARIABLES, published[i].version, "commit");
		weir_tensor_release(parts[i].value);
	}
	if (status == WEIR_OK)
		weir_read_release_many(published, count);
	stress_end(self, 1);
}

static void writer(struct stress_thread *self, void *context)
{
	uint64_t last[VARIABLES] = {0};

	(void)context;
	while (stress_goes_on()) {
		unsigned index = (unsigned)stress_below(self, VARIABLES);

		switch (stress_below(self, 4)) {
		case 0: assign(self, last, index); break;
		case 1: compare_assign(self, last, index); break;
		case 2: update(self, last, index); break;
		default: commit(self, last);
		}
	}
}

static weir_var *create(enum weir_dtype dtype, weir_tensor *initial)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = dtype, .allocator = stress_poison()};
	weir_error error = {WEIR_OK, ""};
	weir_var *var = NULL;

	check_ok(weir_var_create(initial, &options, &var, &error), "weir_var_create", &error);
	weir_tensor_release(initial);
	return var;
}

static void empty_mailboxes(void)
{
	for (size_t i = 0; i < MAILBOXES; i++) {
		/* [acq_rel] as when passed on */
		struct held *held = weiri_exchange_acq_rel(&mailbox[i], NULL);

		if (held == NULL)
			continue;
		check_handle(&held->read, held->index, "a handle that outlived its thread and variable");
		weir_read_release(&held->read);
		free(held);
	}
}

void scenario_variable_read(void)
{
	unsigned threads = stress_threads(4);

	for (unsigned i = 0; i < VARIABLES; i++)
		variables[i] = create(WEIR_I64, stress_payload(tag_of(i, 1), 1));
	stress_disturb();
	for (unsigned i = 0; i < threads; i++)
		(void)stress_start(i % 2 ? "reader" : "writer", i % 2 ? reader : writer, NULL);
	stress_join();
	for (unsigned i = 0; i < VARIABLES; i++)
		weir_var_destroy(variables[i], NULL);
	empty_mailboxes();
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(100000000000u)) == WEIR_OK,
	             "the flush failed: memory is still held");
	stress_poison_check_empty();
}

/* -- variable_counter -------------------------------------------------------------------------- */

enum { COUNTS = 1 << 22 };

static weir_var *counter;
static _Atomic(uint64_t) seen[COUNTS / 64]; /* a bit for each value that an update published */
static _Atomic(uint64_t) added;

static uint64_t count_of(const weir_read *read)
{
	uint64_t count = (uint64_t) * (const int64_t *)weir_tensor_data(read->tensor);

	STRESS_CHECK(count == read->version - 1, "version %" PRIu64 " of the counter holds %" PRIu64, read->version, count);
	return count;
}

static void note_published(const weir_read *published, uint64_t *last)
{
	uint64_t count = count_of(published), bit = UINT64_C(1) << (count % 64);

	STRESS_CHECK(count > *last, "this thread's increment published %" PRIu64 " after it had seen %" PRIu64, count,
	             *last);
	*last = count;
	if (count >= COUNTS)
		return;
	/* [relaxed] a mark; judged by itself. */
	STRESS_CHECK((weiri_fetch_or_acq_rel(&seen[count / 64], bit) & bit) == 0, "two increments published %" PRIu64,
	             count);
}

static void increment(struct stress_thread *self, uint64_t *last, weir_tensor *plus_one, weir_tensor *minus_one)
{
	weir_error error = {WEIR_OK, ""};
	weir_read published = {.hold = NULL}, *wanted = stress_one_in(self, 4) ? NULL : &published;

	if (stress_one_in(self, 2)) {
		stress_begin(self, "assign_add");
		check_ok(weir_var_assign_add(counter, plus_one, WEIR_NO_DEADLINE, wanted, &error), "assign_add", &error);
	} else {
		stress_begin(self, "assign_sub");
		check_ok(weir_var_assign_sub(counter, minus_one, WEIR_NO_DEADLINE, wanted, &error), "assign_sub", &error);
	}
	stress_end(self, 1);
	if (wanted != NULL)
		note_published(wanted, last);
	weir_read_release(&published);
}

static weir_tensor *scalar(int64_t value)
{
	weir_tensor *tensor = NULL;

	STRESS_CHECK(weir_tensor_scalar_i64(value, &tensor) == WEIR_OK, "weir_tensor_scalar_i64 failed");
	return tensor;
}

static void adder(struct stress_thread *self, void *context)
{
	weir_tensor *plus_one = scalar(1), *minus_one = scalar(-1);
	uint64_t last = 0, mine = 0;

	(void)context;
	for (; stress_goes_on(); mine++)
		increment(self, &last, plus_one, minus_one);
	(void)weiri_fetch_add_relaxed(&added, mine); /* [relaxed] read after the join */
	weir_tensor_release(plus_one);
	weir_tensor_release(minus_one);
}

static void watcher(struct stress_thread *self, void *context)
{
	uint64_t last = 0;

	(void)context;
	while (stress_goes_on()) {
		weir_read read;
		uint64_t count;

		stress_begin(self, "read");
		STRESS_CHECK(weir_var_read(counter, &read) == WEIR_OK, "cannot read the counter");
		count = count_of(&read);
		STRESS_CHECK(count >= last, "the counter went back from %" PRIu64 " to %" PRIu64, last, count);
		last = count;
		weir_read_release(&read);
		stress_end(self, 1);
	}
}

void scenario_variable_counter(void)
{
	unsigned threads = stress_threads(3);
	weir_read read;

	counter = create(WEIR_I64, scalar(0));
	stress_disturb();
	for (unsigned i = 0; i + 1 < threads; i++)
		(void)stress_start("adder", adder, NULL);
	(void)stress_start("watcher", watcher, NULL);
	stress_join();
	STRESS_CHECK(weir_var_read(counter, &read) == WEIR_OK, "cannot read the counter");
	STRESS_CHECK(count_of(&read) == weiri_load_relaxed(&added),
	             "%" PRIu64 " increments succeeded, but the counter is %" PRIu64, weiri_load_relaxed(&added),
	             count_of(&read)); /* [relaxed] joined */
	stress_note("increments", count_of(&read));
	weir_read_release(&read);
	weir_var_destroy(counter, NULL);
	weiri_store_relaxed(&added, 0u); /* [relaxed] joined */
	memset(seen, 0, sizeof(seen));
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(100000000000u)) == WEIR_OK,
	             "the flush failed: memory is still held");
	stress_poison_check_empty();
}
