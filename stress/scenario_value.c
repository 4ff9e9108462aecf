/*
 * scenario_value.c - variables of bytes and of pointers: every value that a reader finds is whole, an
 * object lives until its release function has run, once, and no change is lost.
 *
 * The words of a value follow from its number and its variable, so that each copy and each object can
 * be judged by itself. One variable of bytes is only counted up, by updates: its number tells its
 * version. A second one and a variable of objects change only together, by commits. A third variable
 * has objects that are written in every way. Objects are in poisoned memory (poison.h), and so are
 * the versions of half of the variables; the others are in blocks that threads keep and use again.
 */
#include "harness.h"

#include <inttypes.h>
#include <string.h>
#include <weir/read_section.h>
#include <weir/reclaim.h>
#include <weir/value.h>
#include <weir/var_cache.h>

#include "poison.h"
#include "scenarios.h"

enum { FILL = 6, BAG = 12 };
enum which { COUNTER, PAIR_BYTES, PAIR_OBJECT, LONE_OBJECT, VARIABLES };

struct words {
	uint64_t which, number, fill[FILL];
};

static weir_var *variables[VARIABLES];
static _Atomic(uint64_t) made, released, counted;

static bool is_of_bytes(enum which which)
{
	return which == COUNTER || which == PAIR_BYTES;
}

static struct words words_of(enum which which, uint64_t number)
{
	struct words words = {.which = which, .number = number};

	for (unsigned i = 0; i < FILL; i++)
		words.fill[i] = stress_mix(number + which + i);
	return words;
}

/* Returns the number. */
static uint64_t check_words(const struct words *words, enum which which, const char *who)
{
	struct words whole = words_of(which, words->number);

	STRESS_CHECK(memcmp(words, &whole, sizeof(whole)) == 0,
	             "%s: variable %d shows a value that is not whole: number %" PRIu64 " of variable %" PRIu64, who,
	             (int)which, words->number, words->which);
	return words->number;
}

static uint64_t check_read(const weir_read *read, enum which which, const char *who)
{
	uint64_t number = check_words(read->data, which, who);

	STRESS_CHECK(which == LONE_OBJECT || number == read->version,
	             "%s: version %" PRIu64 " of variable %d has number %" PRIu64, who, read->version, (int)which, number);
	return number;
}

static void check_ok(enum weir_status status, const char *call, const weir_error *error)
{
	STRESS_CHECK(status == WEIR_OK, "%s: %s: %s", call, weir_status_name(status), error->message);
}

static struct words *new_object(enum which which, uint64_t number)
{
	const weir_allocator *memory = stress_poison();
	struct words *object = memory->allocate(memory->context, sizeof(*object), sizeof(*object));

	STRESS_CHECK(object != NULL, "the harness has no memory");
	*object = words_of(which, number);
	(void)weiri_fetch_add_relaxed(&made, 1u); /* [relaxed] read after the join */
	return object;
}

static void release_object(void *context, void *pointer)
{
	const weir_allocator *memory = stress_poison();
	struct words *object = pointer;

	(void)context;
	(void)check_words(object, (enum which)object->which, "release");
	(void)weiri_fetch_add_relaxed(&released, 1u); /* [relaxed] read after the join */
	memory->release(memory->context, object, sizeof(*object), sizeof(*object));
}

/* -- readers ----------------------------------------------------------------------------------- */

struct reader {
	uint64_t last[VARIABLES]; /* versions */
	weir_read bag[BAG];
	enum which kept[BAG];
	weir_var_cache caches[VARIABLES];
};

static void check_forward(struct reader *reader, enum which which, uint64_t version, const char *who)
{
	STRESS_CHECK(version >= reader->last[which], "%s: variable %d went back from version %" PRIu64 " to %" PRIu64, who,
	             (int)which, reader->last[which], version);
	reader->last[which] = version;
}

static void copy_out(struct reader *reader, enum which which)
{
	weir_error error = {WEIR_OK, ""};
	struct words words;
	uint64_t version;

	check_ok(weir_var_read_into(variables[which], &words, sizeof(words), &version, &error), "read_into", &error);
	STRESS_CHECK(check_words(&words, which, "read_into") == version, "read_into: the bytes of another version");
	check_forward(reader, which, version, "read_into");
}

/* More handles than there are slots, each for a while. */
static void keep_handle(struct stress_thread *self, struct reader *reader, enum which which)
{
	size_t place = (size_t)stress_below(self, BAG);
	weir_read *read = &reader->bag[place];

	if (read->hold != NULL) {
		(void)check_read(read, reader->kept[place], "an old handle");
		weir_read_release(read);
	}
	STRESS_CHECK(weir_var_read(variables[which], read) == WEIR_OK, "a read failed");
	reader->kept[place] = which;
	(void)check_read(read, which, "read");
	check_forward(reader, which, read->version, "read");
}

