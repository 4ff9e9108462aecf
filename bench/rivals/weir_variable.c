/*
 * weir_variable.c - our variables, called as a user calls them: reads, updates, snapshots, and a
 * reader that is stopped.
 */
#include <stdlib.h>
#include <weir/read_section.h>
#include <weir/txn.h>
#include <weir/var.h>
#include <weir/var_cache.h>

#include "rivals.h"
#include "weir_value.h"

enum { MAX_VARIABLES = 8, STOPPED_VARIABLES = 8 };

/* -- variables --------------------------------------------------------------------------------- */

static weir_var *var_of(size_t bytes, const weir_allocator *allocator)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64};
	weir_tensor *first = tensor_of(0, bytes, allocator);
	weir_var *var;

	if (weir_var_create(first, &options, &var, NULL) != WEIR_OK)
		exit(3);
	weir_tensor_release(first);
	return var;
}

static void assign(weir_var *var, uint64_t value, size_t bytes)
{
	weir_tensor *tensor = tensor_of(value, bytes, NULL);

	if (weir_var_assign(var, tensor, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		exit(3);
	weir_tensor_release(tensor);
}

/*
 * Fills the caller's handle. A handle returned by value is copied by loads that are wider than the
 * stores that filled it, so the loads wait for the stores.
 */
static inline void read_into(weir_read *read, weir_var *var)
{
	if (weir_var_read(var, read) != WEIR_OK)
		exit(3);
}

/* -- reads ------------------------------------------------------------------------------------- */

struct shared {
	weir_var *var;
	size_t bytes;
};

static void *read_create(size_t bytes)
{
	struct shared *shared = malloc(sizeof(*shared));

	if (shared == NULL)
		exit(3);
	*shared = (struct shared){var_of(bytes, NULL), bytes};
	return shared;
}

static void read_destroy(void *self)
{
	struct shared *shared = self;

	weir_var_destroy(shared->var, NULL);
	free(shared);
}

/* Takes a handle and releases it. The n-th value written is version n + 1. */
static uint64_t handle_many(void *self, uint64_t count)
{
	weir_var *var = ((struct shared *)self)->var;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		weir_read read;

		read_into(&read, var);
		sum += read.version - 1;
		weir_read_release(&read);
	}
	return sum;
}

/* Also looks at the value, which is one more call into the library. */
static uint64_t look_many(void *self, uint64_t count)
{
	weir_var *var = ((struct shared *)self)->var;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		weir_read read;

		read_into(&read, var);
		sum += *(const uint64_t *)weir_tensor_data(read.tensor);
		weir_read_release(&read);
	}
	return sum;
}

static uint64_t scan_many(void *self, uint64_t count)
{
	struct shared *shared = self;
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		weir_read read;

		read_into(&read, shared->var);
		torn += (uint64_t)bench_torn(weir_tensor_data(read.tensor), shared->bytes);
		weir_read_release(&read);
	}
	return torn;
}

/* By a cache, which takes a handle once for each version that it meets. */
static uint64_t cached_many(void *self, uint64_t count)
{
	weir_var_cache cache;
	uint64_t sum = 0;

	weir_var_cache_init(&cache, ((struct shared *)self)->var);
	for (uint64_t i = 0; i < count; i++)
		sum += weir_var_cache_read(&cache)->version - 1;
	weir_var_cache_release(&cache);
	return sum;
}

static uint64_t cached_scan_many(void *self, uint64_t count)
{
	struct shared *shared = self;
	weir_var_cache cache;
	uint64_t torn = 0;

	weir_var_cache_init(&cache, shared->var);
	for (uint64_t i = 0; i < count; i++)
		torn += (uint64_t)bench_torn(weir_tensor_data(weir_var_cache_read(&cache)->tensor), shared->bytes);
	weir_var_cache_release(&cache);
	return torn;
}

enum { SECTION = 16 };

