/*
 * heap.c - memory of the program under test: detects use after free, double free and leaks, and
 * restores memory.
 *
 * There is one arena. Each execution starts with the arena as setup left it, so that all executions
 * have the same addresses. A freed block is the first to be allocated again for its size, in order
 * to catch code that mistakes a new object for an old one at the same address.
 *
 * Three parts of the memory are restored: the program's state, the library's writable segments, and
 * the used part of the arena. Each execution starts with these parts as setup left them, or as
 * another execution left them at a choice (checkpoint.c). Only memory that an execution wrote is
 * restored. memory.c knows which memory that is, because every access of instrumented code goes
 * through it. At regular intervals all of the memory is compared, so that writes by code that was
 * not instrumented are noticed.
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/checkpoint.h"
#include "model/engine.h"

enum { ARENA = 4 << 20, BLOCKS = 4096, GRANULE = 16, REGIONS = 10, ROOTS = 4096 };

enum { NEVER, LIVE, FREED };

struct block {
	char *memory;
	size_t size, room, alignment; /* alignment: as it was requested */
	int live;
};

/*
 * Memory that is restored: to `copy` for an execution that begins at setup, to `original` at the
 * end of the search.
 */
struct region {
	char *start, *copy, *original;
	size_t size;
	int is_segment;
};

static _Alignas(4096) char arena[ARENA];
static unsigned char state_of[ARENA / GRANULE + 1];
static size_t arena_used;
static struct block blocks[BLOCKS];
static size_t block_count, live_count, kept;
static int touched; /* blocks were allocated or freed in this execution */

static struct region regions[REGIONS];
static size_t region_count;
static struct block *first_blocks;
static unsigned char *first_state_of;
static size_t first_used, first_count, first_live;
static void **roots[ROOTS]; /* words of the segments that point into the arena after setup */
static size_t root_count;

/* -- blocks ------------------------------------------------------------------------------------ */

static void mark(const struct block *block, unsigned char state)
{
	memset(&state_of[(size_t)(block->memory - arena) / GRANULE], state, block->room / GRANULE);
	touched = 1;
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
	size_t room = (size + GRANULE - 1) / GRANULE * GRANULE, asked = alignment;
	struct block *block;

	explore_shows();
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
	block->alignment = asked;
	block->live = 1;
	live_count++;
	mark(block, LIVE);
	memory_forget(block->memory, block->room);
	memset(block->memory, 0xA5, block->room);
	return block->memory;
}

void heap_release(void *memory)
{
	char text[32];

	explore_shows();
	for (size_t i = 0; memory != NULL && i < block_count; i++) {
		if (blocks[i].memory != memory)
			continue;
		if (!blocks[i].live)
			model_fail("double free of %s", heap_name(memory, text));
		/*
		 * A free counts as a write to the whole block, so it races with a thread that still uses
		 * the block. After all threads have ended, no thread uses it.
		 */
		if (model_running)
			memory_plain(memory, blocks[i].size, 1);
		if (trace_on)
			trace_step("free %s", heap_name(memory, text));
		blocks[i].live = 0;
		live_count--;
		mark(&blocks[i], FREED);
		return;
	}
	if (memory != NULL)
		model_fail("free of %s, which was never allocated", heap_name(memory, text));
}

void heap_release_of(void *memory, size_t size, size_t alignment)
{
	char text[32];

	for (size_t i = 0; memory != NULL && i < block_count; i++) {
		if (blocks[i].memory == memory && blocks[i].live &&
		    (blocks[i].size != size || blocks[i].alignment != alignment))
			model_fail("%s, %zu bytes aligned to %zu, is released as %zu bytes aligned to %zu", heap_name(memory, text),
			           blocks[i].size, blocks[i].alignment, size, alignment);
	}
	heap_release(memory);
}

void heap_check(const void *address, const char *what)
{
	size_t offset = (size_t)((const char *)address - arena);
	char text[32];

	if (offset < ARENA && state_of[offset / GRANULE] != LIVE)
		model_fail("%s of %s, which %s", what, heap_name(address, text),
		           state_of[offset / GRANULE] == FREED ? "was freed" : "was never allocated");
}

const char *heap_name(const void *address, char text[static 32])
{
	size_t offset = (size_t)((const char *)address - arena);

	(void)snprintf(text, 32, "%p", address);
	for (size_t i = 0; offset < ARENA && i < block_count; i++) {
		if ((size_t)((const char *)address - blocks[i].memory) < blocks[i].room)
			(void)snprintf(text, 32, "block%zu+%zu", i, (size_t)((const char *)address - blocks[i].memory));
	}
	for (size_t i = 0; i < region_count; i++) {
		if ((size_t)((const char *)address - regions[i].start) < regions[i].size && offset >= ARENA)
			(void)snprintf(text, 32, "%s+%zu", regions[i].is_segment ? "global" : "state",
			               (size_t)((const char *)address - regions[i].start));
	}
	return text;
}

void *weir_model_allocate(size_t size, size_t alignment)
{
	return heap_allocate(size, alignment);
}

void weir_model_release(void *memory)
{
	heap_release(memory);
}

/* -- what is restored -------------------------------------------------------------------------- */

static void *copy_of(const void *memory, size_t size)
{
	void *copy = malloc(size + 1);

	if (copy == NULL)
		abort();
	return memcpy(copy, memory, size);
}

static void add_region(char *start, size_t size, int is_segment)
{
	if (region_count == REGIONS || size == 0)
		return;
	regions[region_count++] = (struct region){start, NULL, copy_of(start, size), size, is_segment};
}

