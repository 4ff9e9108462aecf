/*
 * port.c - ports: where the code that programs inline finds the words of a ring.
 *
 * weir/ring_port.h contains enqueue_at() and dequeue_at() of algorithm.h with the slots of ltq16.c, for
 * rings whose capacity is a power of two. It differs from them in this:
 *   - an enqueue reads `closed` after the slot, and tests both at once. A close that came before the
 *     call is seen all the same, and a later one may be missed in either order;
 *   - there is no `before`, and nothing is skipped at the end of a lap;
 *   - whatever else happens, the program calls weir_ring_try_enqueue() or weir_ring_try_dequeue(), which
 *     begins anew.
 * So the proof is that of algorithm.h, and its pairs are those of the header.
 *
 * Binary interface. The inlined code knows: the fields of the port; that a slot is {state, value}, two
 * words, aligned to both; that the state at ticket t is 2 * (t >> shift) if it is free and one more if
 * it is full, and that the slot's number is t & mask; that a CAS of the two words fills a slot and a
 * CAS of the state drains it; that the next ticket is t + 1 and is stored in the hint; that an enqueue
 * must call if *closed is not 0. If one of these facts changes, weir_ring_port_init() leads the ports
 * of old programs to `nowhere`, as it does for rings of another form: then they call for each value.
 *
 * Checked: stress/model/check_ring.c, with the header's own code; tests/test_ring.c;
 * stress/scenario_ring.c, scenario_stopped_ring.c.
 */
#include <weir/ring_port.h>

#include "ring/layout.h"

_Static_assert(sizeof(weir_ring_port) == 5 * sizeof(void *) + 8, "programs contain this");
_Static_assert(offsetof(weir_ring_port, mask) == 5 * sizeof(void *), "programs contain this");

/* A slot that is neither free nor full at ticket 0, which is where operations there begin. */
static const uint64_t nowhere[2] = {UINT64_MAX, 0};
static const uint64_t no_ticket = 0;

static bool has_inlined_form(const weir_ring *ring)
{
	return ring != NULL && ring->format == WEIR_RING_FORMAT_LTQ16 && ring->shape.end_index == 0;
}

void weir_ring_port_init(weir_ring_port *port, weir_ring *ring)
{
	if (port == NULL)
		return;
	/* Nothing is written there: the state differs. */
	*port = (weir_ring_port){.slots = (uint64_t *)(uintptr_t)nowhere,
	                         .tail = (uint64_t *)(uintptr_t)&no_ticket,
	                         .head = (uint64_t *)(uintptr_t)&no_ticket,
	                         .closed = (const uint32_t *)(uintptr_t)nowhere,
	                         .ring = ring};
	if (!has_inlined_form(ring))
		return;
	port->slots = ring->slots;
	port->tail = (uint64_t *)(uintptr_t)&ring->tail_hint;
	port->head = (uint64_t *)(uintptr_t)&ring->head_hint;
	port->closed = (const uint32_t *)(uintptr_t)&ring->closed;
	port->mask = (uint32_t)ring->shape.mask;
	port->shift = ring->shape.shift;
}
