/*
 * memory.c - the default allocator, and allocation through any allocator.
 */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * jemalloc's sized calls, used if the process has linked jemalloc. A sanitizer build has not linked
 * it, and uses the sanitizer's malloc.
 */
extern void *mallocx(size_t size, int flags) __attribute__((weak));
extern void sdallocx(void *memory, size_t size, int flags) __attribute__((weak));

/*
 * Computes MALLOCX_ALIGN() of jemalloc's manual: the low bits of the flags have the base-2
 * logarithm of the alignment.
 */
static int jemalloc_alignment(size_t alignment)
{
	return __builtin_ctzl(alignment);
}

/*
 * A block that must be aligned more than malloc() aligns is cut out of a larger one, with the address of
 * that one right before it. Until glibc 2.38, aligned_alloc() knows no cache of the thread: it takes a
 * block of the heap, splits it, and gives the rest back, which later blocks do not fit into. A pair of
 * allocation and release took 72 ns in that way, and 27 ns in this one, whether of 1 KiB or of 16 MiB, and the
 * heap of 1,024 blocks of 3 KiB was 1.5 times as large (AMD EPYC). Sanitizers see accesses past the end of a
 * block only if it is a block of theirs.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define UNCUT
#endif
#endif
#if defined(UNCUT) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CUTS = 0 };
#else
enum { CUTS = 1 };
#endif

static bool is_cut(size_t alignment)
{
	return CUTS && alignment > _Alignof(max_align_t) && alignment <= 128;
}

static void *allocate_cut(size_t size, size_t alignment)
{
	char *whole = weiri_add(size, alignment, &size) ? malloc(size) : NULL;
	void **block;

	if (whole == NULL)
		return NULL;
	/* malloc() aligns to max_align_t, so that there are at least as many bytes before the block. */
	block = (void **)(void *)(whole + (alignment - (uintptr_t)whole % alignment));
	block[-1] = whole;
	return block;
}

/* aligned_alloc requires a multiple of the alignment. Returns 0 on overflow. */
static size_t round_up(size_t size, size_t alignment)
{
	size_t rounded;

	return weiri_add(size, alignment - 1, &rounded) ? rounded & ~(alignment - 1) : 0;
}

void *weiri_default_allocate(void *context, size_t size, size_t alignment)
{
	(void)context;
	if (mallocx != NULL && sdallocx != NULL)
		return mallocx(size, jemalloc_alignment(alignment));
	if (is_cut(alignment))
		return allocate_cut(size, alignment);
	size = round_up(size, alignment);
	return size != 0 ? aligned_alloc(alignment, size) : NULL;
}

void weiri_default_release(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context;
	if (mallocx != NULL && sdallocx != NULL)
		sdallocx(memory, size, jemalloc_alignment(alignment));
	else
		free(is_cut(alignment) ? ((void **)memory)[-1] : memory);
}

static const weir_allocator default_allocator = {weiri_default_allocate, weiri_default_release, NULL};

const weir_allocator *weir_default_allocator(void)
{
	return &default_allocator;
}

weir_allocator weiri_allocator_or_default(const weir_allocator *allocator)
{
	return allocator != NULL ? *allocator : default_allocator;
}

void *weiri_allocate(const weir_allocator *allocator, size_t size, size_t alignment)
{
	if (size == 0 || size > PTRDIFF_MAX)
		return NULL;
	return allocator->allocate(allocator->context, size, alignment < sizeof(void *) ? sizeof(void *) : alignment);
}

void *weiri_allocate_zeroed(const weir_allocator *allocator, size_t size, size_t alignment)
{
	void *memory = weiri_allocate(allocator, size, alignment);

	return memory != NULL ? memset(memory, 0, size) : NULL;
}

void weiri_release(const weir_allocator *allocator, void *memory, size_t size, size_t alignment)
{
	if (memory != NULL)
		allocator->release(allocator->context, memory, size, alignment < sizeof(void *) ? sizeof(void *) : alignment);
}
