/*
 * alloc.h - where Weir's memory comes from.
 *
 * Every create call takes an allocator. NULL means the default one, which uses the sized calls of
 * jemalloc if the process has them, and malloc() or aligned_alloc() otherwise. Weir never replaces
 * malloc(). If there is no memory, the status is WEIR_RESOURCE_EXHAUSTED.
 *
 * | call                   | threads | progress  | blocks on | allocates | signal-safe |
 * |------------------------|---------|-----------|-----------|-----------|-------------|
 * | weir_default_allocator | any     | wait-free | nothing   | no        | yes         |
 */
#ifndef WEIR_ALLOC_H
#define WEIR_ALLOC_H

#include <stddef.h>
#include <weir/api.h>

WEIR_BEGIN_DECLS

/*
 * The struct is copied into each object that is created with it. `context` must outlive those
 * objects and their retired memory: versions, variables, hooks of tokens, and operations that
 * waited are freed some time after their end. Call weir_reclaim_flush() before `context` ends. Any
 * number of threads may call the two functions at the same time. alignment is a power of two of at
 * least sizeof(void *).
 */
typedef struct weir_allocator {
	/*
	 * Returns `size` bytes (> 0), or NULL if there is no memory. The bytes need not be initialized:
	 * Weir writes each of them before it reads it.
	 */
	void *(*allocate)(void *context, size_t size, size_t alignment);
	/* Frees memory from allocate() with the same size and alignment. Never called with NULL. */
	void (*release)(void *context, void *memory, size_t size, size_t alignment);
	void *context;
} weir_allocator;

/* The default allocator; static, never NULL. @since 0.1 */
WEIR_API const weir_allocator *weir_default_allocator(void);

WEIR_END_DECLS

#endif
