/*
 * calls.h - what programs contain of the headers of release 0.1: types, numbers, and the inlined code
 * that has had one form until now. form_1.h and form_2.h have the code that has had two.
 *
 * Never edit what stands in these files, whatever the headers become: programs were compiled with it,
 * and their binaries do not change. The tests that include them include no header of the library, so
 * they do what such a program does. If one fails, the library must change: see "Binary interface" in
 * docs/embedding.md. When the inlined code of a header changes, its new form gets a file beside these,
 * and a program tests/test_older_<n>.c. scripts/check_releases fails until then: it compares the
 * newest form with the headers.
 */
#ifndef OLDER_CALLS_H
#define OLDER_CALLS_H

#include <stddef.h>
#include <stdint.h>

#if defined(WEIR_API_H)
#error "a program of older headers must not see those of today"
#endif

#define WEIR_STRUCT_SIZE(type) .struct_size = sizeof(type)
#define WEIR_NO_DEADLINE UINT64_MAX

enum weir_status {
	WEIR_OK = 0,
	WEIR_CANCELLED = 1,
	WEIR_INVALID_ARGUMENT = 2,
	WEIR_DEADLINE_EXCEEDED = 3,
	WEIR_NOT_FOUND = 4,
	WEIR_ALREADY_EXISTS = 5,
	WEIR_RESOURCE_EXHAUSTED = 6,
	WEIR_FAILED_PRECONDITION = 7,
	WEIR_ABORTED = 8,
	WEIR_OUT_OF_RANGE = 9,
	WEIR_UNIMPLEMENTED = 10,
	WEIR_INTERNAL = 11,
	WEIR_DATA_LOSS = 12,
	WEIR_WOULD_BLOCK = 13,
	WEIR_UNAVAILABLE = 14
};

enum weir_error_sizes { WEIR_ERROR_MESSAGE_SIZE = 252 };

typedef struct weir_error {
	enum weir_status code;
	char message[WEIR_ERROR_MESSAGE_SIZE];
} weir_error;

typedef struct weir_allocator weir_allocator;
typedef struct weir_tensor weir_tensor;
typedef struct weir_var weir_var;
typedef struct weir_ring weir_ring;

enum weir_dtype { WEIR_I64 = 6 };
enum weir_tensor_limits { WEIR_MAX_RANK = 8 };

typedef struct weir_shape {
	uint32_t rank;
	int64_t dims[WEIR_MAX_RANK];
} weir_shape;

enum weir_status weir_tensor_copy_of(enum weir_dtype dtype, const weir_shape *shape, const void *data,
                                     const weir_allocator *allocator, weir_tensor **out);
void weir_tensor_release(weir_tensor *tensor);
const void *weir_tensor_data(const weir_tensor *tensor);

enum weir_var_kind { WEIR_VAR_TENSOR, WEIR_VAR_INLINE, WEIR_VAR_POINTER, WEIR_VAR_TABLE };

typedef struct weir_read {
	union {
		weir_tensor *tensor;
		const void *data;
		void *pointer;
	};
	uint64_t version;
	void *hold;
} weir_read;

typedef void weir_pointer_release_fn(void *context, void *pointer);
typedef size_t weir_pointer_size_fn(void *context, const void *pointer);

struct weir_var_options {
	size_t struct_size;
	const char *name;
	enum weir_dtype dtype;
	const weir_shape *shape;
	uint32_t flags;
	size_t history;
	const weir_allocator *allocator;
	enum weir_var_kind kind;
	size_t size;
	weir_pointer_release_fn *release;
	weir_pointer_size_fn *measure;
	void *context;
};
#define WEIR_VAR_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_var_options)

typedef struct weir_value {
	enum weir_var_kind kind;
	uint32_t size;
	union {
		weir_tensor *tensor;
		const void *data;
		void *room;
		void *pointer;
	};
} weir_value;

struct weir_value_part {
	weir_var *var;
	uint64_t expected;
	weir_value value;
};

enum weir_status weir_var_create(weir_tensor *initial, const struct weir_var_options *options, weir_var **out,
                                 weir_error *error);
enum weir_status weir_var_create_value(weir_value initial, const struct weir_var_options *options, weir_var **out,
                                       weir_error *error);
enum weir_status weir_var_destroy(weir_var *var, weir_error *error);
enum weir_status weir_var_read(weir_var *var, weir_read *read);
void weir_read_release(weir_read *read);
enum weir_status weir_var_assign(weir_var *var, weir_tensor *value, uint64_t deadline_ns, weir_read *published,
                                 weir_error *error);
enum weir_status weir_var_assign_value(weir_var *var, weir_value value, uint64_t deadline_ns, weir_read *published,
                                       weir_error *error);
enum weir_status weir_var_commit_values(const struct weir_value_part parts[], size_t count, uint64_t deadline_ns,
                                        weir_read published[], weir_error *error);
enum weir_status weir_reclaim_flush(uint64_t deadline_ns);

typedef struct weir_read_section {
	size_t struct_size;
	const uint64_t *era;
	const uint64_t *reserved;
	uint32_t stamp_at;
	uint32_t read_at;
	void *record;
	uint64_t outer;
	uint64_t depth;
} weir_read_section;
#define WEIR_READ_SECTION_INIT WEIR_STRUCT_SIZE(weir_read_section)

enum weir_status weir_read_section_begin(weir_read_section *section);
const weir_read *weir_read_section_find(const weir_read_section *section, weir_var *var);
enum weir_status weir_read_section_end(weir_read_section *section);

typedef struct weir_var_cache {
	const void *const *word;
	const void *seen;
	weir_var *var;
	weir_read read;
} weir_var_cache;