static void read_cache(struct reader *reader, enum which which)
{
	const weir_read *read = weir_var_cache_read(&reader->caches[which]);

	STRESS_CHECK(read != NULL, "a cache failed");
	(void)check_read(read, which, "cache");
	check_forward(reader, which, read->version, "cache");
}

static void read_in_section(struct stress_thread *self, struct reader *reader)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	const weir_read *seen[VARIABLES];

	STRESS_CHECK(weir_read_section_begin(&section) == WEIR_OK, "no section");
	for (unsigned i = 0; i < VARIABLES; i++) {
		seen[i] = weir_read_section_peek(&section, variables[i]);
		check_forward(reader, (enum which)i, seen[i]->version, "peek");
	}
	if (stress_one_in(self, 50))
		stress_let_pass(stress_below(self, 200000));
	for (unsigned i = 0; i < VARIABLES; i++)
		(void)check_read(seen[i], (enum which)i, "peek");
	STRESS_CHECK(weir_read_section_end(&section) == WEIR_OK, "a section does not end");
}

static void check_pair(struct reader *reader, const weir_read *one, const weir_read *other)
{
	uint64_t bytes = check_read(one, PAIR_BYTES, "snapshot"), object = check_read(other, PAIR_OBJECT, "snapshot");

	STRESS_CHECK(bytes == object, "a snapshot is torn: %" PRIu64 " and %" PRIu64, bytes, object);
	check_forward(reader, PAIR_BYTES, one->version, "snapshot");
	check_forward(reader, PAIR_OBJECT, other->version, "snapshot");
}

static void snapshot_pair(struct reader *reader)
{
	weir_error error = {WEIR_OK, ""};
	weir_read reads[2];

	check_ok(weir_var_snapshot(&variables[PAIR_BYTES], 2, reads, &error), "snapshot", &error);
	check_pair(reader, &reads[0], &reads[1]);
	weir_read_release_many(reads, 2);
}

static void snapshot_pair_in_section(struct stress_thread *self, struct reader *reader)
{
	weir_error error = {WEIR_OK, ""};
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	const weir_read *reads[2];

	STRESS_CHECK(weir_read_section_begin(&section) == WEIR_OK, "no section");
	check_ok(weir_read_section_snapshot(&section, &variables[PAIR_BYTES], 2, reads, &error), "snapshot", &error);
	if (stress_one_in(self, 50))
		stress_let_pass(stress_below(self, 200000));
	check_pair(reader, reads[0], reads[1]);
	STRESS_CHECK(weir_read_section_end(&section) == WEIR_OK, "a section does not end");
}

static void read_somehow(struct stress_thread *self, void *context)
{
	struct reader reader = {{0}, {{.hold = NULL}}, {COUNTER}, {{.var = NULL}}};

	(void)context;
	for (unsigned i = 0; i < VARIABLES; i++)
		weir_var_cache_init(&reader.caches[i], variables[i]);
	while (stress_goes_on()) {
		enum which which = (enum which)stress_below(self, VARIABLES);

		stress_begin(self, "read");
		switch (stress_below(self, 6)) {
		case 0: copy_out(&reader, is_of_bytes(which) ? which : COUNTER); break;
		case 1: keep_handle(self, &reader, which); break;
		case 2: read_cache(&reader, which); break;
		case 3: read_in_section(self, &reader); break;
		case 4: snapshot_pair(&reader); break;
		default: snapshot_pair_in_section(self, &reader);
		}
		stress_end(self, 1);
	}
	for (unsigned i = 0; i < VARIABLES; i++)
		weir_var_cache_release(&reader.caches[i]);
	weir_read_release_many(reader.bag, BAG);
}

/* -- writers ----------------------------------------------------------------------------------- */

static enum weir_status count_up(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	(void)context, (void)error;
	*(struct words *)next->room = words_of(COUNTER, check_read(current, COUNTER, "update") + 1);
	return WEIR_OK;
}

static enum weir_status replace_object(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	(void)error;
	(void)check_read(current, LONE_OBJECT, "update");
	next->pointer = new_object(LONE_OBJECT, stress_random(context));
	return WEIR_OK;
}

