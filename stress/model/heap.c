/*
 * heap.c - memory of the program under test: found when used after its end, freed twice, or never freed.
 *
 * One arena, laid out anew for each execution, so that addresses are the same in each. A freed block is the first to be handed out
 * again for its size: code that mistakes a new object at an old address for the old one is to be caught.
 * The library's globals are put back by copying its writable segments.
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/engine.h"

enum { ARENA = 4 << 20, BLOCKS = 4096, GRANULE = 16 };

enum { NEVER, LIVE, FREED };

struct block {
	char *memory;
	size_t size, room;
	int live;
};

static _Alignas(4096) char arena[ARENA];
static unsigned char state_of[ARENA / GRANULE];
static size_t arena_used;
static struct block blocks[BLOCKS];
static size_t block_count;

void heap_reset(void)
{
	memset(state_of, NEVER, arena_used / GRANULE + 1);
	arena_used = 0;
	block_count = 0;
}

static void mark(const struct block *block, unsigned char state)
{
	memset(&state_of[(size_t)(block->memory - arena) / GRANULE], state, block->room / GRANULE);
}

static struct block *find_freed(size_t room, size_t alignment)
{
	for (size_t i = block_count; i-- > 0;) {
		if (!blocks[i].live && blocks[i].room == room && (uintptr_t)blocks[i].memory % alignment == 0)
			return &blocks[i];
	}
	return NULL;
}

void *heap_allocate(size_t size, size_t alignment)
{
	size_t room = (size + GRANULE - 1) / GRANULE * GRANULE;
	struct block *block;

	alignment = alignment < GRANULE ? GRANULE : alignment;
	block = find_freed(room, alignment);
	if (block == NULL) {
		arena_used = (arena_used + alignment - 1) / alignment * alignment;
		if (arena_used + room > ARENA || block_count == BLOCKS)
			model_fail("the program allocates more than the checker's arena");
		block = &blocks[block_count++];
		block->memory = arena + arena_used;
		block->room = room;
		arena_used += room;
	}
	block->size = size;
	block->live = 1;
	mark(block, LIVE);
	memory_forget(block->memory, block->room);
	memset(block->memory, 0xA5, block->room);
	return block->memory;
}

void heap_release(void *memory)
{
	for (size_t i = 0; memory != NULL && i < block_count; i++) {
		if (blocks[i].memory != memory)
			continue;
		if (!blocks[i].live)
			model_fail("double free of %p", memory);
		/* Freeing is a write to all of it: whoever still uses it races. */
		memory_plain(memory, blocks[i].size, 1);
		blocks[i].live = 0;
		mark(&blocks[i], FREED);
		return;
	}
	if (memory != NULL)
		model_fail("free of %p, which was never allocated", memory);
}

void heap_check(const void *address, const char *what)
{
	size_t offset = (size_t)((const char *)address - arena);

	if (offset < ARENA && state_of[offset / GRANULE] != LIVE)
		model_fail("%s of %p, which %s", what, address,
		           state_of[offset / GRANULE] == FREED ? "was freed" : "was never allocated");
}

void *weir_model_allocate(size_t size, size_t alignment)
{
	return heap_allocate(size, alignment);
}

void weir_model_release(void *memory)
{
	heap_release(memory);
}

/* -- globals ------------------------------------------------------------------------------------------------------------------ */

struct segment {
	char *start, *copy;
	size_t size;
};
static struct segment segments[8];
static size_t segment_count;

/* The library is the one object whose name says so. */
static int remember(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size, (void)context;
	if (strstr(info->dlpi_name, "weir-under-test") == NULL)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type != PT_LOAD || (header->p_flags & PF_W) == 0 || segment_count == 8)
			continue;
		segments[segment_count].start = (char *)(info->dlpi_addr + header->p_vaddr);
		segments[segment_count].size = header->p_memsz;
		segments[segment_count].copy = malloc(header->p_memsz);
		if (segments[segment_count].copy == NULL)
			abort();
		memcpy(segments[segment_count].copy, segments[segment_count].start, header->p_memsz);
		segment_count++;
	}
	return 0;
}

void heap_remember_globals(void)
{
	if (segment_count == 0)
		(void)dl_iterate_phdr(remember, NULL);
}

void heap_restore_globals(void)
{
	for (size_t i = 0; i < segment_count; i++)
		memcpy(segments[i].start, segments[i].copy, segments[i].size);
}

/* -- leaks -------------------------------------------------------------------------------------------------------------------- */

static unsigned char reached[BLOCKS];

static void reach_from(const char *start, size_t size);

static void reach(uintptr_t pointer)
{
	for (size_t i = 0; i < block_count; i++) {
		if (blocks[i].live && !reached[i] && pointer - (uintptr_t)blocks[i].memory < blocks[i].size) {
			reached[i] = 1;
			reach_from(blocks[i].memory, blocks[i].size);
			return;
		}
	}
}

static void reach_from(const char *start, size_t size)
{
	for (size_t at = 0; at + sizeof(uintptr_t) <= size; at += sizeof(uintptr_t)) {
		uintptr_t pointer;

		memcpy(&pointer, start + at, sizeof(pointer));
		if (pointer - (uintptr_t)arena < ARENA)
			reach(pointer);
	}
}

/* A block that a global leads to is not lost: the library keeps its records for ever. */
void heap_check_leaks(void)
{
	memset(reached, 0, block_count);
	for (size_t i = 0; i < segment_count; i++)
		reach_from(segments[i].start, segments[i].size);
	for (size_t i = 0; i < block_count; i++) {
		if (blocks[i].live && !reached[i])
			model_fail("leak: %zu bytes at %p", blocks[i].size, (void *)blocks[i].memory);
	}
}
