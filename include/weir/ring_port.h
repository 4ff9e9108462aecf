/*
 * ring_port.h - a way into a ring whose enqueue and dequeue are inlined in the program.
 *
 * Use it where a thread moves single values through a ring so often that the call of a function
 * counts: two calls of a library are a third of the time of a pair on one thread. Elsewhere use
 * weir/ring.h, which does the same. Batches have no inlined form: the call is a small part of them.
 *
 *     weir_ring_port port;
 *     uint64_t value;
 *
 *     weir_ring_port_init(&port, ring);
 *     if (weir_ring_port_try_enqueue(&port, 42) == WEIR_OK)
 *         (void)weir_ring_port_try_dequeue(&port, &value);
 *
 * | call                       | threads | progress  | blocks on | allocates | signal-safe |
 * |----------------------------|---------|-----------|-----------|-----------|-------------|
 * | weir_ring_port_init        | any     | wait-free | nothing   | no        | yes         |
 * | weir_ring_port_try_enqueue | any     | lock-free (1) | nothing | no      | yes         |
 * | weir_ring_port_try_dequeue | any     | lock-free | nothing   | no        | yes         |
 *
 * (1) As weir_ring_try_enqueue().
 *
 * A port does not change after weir_ring_port_init(), and holds nothing: any number of threads may
 * use one port, a ring may have any number of ports, and the calls of weir/ring.h may be mixed with
 * them. There is nothing to release. The ring must exist while a port of it is used.
 *
 * What is inlined. On x86-64, for a ring of format LTQ16 whose capacity is a power of two: an
 * enqueue that finds a free slot where it begins, and a dequeue that finds a value there. In every
 * other case (another format, capacity or machine, "full", "empty", closed, a lost race) the inlined
 * code calls weir_ring_try_enqueue() or weir_ring_try_dequeue(). Programs compiled for
 * ThreadSanitizer without -mcx16, and by other compilers than gcc and clang, always call.
 *
 * Ordering and errors: as the calls of weir/ring.h; all of them together are linearizable.
 *
 * Source: the fast path of the ring, lib/weir/ring/algorithm.h.
 * @since 0.1
 */
#ifndef WEIR_RING_PORT_H
#define WEIR_RING_PORT_H

#include <stddef.h>
#include <stdint.h>
#include <weir/ring.h>

WEIR_BEGIN_DECLS

/*
 * All fields are private. The layout, and what the fields lead to, are part of the binary interface:
 * programs contain the inlined code of the calls below.
 */
typedef struct weir_ring_port {
	uint64_t *slots; /* two words each: state, value */
	uint64_t *tail;  /* the ticket at which an enqueue begins */
	uint64_t *head;  /* the ticket at which a dequeue begins */
	const uint32_t *closed;
	weir_ring *ring;
	uint32_t mask;  /* the bits of a ticket that number its slot */
	uint32_t shift; /* of a ticket, to its lap */
} weir_ring_port;

/*
 * Makes *port a port of `ring`. With ring NULL, both calls return WEIR_INVALID_ARGUMENT. Does
 * nothing if `port` is NULL.
 * @since 0.1
 */
WEIR_API void weir_ring_port_init(weir_ring_port *port, weir_ring *ring);

#if defined(__SANITIZE_THREAD__)
#define WEIRI_RING_PORT_IS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIRI_RING_PORT_IS_WATCHED 1
#endif
#endif

#if defined(__x86_64__) && defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)
__extension__ typedef unsigned __int128 __attribute__((may_alias)) weiri_ring_port_slot;

/*
 * Replaces {state, value} by {state + 1, next}. Returns 0 if the slot has changed. A full barrier.
 * The compiler has the instruction, and checkers know it.
 */
static inline int weiri_ring_port_fill(uint64_t *slot, uint64_t state, uint64_t value,
                                       uint64_t next)
{
	return __sync_bool_compare_and_swap(
		WEIRI_CAST(weiri_ring_port_slot *, WEIRI_CAST(void *, slot)),
		WEIRI_CAST(weiri_ring_port_slot, value) << 64 | state,
		WEIRI_CAST(weiri_ring_port_slot, next) << 64 | (state + 1));
}
#define WEIRI_RING_PORT_INLINE 1
#elif defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && \
	!defined(WEIRI_RING_PORT_IS_WATCHED)
/* The same without -mcx16. The library has looked whether the processor can do it. */
static inline int weiri_ring_port_fill(uint64_t *slot, uint64_t state, uint64_t value,
                                       uint64_t next)
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

/*
 * Enqueues `value`: weir_ring_try_enqueue() of the port's ring. The port was initialized.
 * @since 0.1
 */
static inline enum weir_status weir_ring_port_try_enqueue(const weir_ring_port *port,
                                                          uint64_t value)
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

/*
 * Dequeues the oldest value into *value: weir_ring_try_dequeue() of the port's ring. The port was
 * initialized.
 * @since 0.1
 */
static inline enum weir_status weir_ring_port_try_dequeue(const weir_ring_port *port,
                                                          uint64_t *value)
{
#if defined(WEIRI_RING_PORT_INLINE)
	uint64_t ticket = __atomic_load_n(port->head, __ATOMIC_ACQUIRE);
	uint64_t *slot = port->slots + 2 * (ticket & port->mask);
	uint64_t state = __atomic_load_n(&slot[0], __ATOMIC_SEQ_CST);
	uint64_t held = __atomic_load_n(&slot[1], __ATOMIC_RELAXED);

	if (__builtin_expect(state == (ticket >> port->shift << 1) + 1 && value, 1) &&
	    __builtin_expect(__atomic_compare_exchange_n(&slot[0], &state, state + 1, 0,
	                                                 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST),
	                     1)) {
		*value = held;
		__atomic_store_n(port->head, ticket + 1, __ATOMIC_RELEASE);
		return WEIR_OK;
	}
#endif
	return weir_ring_try_dequeue(port->ring, value);
}

WEIR_END_DECLS

#endif
