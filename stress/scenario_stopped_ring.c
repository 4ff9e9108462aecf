/*
 * scenario_stopped_ring.c - a thread that stops anywhere in a ring's call blocks no other thread.
 *
 * In addition to the rings there are two controls, which must freeze. A ring under a mutex freezes
 * if the stopped thread holds the mutex. Concurrency Kit's ck_ring for many producers freezes if
 * the thread is between its reservation of a slot and its publication, because the next enqueues
 * wait for this.
 */
#include <pthread.h>
#include <weir/ring_port.h>
#include <weir/time.h>

#include <ck_ring.h>

#include "scenarios.h"
#include "stop.h"
#include "stopping.h"

enum { WORKERS = 4, STOPS = 1000, RING_CAPACITY = 16, MANY = 5, MESSAGE = 256 };

static weir_ring *ring;
static weir_ring_port port;

static int work_on_ring(struct stress_thread *self, unsigned worker)
{
	uint64_t values[MANY] = {1, 2, 3, 4, 5};
	size_t done = 0;

	(void)worker;
	switch (stress_below(self, 6)) {
	case 4: stress_begin(self, "port try_enqueue"); return weir_ring_port_try_enqueue(&port, 1) == WEIR_OK ? 0 : -1;
	case 5:
		stress_begin(self, "port try_dequeue");
		return weir_ring_port_try_dequeue(&port, values) == WEIR_OK ? 1 : -1;
	case 0: stress_begin(self, "try_enqueue"); return weir_ring_try_enqueue(ring, 1) == WEIR_OK ? 0 : -1;
	case 1: stress_begin(self, "try_dequeue"); return weir_ring_try_dequeue(ring, values) == WEIR_OK ? 1 : -1;
	case 2:
		stress_begin(self, "try_enqueue_many");
		return weir_ring_try_enqueue_many(ring, values, MANY, &done) == WEIR_OK ? 0 : -1;
	default:
		stress_begin(self, "try_dequeue_many");
		return weir_ring_try_dequeue_many(ring, values, MANY, &done) == WEIR_OK ? 1 : -1;
	}
}

static void stop_in_ring(struct stress_thread *self, const char *name, enum weir_ring_format format, uint64_t until)
{
	const struct stopping subject = {name, WORKERS, {"enqueue", "dequeue"}, 2, 0, work_on_ring, 1000};
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = format};

	STRESS_CHECK(weir_ring_create(RING_CAPACITY, &options, &ring, NULL) == WEIR_OK, "no ring");
	weir_ring_port_init(&port, ring);
	(void)stopping_must_go_on(self, &subject, stress_scaled(STOPS), until);
	weir_ring_destroy(ring, NULL);
}

/* -- controls ---------------------------------------------------------------------------------- */

/*
 * Items of the controls are written in place, as is usual with messages: under the lock, or between
 * reservation and publication.
 */
static void write_message(uint64_t message[])
{
	for (unsigned i = 0; i < MESSAGE; i++)
		message[i] = i;
	weiri_compiler_barrier();
}

/* One lock around two indexes. */
static struct {
	pthread_mutex_t lock;
	uint64_t head, tail, messages[RING_CAPACITY][MESSAGE];
} locked = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int work_on_locked(struct stress_thread *self, unsigned worker)
{
	int kind = (int)stress_below(self, 2), done;

	(void)worker;
	stress_begin(self, kind == 0 ? "locked enqueue" : "locked dequeue");
	(void)pthread_mutex_lock(&locked.lock);
	done = kind == 0 ? locked.tail - locked.head < RING_CAPACITY : locked.tail != locked.head;
	if (done && kind == 0)
		write_message(locked.messages[locked.tail++ % RING_CAPACITY]);
	else if (done)
		locked.head++;
	(void)pthread_mutex_unlock(&locked.lock);
	return done ? kind : -1;
}

static struct {
	ck_ring_t ring;
	ck_ring_buffer_t slots[RING_CAPACITY];
	uint64_t messages[RING_CAPACITY][MESSAGE]; /* by slot */
} kit;

static int work_on_kit(struct stress_thread *self, unsigned worker)
{
	int kind = (int)stress_below(self, 2);
	void *item = NULL, **slot;
	unsigned ticket;

	(void)worker;
	stress_begin(self, kind == 0 ? "enqueue_mpmc" : "dequeue_mpmc");
	if (kind == 1)
		return ck_ring_dequeue_mpmc(&kit.ring, kit.slots, &item) ? 1 : -1;
	slot = ck_ring_enqueue_reserve_mpmc(&kit.ring, kit.slots, &ticket);
	if (slot == NULL)
		return -1;
	*slot = kit.messages[ticket % RING_CAPACITY];
	write_message(*slot);
	ck_ring_enqueue_commit_mpmc(&kit.ring, ticket);
	return 0;
}

static void stop_in_controls(struct stress_thread *self)
{
	const struct stopping mutex = {"mutex", WORKERS, {"enqueue", "dequeue"}, 2, WORKERS, work_on_locked, 100};
	const struct stopping ck = {"ck_ring", WORKERS, {"enqueue", "dequeue"}, 2, WORKERS, work_on_kit, 100};

	stopping_must_freeze(self, &mutex, stopping_part_end(2));
	/*
	 * The sanitizer does not see the memory order of Concurrency Kit, which uses inline assembly.
	 */
	if (STRESS_TSAN)
		return;
	ck_ring_init(&kit.ring, RING_CAPACITY);
	stopping_must_freeze(self, &ck, stopping_part_end(1));
}

void scenario_ring_stopped(void)
{
	struct stress_thread *self = stress_self();

	stress_stop_prepare();
	if (stress_has_ltq16()) {
		stop_in_ring(self, "SPAN16", WEIR_RING_FORMAT_SPAN16, stopping_part_end(5));
		stop_in_ring(self, "LTQ16", WEIR_RING_FORMAT_LTQ16, stopping_part_end(4));
	}
	stop_in_ring(self, "LTQ64", WEIR_RING_FORMAT_LTQ64, stopping_part_end(3));
	stop_in_controls(self);
}
