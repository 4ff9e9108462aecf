/*
 * weir_inline.c - our variables of bytes and of pointers, called as a user calls them: updates, and
 * commits beside snapshots.
 */
#include <stdlib.h>
#include <weir/read_section.h>
#include <weir/reclaim.h>
#include <weir/value.h>
#include <weir/var_cache.h>

#include "rivals.h"

enum { MAX_VARIABLES = 8 };

static weir_var *inline_variable(const void *first, size_t bytes)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = bytes};
	weir_var *var;

	if (weir_var_create_value(weir_value_inline(first, bytes), &options, &var, NULL) != WEIR_OK)
		exit(3);
	return var;
}

/* -- updates of bytes -------------------------------------------------------------------------- */

static void *create(void)
{
	struct shared_value first = {{0}};

	return inline_variable(&first, sizeof(first));
}

static void destroy(void *self)
{
	weir_var_destroy(self, NULL);
}

static enum weir_status add_in_place(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	struct shared_value *value = next->room;

	(void)context, (void)current, (void)error;
	for (size_t i = 0; i < 8; i++)
		value->words[i]++;
	return WEIR_OK;
}

static void update_many(void *self, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (weir_var_update_value(self, add_in_place, NULL, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
			exit(3);
	}
}

static uint64_t value(void *self)
{
	struct shared_value value;

	if (weir_var_read_into(self, &value, sizeof(value), NULL, NULL) != WEIR_OK)
		exit(3);
	return bench_torn(value.words, sizeof(value)) ? UINT64_MAX : value.words[0];
}

_Static_assert(sizeof(weir_read) <= sizeof(struct bench_kept), "a reader keeps a handle");

static const uint64_t *keep(void *self, struct bench_kept *place)
{
	weir_read *read = (weir_read *)(void *)place;

	if (weir_var_read(self, read) != WEIR_OK)
		exit(3);
	return read->data;
}

static void drop(struct bench_kept *place)
{
	weir_read_release((weir_read *)(void *)place);
}

const struct update_contender weir_inline_update_contender = {
	.about = {.name = "weir_var_update_value (inline)", .lock_free = 1},
	.create = create,
	.destroy = destroy,
	.update_many = update_many,
	.value = value,
	.keep = keep,
	.drop = drop,
};

/* -- updates of a pointer ---------------------------------------------------------------------- */

static void release(void *context, void *pointer)
{
	(void)context;
	free(pointer);
}

static void *pointer_create(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_POINTER,
	                                   .size = sizeof(struct shared_value), .release = release};
	struct shared_value *first = calloc(1, sizeof(*first));
	weir_var *var;

	if (first == NULL || weir_var_create_value(weir_value_pointer(first), &options, &var, NULL) != WEIR_OK)
		exit(3);
	return var;
}

static enum weir_status replace(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	const struct shared_value *old = current->pointer;
	struct shared_value *value = malloc(sizeof(*value));

	(void)context, (void)error;
	if (value == NULL)
		exit(3);
	for (size_t i = 0; i < 8; i++)
		value->words[i] = old->words[i] + 1;
	next->pointer = value;
	return WEIR_OK;
}

static void pointer_update_many(void *self, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (weir_var_update_value(self, replace, NULL, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
			exit(3);
	}
}

static uint64_t pointer_value(void *self)
{
	weir_read read;
	uint64_t value;

	if (weir_var_read(self, &read) != WEIR_OK)
		exit(3);
	value = ((const struct shared_value *)read.pointer)->words[0];
	weir_read_release(&read);
	return value;
}

const struct update_contender weir_pointer_update_contender = {
	.about = {.name = "weir_var_update_value (pointer)", .lock_free = 1},
	.create = pointer_create,
	.destroy = destroy,
	.update_many = pointer_update_many,
	.value = pointer_value,
	.keep = keep,
	.drop = drop,
};

/* -- reads of bytes ---------------------------------------------------------------------------- */

enum { INLINE_MOST = 256 };

struct read_scene {
	weir_var *var;
	size_t bytes;
};

static void *read_create(size_t bytes)
{
	struct read_scene *scene = malloc(sizeof(*scene));
	uint64_t first[INLINE_MOST / sizeof(uint64_t)] = {0};

	if (scene == NULL || bytes > INLINE_MOST)
		exit(3);
	*scene = (struct read_scene){inline_variable(first, bytes), bytes};
	return scene;
}

static void read_destroy(void *self)
{
	struct read_scene *scene = self;

	weir_var_destroy(scene->var, NULL);
	free(scene);
}

static uint64_t read_many(void *self, uint64_t count)
{
	weir_var *var = ((struct read_scene *)self)->var;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		weir_read read;

		if (weir_var_read(var, &read) != WEIR_OK)
			exit(3);
		sum += *(const uint64_t *)read.data;
		weir_read_release(&read);
	}
	return sum;
}