/* In sections of 16 reads, without handles. */
static uint64_t section_many(void *self, uint64_t count)
{
	weir_var *var = ((struct shared *)self)->var;
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	uint64_t sum = 0;

	for (uint64_t done = 0; done < count;) {
		uint64_t end = count - done < SECTION ? count : done + SECTION;

		if (weir_read_section_begin(&section) != WEIR_OK)
			exit(3);
		for (; done < end; done++)
			sum += weir_read_section_peek(&section, var)->version - 1;
		(void)weir_read_section_end(&section);
	}
	return sum;
}

/* A section for each value. */
static uint64_t section_scan_many(void *self, uint64_t count)
{
	struct shared *shared = self;
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (weir_read_section_begin(&section) != WEIR_OK)
			exit(3);
		torn += (uint64_t)bench_torn(weir_tensor_data(weir_read_section_peek(&section, shared->var)->tensor),
		                             shared->bytes);
		(void)weir_read_section_end(&section);
	}
	return torn;
}

static void read_write(void *self, uint64_t value)
{
	struct shared *shared = self;

	assign(shared->var, value, shared->bytes);
}

const struct read_contender weir_read_contender = {
	.about = {.name = "weir handle", .lock_free = 1},
	.create = read_create,
	.destroy = read_destroy,
	.read_many = handle_many,
	.write = read_write,
};
const struct read_contender weir_look_contender = {
	.about = {.name = "weir handle + data", .lock_free = 1},
	.create = read_create,
	.destroy = read_destroy,
	.read_many = look_many,
	.scan_many = scan_many,
	.write = read_write,
};

const struct read_contender weir_cache_contender = {
	.about = {.name = "weir cache", .lock_free = 1},
	.create = read_create,
	.destroy = read_destroy,
	.read_many = cached_many,
	.scan_many = cached_scan_many,
	.write = read_write,
};

const struct read_contender weir_read_section_contender = {
	.about = {.name = "weir section of 16", .lock_free = 1},
	.create = read_create,
	.destroy = read_destroy,
	.read_many = section_many,
	.scan_many = section_scan_many,
	.write = read_write,
};

/* -- updates ----------------------------------------------------------------------------------- */

static void *update_create(void)
{
	return var_of(sizeof(struct shared_value), NULL);
}

static void update_destroy(void *self)
{
	weir_var_destroy(self, NULL);
}

static enum weir_status add_one(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	uint64_t value = *(const uint64_t *)weir_tensor_data(current->tensor);

	(void)context;
	(void)error;
	*next = tensor_of(value + 1, sizeof(struct shared_value), NULL);
	return WEIR_OK;
}

static void update_many(void *self, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (weir_var_update(self, add_one, NULL, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
			exit(3);
	}
}

static uint64_t update_value(void *self)
{
	weir_read read;
	uint64_t value;

	read_into(&read, self);
	value = *(const uint64_t *)weir_tensor_data(read.tensor);
	weir_read_release(&read);
	return value;
}

const struct update_contender weir_update_contender = {
	.about = {.name = "weir_var_update", .lock_free = 1},
	.create = update_create,
	.destroy = update_destroy,
	.update_many = update_many,
	.value = update_value,
};

/* -- snapshots --------------------------------------------------------------------------------- */

struct scene {
	weir_var *vars[MAX_VARIABLES];
	size_t count;
	uint64_t version;  /* used by the committing thread */
	weir_tensor *next; /* the value that a transaction assigns */
};

static void *scene_create(size_t variables)
{
	struct scene *scene = malloc(sizeof(*scene));

	if (scene == NULL || variables > MAX_VARIABLES)
		exit(3);
	*scene = (struct scene){.count = variables, .version = 1};
	for (size_t i = 0; i < variables; i++)
		scene->vars[i] = var_of(sizeof(uint64_t), NULL);
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
			differ |= reads[i].version != reads[0].version;
		torn += (uint64_t)differ;
		weir_read_release_many(reads, scene->count);
	}
	return torn;
}

