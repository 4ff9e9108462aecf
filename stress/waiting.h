/*
 * waiting.h - Weir's structures as objects that threads wait on, for the watchdog's report.
 */
#ifndef STRESS_WAITING_H
#define STRESS_WAITING_H

#include <weir/queue.h>

#include "harness.h"

/* What a thread can wait for on a queue; a close ends both waits. */
enum { STRESS_AN_ITEM = 1, STRESS_ROOM = 2 };

struct stress_object stress_queue_object(const char *name, const weir_queue *queue);

#endif