static uint64_t scan_many(void *self, uint64_t count)
{
	struct read_scene *scene = self;
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		weir_read read;

		if (weir_var_read(scene->var, &read) != WEIR_OK)
			exit(3);
		torn += (uint64_t)bench_torn(read.data, scene->bytes);
		weir_read_release(&read);
	}
	return torn;
}

/* By a cache, which takes a handle once for each version that it meets. */
static uint64_t cached_read_many(void *self, uint64_t count)
{
	weir_var_cache cache;
	uint64_t sum = 0;

	weir_var_cache_init(&cache, ((struct read_scene *)self)->var);
	for (uint64_t i = 0; i < count; i++)
		sum += *(const uint64_t *)weir_var_cache_read(&cache)->data;
	weir_var_cache_release(&cache);
	return sum;
}

static uint64_t cached_scan_many(void *self, uint64_t count)
{
	struct read_scene *scene = self;
	weir_var_cache cache;
	uint64_t torn = 0;

	weir_var_cache_init(&cache, scene->var);
	for (uint64_t i = 0; i < count; i++)
		torn += (uint64_t)bench_torn(weir_var_cache_read(&cache)->data, scene->bytes);
	weir_var_cache_release(&cache);
	return torn;
}

/* A read section for each value. */
static uint64_t section_read_many(void *self, uint64_t count)
{
	weir_var *var = ((struct read_scene *)self)->var;
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (weir_read_section_begin(&section) != WEIR_OK)
			exit(3);
		sum += *(const uint64_t *)weir_read_section_peek(&section, var)->data;
		(void)weir_read_section_end(&section);
	}
	return sum;
}

static uint64_t section_scan_many(void *self, uint64_t count)
{
	struct read_scene *scene = self;
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (weir_read_section_begin(&section) != WEIR_OK)
			exit(3);
		torn += (uint64_t)bench_torn(weir_read_section_peek(&section, scene->var)->data, scene->bytes);
		(void)weir_read_section_end(&section);
	}
	return torn;
}

static void read_write(void *self, uint64_t value)
{
	struct read_scene *scene = self;
	uint64_t words[INLINE_MOST / sizeof(uint64_t)];

	for (size_t i = 0; i < scene->bytes / sizeof(words[0]); i++)
		words[i] = value;
	if (weir_var_assign_value(scene->var, weir_value_inline(words, scene->bytes), WEIR_NO_DEADLINE, NULL, NULL) !=
	    WEIR_OK)
		exit(3);
}

const struct read_contender weir_inline_read_contender = {
	.about = {.name = "weir handle (inline)", .lock_free = 1},
	.create = read_create,
	.destroy = read_destroy,
	.read_many = read_many,
	.scan_many = scan_many,
	.write = read_write,
	.most_bytes = INLINE_MOST,
};

const struct read_contender weir_inline_cache_contender = {
	.about = {.name = "weir cache (inline)", .lock_free = 1},
	.create = read_create,
	.destroy = read_destroy,
	.read_many = cached_read_many,
	.scan_many = cached_scan_many,
	.write = read_write,
	.most_bytes = INLINE_MOST,
};
const struct read_contender weir_inline_section_contender = {
	.about = {.name = "weir section of 1 (inline)", .lock_free = 1},
	.create = read_create,
	.destroy = read_destroy,
	.read_many = section_read_many,
	.scan_many = section_scan_many,
	.write = read_write,
	.most_bytes = INLINE_MOST,
};

