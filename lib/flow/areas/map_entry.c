/*
 * map_entry.c - see map_entry.h.
 */
#include "areas/map_entry.h"

#include <stdalign.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "sync/references.h"

/* -- parts ------------------------------------------------------------------------------------- */

static void part_reclaim(struct weiri_retired *retired)
{
	struct weiri_map_part *part = WEIRI_CONTAINER_OF(retired, struct weiri_map_part, retired);
	weir_allocator allocator = part->allocator;

	weir_tensor_release(part->tensor);
	weiri_release(&allocator, part, sizeof(*part), alignof(struct weiri_map_part));
}

/* Creates a part with one reference. Returns NULL if there is no memory. */
static struct weiri_map_part *part_create(weir_tensor *tensor, const weir_allocator *allocator)
{
	struct weiri_map_part *part = weiri_allocate(allocator, sizeof(*part), alignof(struct weiri_map_part));

	if (part == NULL)
		return NULL;
	weiri_retired_init(&part->retired, sizeof(*part), part_reclaim);
	weiri_store_relaxed(&part->references, (size_t)1); /* [relaxed] not shared yet */
	part->tensor = weir_tensor_retain(tensor);
	part->bytes = weir_tensor_byte_count(tensor);
	part->allocator = *allocator;
	return part;
}

/*
 * Releases a reference. The last one releases the tensor at once, and retires the part, which stays
 * in memory until no section of another thread can see it.
 */
static void part_release(struct weiri_record *record, struct weiri_map_part *part)
{
	if (!weiri_references_give(&part->references)) /* P2 */
		return;
	weir_tensor_release(part->tensor);
	part->tensor = NULL;
	weiri_retire(record, &part->retired);
}

/* Releases a reference in a section. The last one retires the part, and its tensor with it. */
static void part_release_later(struct weiri_scope *scope, struct weiri_map_part *part)
{
	if (weiri_references_give(&part->references)) /* P2 */
		weiri_scope_retire(scope, &part->retired);
}

void weiri_map_parts_release(struct weiri_record *record, struct weiri_map_part *first)
{
	while (first != NULL) {
		struct weiri_map_part *part = first;

		first = part->next;
		part_release(record, part);
	}
}

/* -- choices ----------------------------------------------------------------------------------- */

bool weiri_map_choice_add(struct weiri_map_choice *choice, weir_tensor *tensor, const weir_allocator *allocator)
{
	struct weiri_map_part *part = part_create(tensor, allocator);

	if (part == NULL)
		return false;
	choice->parts[choice->filled++] = part;
	choice->bytes += part->bytes;
	return true;
}

bool weiri_map_choice_retain(struct weiri_scope *scope, struct weiri_map_choice *choice,
                             const struct weiri_map_entry *entry)
{
	while (choice->filled < choice->count) {
		struct weiri_map_part *part = entry->parts[choice->places[choice->filled]];

		if (!weiri_references_try_take(&part->references)) { /* M2 */
			while (choice->filled > 0)
				part_release_later(scope, choice->parts[--choice->filled]);
			return false;
		}
		choice->parts[choice->filled++] = part;
	}
	return true;
}

void weiri_map_choice_take(struct weiri_map_choice *choice, const struct weiri_map_entry *entry)
{
	for (size_t i = 0; i < choice->count; i++)
		choice->parts[i] = entry->parts[choice->places[i]];
	choice->filled = choice->count;
}

void weiri_map_choice_let_go(struct weiri_record *record, struct weiri_map_choice *choice)
{
	while (choice->filled > 0)
		part_release(record, choice->parts[--choice->filled]);
}

void weiri_map_choice_open(struct weiri_record *record, struct weiri_map_choice *choice, weir_tensor *tensors[])
{
	for (size_t i = 0; i < choice->filled; i++)
		tensors[i] = weir_tensor_retain(choice->parts[i]->tensor);
	weiri_map_choice_let_go(record, choice);
}

