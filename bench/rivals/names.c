/*
 * names.c - objects by name: our store, and the usual alternative, a hash table under a lock.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <weir/store.h>

#include "rivals.h"

static void *make(size_t size)
{
	void *memory = calloc(1, size);

	if (memory == NULL)
		exit(3);
	return memory;
}

/* -- ours -------------------------------------------------------------------------------------- */

static const struct weir_resource_type numbers = {"number", free};

static void *store_create(void)
{
	weir_store *store;

	if (weir_store_create(NULL, &store, NULL) != WEIR_OK)
		exit(3);
	return store;
}

static void store_destroy(void *self)
{
	weir_store_destroy(self, NULL);
}

static void store_add(void *self, const char *name, uint64_t number)
{
	uint64_t *object = make(sizeof(*object));

	*object = number;
	if (weir_store_add(self, NULL, name, &numbers, object, NULL, NULL) != WEIR_OK)
		exit(3);
}

static void store_find_many(void *self, const char *const names[], uint64_t found[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		weir_resource *resource = NULL;

		(void)weir_store_find(self, NULL, names[i], &numbers, &resource, NULL);
		found[i] = resource != NULL ? *(const uint64_t *)weir_resource_object(resource) : 0;
		weir_resource_release(resource);
	}
}

static void store_renew(void *self, const char *name, uint64_t number)
{
	(void)weir_store_remove(self, NULL, name, NULL);
	store_add(self, name, number);
}

const struct names_contender weir_names_contender = {
	.about = {.name = "weir_store", .lock_free = 1},
	.create = store_create,
	.destroy = store_destroy,
	.add = store_add,
	.find_many = store_find_many,
	.renew = store_renew,
};

/* -- a table under a lock ---------------------------------------------------------------------- */

enum { BUCKETS = 1024 };

struct counted {
	_Atomic(size_t) references;
	uint64_t number;
};

struct entry {
	struct entry *next;
	struct counted *object;
	char name[];
};

struct table {
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	int shared; /* 1: lookups share the rwlock; 0: all calls lock the mutex */
	struct entry *buckets[BUCKETS];
};

static void lock(struct table *table, int writes)
{
	if (!table->shared)
		(void)pthread_mutex_lock(&table->mutex);
	else if (writes)
		(void)pthread_rwlock_wrlock(&table->rwlock);
	else
		(void)pthread_rwlock_rdlock(&table->rwlock);
}

static void unlock(struct table *table)
{
	if (table->shared)
		(void)pthread_rwlock_unlock(&table->rwlock);
	else
		(void)pthread_mutex_unlock(&table->mutex);
}

static struct entry **place_of(struct table *table, const char *name)
{
	uint64_t hash = UINT64_C(0xCBF29CE484222325);
	struct entry **place;

	for (const char *c = name; *c != '\0'; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001B3);
	place = &table->buckets[hash % BUCKETS];
	while (*place != NULL && strcmp((*place)->name, name) != 0)
		place = &(*place)->next;
	return place;
}

static void release(struct counted *object)
{
	if (object != NULL && atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) == 1)
		free(object);
}

static void *table_create(int shared)
{
	struct table *table = make(sizeof(*table));

	(void)pthread_mutex_init(&table->mutex, NULL);
	(void)pthread_rwlock_init(&table->rwlock, NULL);
	table->shared = shared;
	return table;
}

static void *mutex_create(void)
{
	return table_create(0);
}

static void *rwlock_create(void)
{
	return table_create(1);
}

static void table_destroy(void *self)
{
	struct table *table = self;

	for (size_t i = 0; i < BUCKETS; i++) {
		while (table->buckets[i] != NULL) {
			struct entry *entry = table->buckets[i];

			table->buckets[i] = entry->next;
			release(entry->object);
			free(entry);
		}
	}
	(void)pthread_mutex_destroy(&table->mutex);
	(void)pthread_rwlock_destroy(&table->rwlock);
	free(table);
}

static void table_add(void *self, const char *name, uint64_t number)
{
	struct entry *entry = make(sizeof(*entry) + strlen(name) + 1), **place;

	entry->object = make(sizeof(*entry->object));
	atomic_init(&entry->object->references, 1);
	entry->object->number = number;
	memcpy(entry->name, name, strlen(name) + 1);
	lock(self, 1);
	place = place_of(self, name);
	*place = entry;
	unlock(self);
}

static void table_find_many(void *self, const char *const names[], uint64_t found[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct counted *object;
		struct entry *entry;

		lock(self, 0);
		entry = *place_of(self, names[i]);
		object = entry != NULL ? entry->object : NULL;
		if (object != NULL)
			atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
		unlock(self);
		found[i] = object != NULL ? object->number : 0;
		release(object);
	}
}

static void table_renew(void *self, const char *name, uint64_t number)
{
	struct entry *entry, **place;

	lock(self, 1);
	place = place_of(self, name);
	entry = *place;
	if (entry != NULL)
		*place = entry->next;
	unlock(self);
	if (entry != NULL)
		release(entry->object);
	free(entry);
	table_add(self, name, number);
}

const struct names_contender mutex_names_contender = {
	.about = {.name = "mutex, hash table"},
	.create = mutex_create,
	.destroy = table_destroy,
	.add = table_add,
	.find_many = table_find_many,
	.renew = table_renew,
};
const struct names_contender rwlock_names_contender = {
	.about = {.name = "rwlock, hash table"},
	.create = rwlock_create,
	.destroy = table_destroy,
	.add = table_add,
	.find_many = table_find_many,
	.renew = table_renew,
};
