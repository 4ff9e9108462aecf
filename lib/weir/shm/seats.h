/*
 * seats.h - the processes that are attached to shared memory, and whether one of them is gone.
 *
 * A seat is one word in shared memory: 0, or the identity of the process that has it, which is
 * {start time, pid}. Linux gives a pid to another process later; a pid with its start time
 * (/proc/PID/stat, field 22, in ticks since boot) is never given twice, because two processes with
 * one pid do not start in one tick: there would have to be a process for each other pid between
 * them. Both fit into one word: a pid has at most 22 bits, and 42 bits of ticks last 1,300 years. So
 * one CAS takes a seat, and no process can die between two halves of its identity.
 *
 *   0 -> identity         take: its process
 *   identity -> 0         leave: its process; or a recovery, when the process is gone and all that
 *                         it had is recovered
 *   identity -> identity  take over, where nothing has to be recovered: the next process
 *
 * Pairs
 *   Q1  leave (release) -> take (acquire): what the seat's last process, or its recovery, did
 *   Q2  take over (release), leave -> owner (acquire): what was done about the seat's last process
 * Progress: lock-free. A process that is stopped has not gone, and keeps its seat.
 */
#ifndef WEIRI_SHM_SEATS_H
#define WEIRI_SHM_SEATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

typedef _Atomic(uint64_t) weiri_seat;

/* Returns the identity of the calling process; 0 if /proc does not tell it. Makes system calls. */
uint64_t weiri_seats_self(void);
/*
 * Returns true if none of the instructions of that process can execute any more. A zombie is gone,
 * too. Returns false if the system does not say. Makes system calls.
 */
bool weiri_seats_is_gone(uint64_t identity);
/* Returns a number that differs between pid and between time namespaces, or 0 if it is not known. */
uint64_t weiri_seats_namespace(void);

/* Takes a free seat. Returns its number, or -1 if there is none. */
static inline int weiri_seats_take(weiri_seat seats[], uint32_t count, uint64_t identity)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t none = 0;

		/* [Q1 acquire] pairs with weiri_seats_leave(). */
		if (weiri_cas_acquire(&seats[i], &none, identity))
			return (int)i;
	}
	return -1;
}

/* Frees the seat if the process of that identity has it. Returns true if this call freed it. */
static inline bool weiri_seats_leave(weiri_seat *seat, uint64_t identity)
{
	/* [Q1 release] pairs with weiri_seats_take(). */
	return weiri_cas_release(seat, &identity, UINT64_C(0));
}

/* Takes the seat of a process that is gone. Returns true if this call took it. */
static inline bool weiri_seats_take_over(weiri_seat *seat, uint64_t gone, uint64_t identity)
{
	/* [Q2 release] pairs with weiri_seats_owner(). No acquire: the stores of one that is gone are visible. */
	return weiri_cas_release(seat, &gone, identity);
}

static inline uint64_t weiri_seats_owner(const weiri_seat *seat)
{
	return weiri_load_acquire(seat); /* [Q2 acquire] pairs with weiri_seats_take_over() */
}

#endif