size_t weiri_map_choice_bytes(const struct weiri_map_choice *choice, const struct weiri_map_entry *entry)
{
	size_t bytes = 0;

	for (size_t i = 0; i < choice->count; i++)
		bytes += entry->parts[choice->places[i]]->bytes;
	return bytes;
}

/* -- entries ----------------------------------------------------------------------------------- */

static size_t entry_size(size_t count)
{
	return sizeof(struct weiri_map_entry) + count * sizeof(struct weiri_map_part *);
}

static void entry_reclaim(struct weiri_retired *retired)
{
	struct weiri_map_entry *entry = WEIRI_CONTAINER_OF(retired, struct weiri_map_entry, retired);
	weir_allocator allocator = entry->allocator;

	weiri_release(&allocator, entry, entry_size(entry->count), alignof(struct weiri_map_entry));
}

void weiri_map_entry_discard(struct weiri_map_entry *entry)
{
	if (entry != NULL)
		entry_reclaim(&entry->retired);
}

/*
 * Creates an entry with the parts of `from`, or without parts if `from` is NULL. Returns NULL if
 * there is no memory.
 */
static struct weiri_map_entry *entry_create(int64_t key, size_t count, const struct weiri_map_entry *from,
                                            const weir_allocator *allocator)
{
	struct weiri_map_entry *entry =
		weiri_allocate_zeroed(allocator, entry_size(count), alignof(struct weiri_map_entry));

	if (entry == NULL)
		return NULL;
	weiri_retired_init(&entry->retired, entry_size(count), entry_reclaim);
	entry->key = key;
	entry->count = count;
	entry->allocator = *allocator;
	if (from != NULL) {
		entry->have = from->have;
		entry->bytes = from->bytes;
		memcpy(entry->parts, from->parts, count * sizeof(struct weiri_map_part *));
	}
	return entry;
}

struct weiri_map_entry *weiri_map_entry_with(const struct weiri_map_choice *put, int64_t key, size_t count,
                                             const struct weiri_map_entry *there, const weir_allocator *allocator)
{
	struct weiri_map_entry *entry = entry_create(key, count, there, allocator);

	if (entry == NULL)
		return NULL;
	for (size_t i = 0; i < put->count; i++)
		entry->parts[put->places[i]] = put->parts[i];
	entry->have |= put->mask;
	entry->bytes += put->bytes;
	return entry;
}

struct weiri_map_entry *weiri_map_entry_without(const struct weiri_map_choice *get, const struct weiri_map_entry *there)
{
	struct weiri_map_entry *entry = entry_create(there->key, there->count, there, &there->allocator);

	if (entry == NULL)
		return NULL;
	for (size_t i = 0; i < get->count; i++)
		entry->parts[get->places[i]] = NULL;
	entry->have &= ~get->mask;
	entry->bytes -= weiri_map_choice_bytes(get, there);
	return entry;
}

void weiri_map_entry_chain(const struct weiri_map_entry *entry, struct weiri_map_part **first)
{
	for (size_t i = 0; i < entry->count; i++) {
		if (entry->parts[i] == NULL)
			continue;
		entry->parts[i]->next = *first;
		*first = entry->parts[i];
	}
}

/* All calls have ended, so only the area has a reference to the part. */
static WEIRI_UNSEEN void assert_last(const struct weiri_map_part *part)
{
	WEIR_ASSERT2(M1, weiri_peek(&part->references) == 1);
}

void weiri_map_entry_end(struct weiri_map_entry *entry)
{
	for (size_t i = 0; i < entry->count; i++) {
		if (entry->parts[i] == NULL)
			continue;
		WEIR_ASSERT_LOOK(assert_last(entry->parts[i]));
		part_reclaim(&entry->parts[i]->retired);
	}
	entry_reclaim(&entry->retired);
}

int weiri_map_compare_keys(const void *key, const void *item)
{
	int64_t ours = *(const int64_t *)key, other = ((const struct weiri_map_entry *)item)->key;

	return ours < other ? -1 : ours > other;
}
