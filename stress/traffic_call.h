/*
 * traffic_call.h - one call on a queue, drawn at random: which call, for how many items, with which
 * deadline and token, and which results it may have.
 */
#ifndef STRESS_TRAFFIC_CALL_H
#define STRESS_TRAFFIC_CALL_H

#include <weir/cancel.h>

#include "traffic.h"

enum { TRAFFIC_MOST = 6, TRAFFIC_COMPLETIONS = 8 };

/* The queue of a round, and what all its callers share. */
struct traffic_queue {
	const struct traffic *traffic;
	weir_queue *queue;
	struct stress_object object; /* for the watchdog */
	_Atomic(uint32_t) closing;   /* a close may have begun */
	/*
	 * A token that many calls share. It is replaced when it was fired. The lock belongs to the
	 * harness, and no call under test runs under it.
	 */
	pthread_mutex_t lock;
	weir_cancel *shared;
};

/*
 * The completion of an asynchronous call. It is kept after the call, so that a second completion
 * would be detected.
 */
struct traffic_completion {
	_Atomic(uint32_t) count;
	enum weir_status status;
	size_t done;
};

/* A thread that calls. */
struct traffic_caller {
	struct traffic_queue *on;
	/* the token of the call under way; the thread that fires it takes it */
	_Atomic(weir_cancel *) offered;
	struct traffic_completion completions[TRAFFIC_COMPLETIONS];
	unsigned next_completion;
};

/* The request and its result. */
struct traffic_call {
	int many, up_to, asynchronous, tries;
	size_t wanted, done;
	uint64_t deadline_ns;
	weir_cancel *token;
	int cancelled; /* asynchronous: the caller cancelled it */
	int fired;     /* its token had fired when the call ended */
	enum weir_status status;
	void *items[TRAFFIC_MOST];
};

/* `several`: the flag of TRAFFIC_* that allows more than one item. */
void traffic_draw(struct stress_thread *self, struct traffic_caller *caller, unsigned several,
                  struct traffic_call *call);
/* Make the call with its items, and check that status and number agree. */
void traffic_enqueue(struct stress_thread *self, struct traffic_caller *caller, struct traffic_call *call);
void traffic_dequeue(struct stress_thread *self, struct traffic_caller *caller, struct traffic_call *call);
/* Checks that the call may have this status, and returns the token. */
void traffic_end(struct traffic_caller *caller, struct traffic_call *call, const char *what);

/* Fire the token of the call under way, if it has one, or the shared token. */
void traffic_fire(struct stress_thread *self, struct traffic_caller *caller);
void traffic_fire_shared(struct stress_thread *self, struct traffic_queue *queue);

/* Checks at the end that each asynchronous call completed once. */
void traffic_check_completions(const struct traffic_caller *caller);

#endif