/* Recognizes the library by its name. */
static int add_segments(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size, (void)context;
	if (strstr(info->dlpi_name, "weir-under-test") == NULL)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD && (header->p_flags & PF_W) != 0)
			add_region((char *)(info->dlpi_addr + header->p_vaddr), header->p_memsz, 1);
	}
	return 0;
}

void heap_begin(void)
{
	memset(state_of, NEVER, sizeof(state_of));
	arena_used = block_count = live_count = 0;
	region_count = root_count = 0;
	add_region(model_program->state, model_program->state_size, 0);
	(void)dl_iterate_phdr(add_segments, NULL);
}

void heap_keep(void)
{
	kept = live_count;
}

static void find_roots(const struct region *region)
{
	for (size_t at = 0; at + sizeof(void *) <= region->size; at += sizeof(void *)) {
		void **word = (void **)(void *)(region->start + at);

		if ((size_t)((char *)*word - arena) < ARENA && root_count < ROOTS)
			roots[root_count++] = word;
	}
}

void heap_remember(void)
{
	add_region(arena, arena_used, 0);
	for (size_t i = 0; i < region_count; i++) {
		regions[i].copy = copy_of(regions[i].start, regions[i].size);
		if (regions[i].is_segment)
			find_roots(&regions[i]);
	}
	first_used = arena_used;
	first_count = block_count;
	first_live = live_count;
	first_blocks = copy_of(blocks, block_count * sizeof(blocks[0]));
	first_state_of = copy_of(state_of, arena_used / GRANULE + 1);
	touched = 0;
}

static const struct region *region_of(const char *address)
{
	for (size_t i = 0; i < region_count; i++) {
		if ((size_t)(address - regions[i].start) < regions[i].size)
			return &regions[i];
	}
	return NULL;
}

static size_t extent_in(const struct region *region, const char *address)
{
	size_t left = region->size - (size_t)(address - region->start);

	return left < 4 ? left : 4;
}

size_t heap_extent(const char *address)
{
	const struct region *region = region_of(address);

	if ((size_t)(address - arena) < ARENA)
		return 4;
	return region != NULL ? extent_in(region, address) : 0;
}

void heap_put_back(char *address)
{
	const struct region *region = region_of(address);

	if (region != NULL)
		memcpy(address, region->copy + (address - region->start), extent_in(region, address));
}

static void compare(void)
{
	for (size_t i = 0; i < region_count; i++) {
		for (size_t at = 0; at < regions[i].size; at++) {
			if (regions[i].start[at] != regions[i].copy[at]) {
				(void)fprintf(stderr, "model: code that is not instrumented wrote to %s %zu+%zu\n",
				              regions[i].is_segment ? "global" : "state", i, at);
				abort();
			}
		}
	}
}

static void put_blocks_back(void)
{
	if (!touched)
		return;
	memset(state_of + first_used / GRANULE, NEVER, (arena_used - first_used) / GRANULE + 1);
	memcpy(state_of, first_state_of, first_used / GRANULE);
	memcpy(blocks, first_blocks, first_count * sizeof(blocks[0]));
	arena_used = first_used;
	block_count = first_count;
	live_count = first_live;
	touched = 0;
}

void heap_restore(int with_comparison)
{
	memory_each_written(heap_put_back);
	if (with_comparison)
		compare();
	put_blocks_back();
}

void heap_parts(struct checkpoint *checkpoint)
{
	if (checkpoint->back)
		put_blocks_back();
	checkpoint_part(checkpoint, &touched, sizeof(touched));
	if (!touched)
		return;
	checkpoint_part(checkpoint, &arena_used, sizeof(arena_used));
	checkpoint_part(checkpoint, &block_count, sizeof(block_count));
	checkpoint_part(checkpoint, &live_count, sizeof(live_count));
	checkpoint_part(checkpoint, blocks, block_count * sizeof(blocks[0]));
	checkpoint_part(checkpoint, state_of, arena_used / GRANULE + 1);
}

void heap_end(void)
{
	for (size_t i = 0; i < region_count; i++) {
		memcpy(regions[i].start, regions[i].original, regions[i].size);
		free(regions[i].original);
		free(regions[i].copy);
	}
	region_count = 0;
	free(first_blocks);
	free(first_state_of);
	first_blocks = NULL;
	first_state_of = NULL;
}

uint64_t heap_state(void)
{
	uint64_t state = state_mix(6, arena_used);

	for (size_t i = 0; touched && i < block_count; i++)
		state += state_mix(state_mix(7, i), (uint64_t)blocks[i].alignment << 32 | (uint64_t)blocks[i].size << 1 |
		                                        (unsigned)blocks[i].live);
	return state;
}

/* -- leaks ------------------------------------------------------------------------------------- */

static unsigned char reached[BLOCKS];

static void reach_from(const char *start, size_t size);

static void reach(uintptr_t pointer)
{
	if (pointer - (uintptr_t)arena >= ARENA)
		return;
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
		reach(pointer);
	}
}

static void reach_written(char *address)
{
	address -= (uintptr_t)address % sizeof(void *);
	for (size_t i = 0; i < region_count; i++) {
		if (regions[i].is_segment && (size_t)(address - regions[i].start) + sizeof(void *) <= regions[i].size)
			reach_from(address, sizeof(void *));
	}
}

/*
 * A block is not lost if a global variable leads to it: the library keeps its records for ever.
 */
void heap_check_leaks(void)
{
	if (live_count <= kept)
		return;
	memset(reached, 0, block_count);
	for (size_t i = 0; i < root_count; i++)
		reach((uintptr_t)*roots[i]);
	memory_each_written(reach_written);
	for (size_t i = 0; i < block_count; i++) {
		if (blocks[i].live && !reached[i])
			model_fail("leak: %zu bytes, block%zu", blocks[i].size, i);
	}
}
