/*
 * store_variables.c - saving and restoring all variables of a named store.
 */
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "checkpoint/plain.h"
#include "checkpoint/save.h"

/* One variable of the store. The reference to the resource keeps it alive. */
struct entry {
	weir_resource *resource;
	char *name; /* of the tensor in the file; has name_size bytes; let_go() frees it */
	size_t name_size;
};

/* All variables of a store. */
struct gathered {
	weir_allocator allocator;
	struct entry *entries;
	size_t count, room;
};

static void let_go(struct gathered *all)
{
	for (size_t i = 0; i < all->count; i++) {
		weiri_release(&all->allocator, all->entries[i].name, all->entries[i].name_size, 1);
		weir_resource_release(all->entries[i].resource);
	}
	weiri_release(&all->allocator, all->entries, all->room * sizeof(*all->entries), alignof(struct entry));
}

/* Makes room for one more entry. Returns false if there is no memory. */
static bool grow(struct gathered *all)
{
	size_t room = all->room != 0 ? 2 * all->room : 16;
	struct entry *entries;

	if (all->count < all->room)
		return true;
	entries = weiri_allocate(&all->allocator, room * sizeof(*entries), alignof(struct entry));
	if (entries == NULL)
		return false;
	if (all->count != 0)
		memcpy(entries, all->entries, all->count * sizeof(*entries));
	weiri_release(&all->allocator, all->entries, all->room * sizeof(*entries), alignof(struct entry));
	all->entries = entries;
	all->room = room;
	return true;
}

/* Adds an entry, which takes over the reference. Returns false if there is no memory. */
static bool add(struct gathered *all, weir_resource *resource)
{
	const char *container = weir_resource_container(resource), *name = weir_resource_name(resource);
	struct entry entry = {.resource = resource, .name_size = strlen(container) + strlen(name) + 2};

	entry.name = weiri_allocate(&all->allocator, entry.name_size, 1);
	if (entry.name == NULL || !grow(all)) {
		weiri_release(&all->allocator, entry.name, entry.name_size, 1);
		return false;
	}
	(void)snprintf(entry.name, entry.name_size, "%s%s%s", container, container[0] != '\0' ? "/" : "", name);
	all->entries[all->count++] = entry;
	return true;
}

/* Gathers at most one variable more than a checkpoint can hold, which is enough to be refused. */
static enum weir_status gather(weir_store *store, struct gathered *all)
{
	weir_resource *at = NULL, *next;
	enum weir_status status = WEIR_OK;

	while (status == WEIR_OK && all->count <= WEIR_COMMIT_MAX_PARTS) {
		status = weir_store_next(store, at, &next);
		weir_resource_release(at);
		at = status == WEIR_OK ? next : NULL;
		if (at != NULL && weir_resource_type_of(at) == weir_var_type() && !add(all, weir_resource_retain(at))) {
			weir_resource_release(at);
			status = WEIR_RESOURCE_EXHAUSTED;
		}
	}
	weir_resource_release(at);
	return status == WEIR_OUT_OF_RANGE ? WEIR_OK : status;
}

/* What a call does with the variables. */
struct job {
	const struct weir_checkpoint_options *options;
	const char *path;
	uint64_t deadline_ns;
	enum weir_status (*run)(const struct job *job, const struct weir_checkpoint_part parts[], size_t count,
	                        weir_error *error);
};

static enum weir_status run_on(const struct job *job, const struct gathered *all, weir_error *error)
{
	size_t size = all->count * sizeof(struct weir_checkpoint_part);
	struct weir_checkpoint_part *parts = weiri_allocate(&all->allocator, size, alignof(struct weir_checkpoint_part));
	enum weir_status status;

	if (parts == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "checkpoint %s: no memory for a table of %zu variable%s",
		                  weiri_plain_path(job->path).text, all->count, WEIRI_S(all->count));
	for (size_t i = 0; i < all->count; i++)
		parts[i] = (struct weir_checkpoint_part){all->entries[i].name, weir_resource_object(all->entries[i].resource)};
	status = job->run(job, parts, all->count, error);
	weiri_release(&all->allocator, parts, size, alignof(struct weir_checkpoint_part));
	return status;
}

static enum weir_status do_with_all(weir_store *store, const struct job *job, uint32_t allowed, weir_error *error)
{
	struct gathered all = {.count = 0};
	struct weir_checkpoint_options given;
	enum weir_status status;

	if (store == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "checkpoint: store is NULL");
	/* The count that is passed here is always allowed. The number of variables is checked later. */
	status = weiri_checkpoint_check(job->options, allowed, store, 1, job->path, &given, error);
	if (status != WEIR_OK)
		return status;
	all.allocator = weiri_allocator_or_default(given.allocator);
	status = gather(store, &all);
	if (status != WEIR_OK)
		(void)weiri_fail(error, status, "checkpoint %s: no memory for a table of the store's variables",
		                 weiri_plain_path(job->path).text);
	else if (all.count == 0)
		status = weiri_fail(error, WEIR_NOT_FOUND, "checkpoint %s: no variables in the store",
		                    weiri_plain_path(job->path).text);
	else
		status = run_on(job, &all, error);
	let_go(&all);
	return status;
}

static enum weir_status save(const struct job *job, const struct weir_checkpoint_part parts[], size_t count,
                             weir_error *error)
{
	return weir_checkpoint_save(parts, count, job->path, job->options, error);
}

enum weir_status weir_checkpoint_save_store(weir_store *store, const char *path,
                                            const struct weir_checkpoint_options *options, weir_error *error)
{
	return do_with_all(store, &(struct job){options, path, 0, save}, 0, error);
}

static enum weir_status restore(const struct job *job, const struct weir_checkpoint_part parts[], size_t count,
                                weir_error *error)
{
	return weir_checkpoint_restore(parts, count, job->path, job->options, job->deadline_ns, error);
}

enum weir_status weir_checkpoint_restore_store(weir_store *store, const char *path,
                                               const struct weir_checkpoint_options *options, uint64_t deadline_ns,
                                               weir_error *error)
{
	return do_with_all(store, &(struct job){options, path, deadline_ns, restore}, WEIR_CHECKPOINT_ALLOW_OTHERS, error);
}
