/*
 * barrier.h - what tests ask of a barrier beyond its public face.
 */
#ifndef WEIRI_QUEUE_BARRIER_H
#define WEIRI_QUEUE_BARRIER_H

#include <weir/barrier.h>

/* Takes that wait. */
size_t weiri_barrier_waiting(const weir_barrier *barrier);

#endif