void weir_var_cache_init(weir_var_cache *cache, weir_var *var);
const weir_read *weir_var_cache_refresh(weir_var_cache *cache);
void weir_var_cache_release(weir_var_cache *cache);

struct weir_ring_options;

typedef struct weir_ring_port {
	uint64_t *slots;
	uint64_t *tail;
	uint64_t *head;
	const uint32_t *closed;
	weir_ring *ring;
	uint32_t mask;
	uint32_t shift;
} weir_ring_port;

enum weir_status weir_ring_create(size_t capacity, const struct weir_ring_options *options, weir_ring **out,
                                  weir_error *error);
enum weir_status weir_ring_destroy(weir_ring *ring, weir_error *error);
enum weir_status weir_ring_try_enqueue(weir_ring *ring, uint64_t value);
enum weir_status weir_ring_try_dequeue(weir_ring *ring, uint64_t *value);
void weir_ring_port_init(weir_ring_port *port, weir_ring *ring);

static inline weir_value weir_value_tensor(weir_tensor *tensor)
{
	weir_value value;

	value.kind = WEIR_VAR_TENSOR;
	value.size = 0;
	value.tensor = tensor;
	return value;
}

static inline weir_value weir_value_inline(const void *data, size_t size)
{
	weir_value value;

	value.kind = WEIR_VAR_INLINE;
	value.size = size <= UINT32_MAX ? (uint32_t)size : UINT32_MAX;
	value.data = data;
	return value;
}

static inline weir_value weir_value_pointer(void *pointer)
{
	weir_value value;

	value.kind = WEIR_VAR_POINTER;
	value.size = 0;
	value.pointer = pointer;
	return value;
}

#if defined(__SANITIZE_THREAD__)
#define WEIRI_RING_PORT_IS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIRI_RING_PORT_IS_WATCHED 1
#endif
#endif

#if defined(__x86_64__) && defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)
__extension__ typedef unsigned __int128 __attribute__((may_alias)) weiri_ring_port_slot;

static inline int weiri_ring_port_fill(uint64_t *slot, uint64_t state, uint64_t value, uint64_t next)
{
	return __sync_bool_compare_and_swap((weiri_ring_port_slot *)(void *)slot, (weiri_ring_port_slot)value << 64 | state,
	                                    (weiri_ring_port_slot)next << 64 | (state + 1));
}
#define WEIRI_RING_PORT_INLINE 1
#elif defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !defined(WEIRI_RING_PORT_IS_WATCHED)
/* The same without -mcx16. The library has looked whether the processor can do it. */
static inline int weiri_ring_port_fill(uint64_t *slot, uint64_t state, uint64_t value, uint64_t next)
{
	uint64_t saved;
	int filled;

	/*
	 * The instruction wants state + 1 in rbx. It is put there by hand: clang before 19 may keep the
	 * frame of the caller in rbx, and would lose it to an operand.
	 */
	__asm__ __volatile__("mov{q}\t{%%rbx, %[saved]|%[saved], rbx}\n\t"
	                     "mov{q}\t{%[full], %%rbx|rbx, %[full]}\n\t"
	                     "lock cmpxchg16b\t{(%[slot])|[%[slot]]}\n\t"
	                     "mov{q}\t{%[saved], %%rbx|rbx, %[saved]}"
	                     : "=@ccz"(filled), "+a"(state), "+d"(value), [saved] "=&D"(saved)
	                     : [full] "r"(state + 1), "c"(next), [slot] "S"(slot)
	                     : "memory");
	return filled;
}
#define WEIRI_RING_PORT_INLINE 1
#endif

static inline enum weir_status weir_ring_port_try_enqueue(const weir_ring_port *port, uint64_t value)
{
#if defined(WEIRI_RING_PORT_INLINE)
	/* The orders are those of lib/weir/ring/algorithm.h and ltq16.c. */
	uint64_t ticket = __atomic_load_n(port->tail, __ATOMIC_ACQUIRE);
	uint64_t *slot = port->slots + 2 * (ticket & port->mask);
	uint64_t state = __atomic_load_n(&slot[0], __ATOMIC_SEQ_CST);
	uint64_t held = __atomic_load_n(&slot[1], __ATOMIC_RELAXED);
	uint64_t differs = state ^ (ticket >> port->shift << 1);

	if (__builtin_expect((differs | __atomic_load_n(port->closed, __ATOMIC_ACQUIRE)) == 0, 1) &&
	    __builtin_expect(weiri_ring_port_fill(slot, state, held, value), 1)) {
		__atomic_store_n(port->tail, ticket + 1, __ATOMIC_RELEASE);
		return WEIR_OK;
	}
#endif
	return weir_ring_try_enqueue(port->ring, value);
}

static inline enum weir_status weir_ring_port_try_dequeue(const weir_ring_port *port, uint64_t *value)
{
#if defined(WEIRI_RING_PORT_INLINE)
	uint64_t ticket = __atomic_load_n(port->head, __ATOMIC_ACQUIRE);
	uint64_t *slot = port->slots + 2 * (ticket & port->mask);
	uint64_t state = __atomic_load_n(&slot[0], __ATOMIC_SEQ_CST);
	uint64_t held = __atomic_load_n(&slot[1], __ATOMIC_RELAXED);

	if (__builtin_expect(state == (ticket >> port->shift << 1) + 1 && value != NULL, 1) &&
	    __builtin_expect(
			__atomic_compare_exchange_n(&slot[0], &state, state + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST), 1)) {
		*value = held;
		__atomic_store_n(port->head, ticket + 1, __ATOMIC_RELEASE);
		return WEIR_OK;
	}
#endif
	return weir_ring_try_dequeue(port->ring, value);
}

#endif