static void write_object(struct stress_thread *self)
{
	weir_var *var = variables[LONE_OBJECT];
	weir_error error = {WEIR_OK, ""};
	struct words *object;
	weir_read replaced;
	enum weir_status status;

	if (stress_one_in(self, 4)) {
		check_ok(weir_var_update_value(var, replace_object, self, WEIR_NO_DEADLINE, NULL, &error), "update", &error);
		return;
	}
	object = new_object(LONE_OBJECT, stress_random(self));
	switch (stress_below(self, 3)) {
	case 0:
		check_ok(weir_var_assign_value(var, weir_value_pointer(object), WEIR_NO_DEADLINE, NULL, &error), "assign",
		         &error);
		break;
	case 1:
		check_ok(weir_var_exchange_value(var, weir_value_pointer(object), WEIR_NO_DEADLINE, &replaced, &error),
		         "exchange", &error);
		(void)check_read(&replaced, LONE_OBJECT, "exchange");
		weir_read_release(&replaced);
		break;
	default:
		status = weir_var_compare_assign_value(var, weir_var_version(var), weir_value_pointer(object), WEIR_NO_DEADLINE,
		                                       NULL, &error);
		if (status == WEIR_ABORTED)
			release_object(NULL, object); /* it is still the caller's */
		else
			check_ok(status, "compare_assign", &error);
	}
}

static void commit_pair(void)
{
	uint64_t expected = weir_var_version(variables[PAIR_BYTES]);
	struct words words = words_of(PAIR_BYTES, expected + 1), *object = new_object(PAIR_OBJECT, expected + 1);
	struct weir_value_part parts[2] = {{variables[PAIR_BYTES], expected, WEIR_VALUE_OF(words)},
	                                   {variables[PAIR_OBJECT], expected, weir_value_pointer(object)}};
	weir_error error = {WEIR_OK, ""};
	enum weir_status status = weir_var_commit_values(parts, 2, WEIR_NO_DEADLINE, NULL, &error);

	if (status == WEIR_ABORTED)
		release_object(NULL, object);
	else
		check_ok(status, "commit", &error);
}

static void write_somehow(struct stress_thread *self, void *context)
{
	weir_error error = {WEIR_OK, ""};
	uint64_t updates = 0;

	(void)context;
	while (stress_goes_on()) {
		stress_begin(self, "write");
		switch (stress_below(self, 3)) {
		case 0:
			check_ok(weir_var_update_value(variables[COUNTER], count_up, NULL, WEIR_NO_DEADLINE, NULL, &error),
			         "update", &error);
			updates++;
			break;
		case 1: commit_pair(); break;
		default: write_object(self);
		}
		stress_end(self, 1);
	}
	(void)weiri_fetch_add_relaxed(&counted, updates); /* [relaxed] read after the join */
}

/* -- the scenario ------------------------------------------------------------------------------ */

static void create(enum which which)
{
	bool bytes = is_of_bytes(which);
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = bytes ? WEIR_VAR_INLINE : WEIR_VAR_POINTER,
	                                   .size = sizeof(struct words), .release = bytes ? NULL : release_object,
	                                   .allocator =
	                                       which == PAIR_BYTES || which == LONE_OBJECT ? stress_poison() : NULL};
	struct words first = words_of(which, 1);
	weir_value value = bytes ? WEIR_VALUE_OF(first) : weir_value_pointer(new_object(which, 1));
	weir_error error = {WEIR_OK, ""};

	check_ok(weir_var_create_value(value, &options, &variables[which], &error), "create", &error);
}

void scenario_value(void)
{
	unsigned threads = stress_threads(4);
	uint64_t versions;

	/* [relaxed] no other thread yet */
	weiri_store_relaxed(&made, 0u);
	weiri_store_relaxed(&released, 0u);
	weiri_store_relaxed(&counted, 0u);
	for (unsigned i = 0; i < VARIABLES; i++)
		create((enum which)i);
	stress_disturb();
	for (unsigned i = 0; i < threads; i++)
		(void)stress_start(i % 2 ? "reader" : "writer", i % 2 ? read_somehow : write_somehow, NULL);
	stress_join();
	versions = weir_var_version(variables[COUNTER]);
	STRESS_CHECK(versions == weiri_load_relaxed(&counted) + 1, "%" PRIu64 " versions after %" PRIu64 " updates",
	             versions, weiri_load_relaxed(&counted));
	for (unsigned i = 0; i < VARIABLES; i++)
		(void)weir_var_destroy(variables[i], NULL);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(100000000000u)) == WEIR_OK,
	             "the flush failed: memory is still held");
	STRESS_CHECK(weiri_load_relaxed(&made) == weiri_load_relaxed(&released),
	             "%" PRIu64 " objects were made and %" PRIu64 " released", weiri_load_relaxed(&made),
	             weiri_load_relaxed(&released));
	stress_note("objects", weiri_load_relaxed(&made));
	stress_poison_check_empty();
}