/* -- commits and snapshots --------------------------------------------------------------------- */

struct scene {
	weir_var *vars[MAX_VARIABLES];
	size_t count;
	uint64_t version; /* used by the committing thread */
	uint64_t next;    /* the value that a transaction assigns */
};

static void *scene_create(size_t variables)
{
	struct scene *scene = malloc(sizeof(*scene));
	uint64_t first = 0;

	if (scene == NULL || variables > MAX_VARIABLES)
		exit(3);
	*scene = (struct scene){.count = variables, .version = 1};
	for (size_t i = 0; i < variables; i++)
		scene->vars[i] = inline_variable(&first, sizeof(first));
	return scene;
}

static void scene_destroy(void *self)
{
	struct scene *scene = self;

	for (size_t i = 0; i < scene->count; i++)
		weir_var_destroy(scene->vars[i], NULL);
	free(scene);
}

static uint64_t take_many(void *self, uint64_t count)
{
	struct scene *scene = self;
	weir_read reads[MAX_VARIABLES];
	uint64_t torn = 0;

	for (uint64_t n = 0; n < count; n++) {
		int differ = 0;

		if (weir_var_snapshot(scene->vars, scene->count, reads, NULL) != WEIR_OK)
			exit(3);
		for (size_t i = 1; i < scene->count; i++)
			differ |= *(const uint64_t *)reads[i].data != *(const uint64_t *)reads[0].data;
		torn += (uint64_t)differ;
		weir_read_release_many(reads, scene->count);
	}
	return torn;
}

/* Each snapshot in a section of its own. */
static uint64_t show_many(void *self, uint64_t count)
{
	struct scene *scene = self;
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	const weir_read *reads[MAX_VARIABLES];
	uint64_t torn = 0;

	for (uint64_t n = 0; n < count; n++) {
		int differ = 0;

		if (weir_read_section_begin(&section) != WEIR_OK ||
		    weir_read_section_snapshot(&section, scene->vars, scene->count, reads, NULL) != WEIR_OK)
			exit(3);
		for (size_t i = 1; i < scene->count; i++)
			differ |= *(const uint64_t *)reads[i]->data != *(const uint64_t *)reads[0]->data;
		torn += (uint64_t)differ;
		(void)weir_read_section_end(&section);
	}
	return torn;
}

static void commit(void *self, uint64_t value)
{
	struct scene *scene = self;
	struct weir_value_part parts[MAX_VARIABLES];

	for (size_t i = 0; i < scene->count; i++)
		parts[i] = (struct weir_value_part){scene->vars[i], scene->version, WEIR_VALUE_OF(value)};
	if (weir_var_commit_values(parts, scene->count, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		exit(3);
	scene->version++;
}

static enum weir_status assign_all(void *context, weir_txn *txn, weir_error *error)
{
	const struct scene *scene = context;
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; status == WEIR_OK && i < scene->count; i++)
		status = weir_txn_assign_value(txn, scene->vars[i], WEIR_VALUE_OF(scene->next), error);
	return status;
}

static void transact(void *self, uint64_t value)
{
	struct scene *scene = self;

	scene->next = value;
	if (weir_txn_run(NULL, assign_all, scene, WEIR_NO_DEADLINE, NULL) != WEIR_OK)
		exit(3);
}

const struct snapshot_contender weir_inline_snapshot_contender = {
	.about = {.name = "weir (inline)", .lock_free = 1},
	.create = scene_create,
	.destroy = scene_destroy,
	.take_many = take_many,
	.commit = commit,
};

const struct snapshot_contender weir_inline_section_snapshot_contender = {
	.about = {.name = "weir in a section (inline)", .lock_free = 1},
	.create = scene_create,
	.destroy = scene_destroy,
	.take_many = show_many,
	.commit = commit,
};

const struct snapshot_contender weir_inline_txn_contender = {
	.about = {.name = "weir_txn_run (inline)", .lock_free = 1},
	.create = scene_create,
	.destroy = scene_destroy,
	.take_many = take_many,
	.commit = transact,
};