static void scene_commit(void *self, uint64_t value)
{
	struct scene *scene = self;
	struct weir_commit_part parts[MAX_VARIABLES];
	weir_tensor *tensor = tensor_of(value, sizeof(uint64_t), NULL);

	for (size_t i = 0; i < scene->count; i++)
		parts[i] = (struct weir_commit_part){scene->vars[i], scene->version, tensor};
	if (weir_var_commit(parts, scene->count, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		exit(3);
	scene->version++;
	weir_tensor_release(tensor);
}

const struct snapshot_contender weir_snapshot_contender = {
	.about = {.name = "weir", .lock_free = 1},
	.create = scene_create,
	.destroy = scene_destroy,
	.take_many = take_many,
	.commit = scene_commit,
};

static enum weir_status assign_all(void *context, weir_txn *txn, weir_error *error)
{
	const struct scene *scene = context;
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; status == WEIR_OK && i < scene->count; i++)
		status = weir_txn_assign(txn, scene->vars[i], scene->next, error);
	return status;
}

static void scene_transact(void *self, uint64_t value)
{
	struct scene *scene = self;

	scene->next = tensor_of(value, sizeof(uint64_t), NULL);
	if (weir_txn_run(NULL, assign_all, scene, WEIR_NO_DEADLINE, NULL) != WEIR_OK)
		exit(3);
	weir_tensor_release(scene->next);
}

const struct snapshot_contender weir_txn_contender = {
	.about = {.name = "weir_txn_run", .lock_free = 1},
	.create = scene_create,
	.destroy = scene_destroy,
	.take_many = take_many,
	.commit = scene_transact,
};

/* -- memory beside a stopped reader ------------------------------------------------------------ */

struct stopped {
	weir_var *vars[STOPPED_VARIABLES];
	size_t bytes;
	uint64_t next;
};

static void *counted_allocate(void *context, size_t size, size_t alignment)
{
	(void)context;
	(void)alignment;
	return bench_value_allocate(size);
}

static void counted_release(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context;
	(void)alignment;
	bench_value_free(memory, size);
}

static const weir_allocator counted = {counted_allocate, counted_release, NULL};

static void *stopped_create(size_t bytes)
{
	struct stopped *stopped = malloc(sizeof(*stopped));

	if (stopped == NULL)
		exit(3);
	*stopped = (struct stopped){.bytes = bytes};
	for (int i = 0; i < STOPPED_VARIABLES; i++)
		stopped->vars[i] = var_of(bytes, &counted);
	return stopped;
}

static void stopped_destroy(void *self)
{
	struct stopped *stopped = self;

	for (int i = 0; i < STOPPED_VARIABLES; i++)
		weir_var_destroy(stopped->vars[i], NULL);
	free(stopped);
}

/* Nearly all of this call lies inside a section. */
static void snapshot_once(void *self)
{
	struct stopped *stopped = self;
	weir_read reads[STOPPED_VARIABLES];

	if (weir_var_snapshot(stopped->vars, STOPPED_VARIABLES, reads, NULL) != WEIR_OK)
		exit(3);
	weir_read_release_many(reads, STOPPED_VARIABLES);
}

static void hold_all(void *self)
{
	struct stopped *stopped = self;
	weir_read reads[STOPPED_VARIABLES];

	if (weir_var_snapshot(stopped->vars, STOPPED_VARIABLES, reads, NULL) != WEIR_OK)
		exit(3);
	bench_stop_here();
	weir_read_release_many(reads, STOPPED_VARIABLES);
}

static int publish(void *self, uint64_t deadline_ns)
{
	struct stopped *stopped = self;
	weir_tensor *tensor = tensor_of(0, stopped->bytes, &counted);
	enum weir_status status =
		weir_var_assign(stopped->vars[stopped->next++ % STOPPED_VARIABLES], tensor, deadline_ns, NULL, NULL);

	weir_tensor_release(tensor);
	return status == WEIR_OK;
}

const struct memory_contender weir_stopped_contender = {
	.about = {.name = "weir, stopped in a snapshot", .lock_free = 1},
	.create = stopped_create,
	.destroy = stopped_destroy,
	.read = snapshot_once,
	.by_signal = 1,
	.publish = publish,
};
const struct memory_contender weir_held_contender = {
	.about = {.name = "weir, stopped holding a snapshot", .lock_free = 1},
	.create = stopped_create,
	.destroy = stopped_destroy,
	.read = hold_all,
	.publish = publish,
};
