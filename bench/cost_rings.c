/*
 * cost_rings.c - weir-cost: rings, rings between processes, queues, critical sections and the
 * eventcount.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "cost.h"
#include "sync/eventcount.h"

enum { BATCH = 32, CAPACITY = 1024 };

static weir_ring *ring;
static weir_ring_port port;
static weir_spsc *spsc;
static int shm_file;
static weir_shm_ring *shm_ring;
static weir_shm_latest *shm_latest;
static struct weir_shm_frame shm_frame;
static unsigned char message[64];
static weir_queue *queue;
static weir_priority_queue *priority;
static weir_critical_section *section;
static uint64_t numbers[BATCH];
static struct weiri_eventcount event;

/* -- rings ------------------------------------------------------------------------------------- */

static void ring_of(enum weir_ring_format format)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = format};

	must(weir_ring_create(CAPACITY, &options, &ring, NULL));
}

static void ring_16(void)
{
	ring_of(WEIR_RING_FORMAT_BEST);
}

static void ring_64(void)
{
	ring_of(WEIR_RING_FORMAT_LTQ64);
}

static void ring_spans(void)
{
	ring_of(weir_ring_memsize(
				1, &(struct weir_ring_options){WEIR_RING_OPTIONS_INIT, .format = WEIR_RING_FORMAT_SPAN16}) != 0
	            ? WEIR_RING_FORMAT_SPAN16
	            : WEIR_RING_FORMAT_BEST);
}

static void ring_end(void)
{
	weir_ring_destroy(ring, NULL);
}

static void ring_enqueue(void)
{
	must(weir_ring_try_enqueue(ring, 1));
}

static void ring_dequeue(void)
{
	uint64_t number;

	must(weir_ring_try_dequeue(ring, &number));
}

static void port_begin(void)
{
	ring_16();
	weir_ring_port_init(&port, ring);
}

static void port_enqueue(void)
{
	must(weir_ring_port_try_enqueue(&port, 1));
}

static void port_dequeue(void)
{
	uint64_t number;

	must(weir_ring_port_try_dequeue(&port, &number));
}

static void ring_enqueue_many(void)
{
	size_t done;

	must(weir_ring_try_enqueue_many(ring, numbers, BATCH, &done));
}

static void ring_dequeue_many(void)
{
	size_t done;

	must(weir_ring_try_dequeue_many(ring, numbers, BATCH, &done));
}

/* -- one producer, one consumer ---------------------------------------------------------------- */

static void spsc_begin(void)
{
	must(weir_spsc_create(CAPACITY, NULL, &spsc, NULL));
}

static void spsc_end(void)
{
	weir_spsc_destroy(spsc, NULL);
}

static void spsc_enqueue(void)
{
	must(weir_spsc_try_enqueue(spsc, 1));
}

static void spsc_dequeue(void)
{
	uint64_t number;

	must(weir_spsc_try_dequeue(spsc, &number));
}

static void spsc_enqueue_many(void)
{
	size_t done;

	must(weir_spsc_try_enqueue_many(spsc, numbers, BATCH, &done));
}

static void spsc_dequeue_many(void)
{
	size_t done;

	must(weir_spsc_try_dequeue_many(spsc, numbers, BATCH, &done));
}

/* -- between processes ------------------------------------------------------------------------- */

static void shm_begin(void)
{
	shm_file = memfd_create("weir-cost", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (shm_file < 0)
		exit(3);
}

static void shm_ring_begin(void)
{
	shm_begin();
	must(weir_shm_ring_create(shm_file, CAPACITY, sizeof(message), NULL, &shm_ring, NULL));
}

static void shm_ring_end(void)
{
	must(weir_shm_ring_destroy(shm_ring, NULL));
	(void)close(shm_file);
}

static void shm_enqueue(void)
{
	must(weir_shm_ring_enqueue(shm_ring, message, sizeof(message), WEIR_NO_DEADLINE, NULL, NULL));
}

static void shm_dequeue(void)
{
	size_t size;

	must(weir_shm_ring_dequeue(shm_ring, message, sizeof(message), &size, WEIR_NO_DEADLINE, NULL, NULL));
}

static void shm_reserve_publish(void)
{
	must(weir_shm_ring_try_reserve(shm_ring, &shm_frame));
	must(weir_shm_ring_try_publish(shm_ring, &shm_frame, sizeof(message)));
}

static void shm_take_release(void)
{
	must(weir_shm_ring_try_take(shm_ring, &shm_frame));
	must(weir_shm_ring_release(shm_ring, &shm_frame));
}

static void shm_latest_begin(void)
{
	shm_begin();
	must(weir_shm_latest_create(shm_file, sizeof(message), NULL, &shm_latest, NULL));
	must(weir_shm_latest_write(shm_latest, message, sizeof(message), NULL, NULL));
}

static void shm_latest_end(void)
{
	must(weir_shm_latest_destroy(shm_latest, NULL));
	(void)close(shm_file);
}

static void shm_write(void)
{
	must(weir_shm_latest_write(shm_latest, message, sizeof(message), NULL, NULL));
}

static void shm_read(void)
{
	uint64_t version;
	size_t size;

	must(weir_shm_latest_try_read(shm_latest, 0, message, sizeof(message), &size, &version));
}

/* -- queues ------------------------------------------------------------------------------------ */

static void queue_begin(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = CAPACITY};

	must(weir_queue_create(&options, &queue, NULL));
}

static void queue_for_batches_begin(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = CAPACITY, .flags = WEIR_QUEUE_BATCHES};

	must(weir_queue_create(&options, &queue, NULL));
}

static void queue_end(void)
{
	must(weir_queue_destroy(queue, NULL));
}

static void queue_try_enqueue(void)
{
	must(weir_queue_try_enqueue(queue, numbers));
}

static void queue_try_dequeue(void)
{
	void *item;

	must(weir_queue_try_dequeue(queue, &item));
}

static void queue_try_enqueue_many(void)
{
	void *items[BATCH] = {0};
	size_t done;

	must(weir_queue_try_enqueue_many(queue, items, BATCH, &done));
}

static void queue_try_dequeue_many(void)
{
	void *items[BATCH];
	size_t done;

	must(weir_queue_try_dequeue_many(queue, items, BATCH, &done));
}

/* A shuffle queue in which a draw has a choice. */
static void shuffle_begin(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = CAPACITY, .order = WEIR_QUEUE_SHUFFLE,
	                                     .seed = 1};

	must(weir_queue_create(&options, &queue, NULL));
	queue_try_enqueue_many();
}

static void priority_enqueue(void)
{
	static uint64_t draw = 1;

	draw = draw * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	must(weir_priority_queue_try_enqueue(priority, (int64_t)(draw >> 40), 1));
}

static void priority_dequeue(void)
{
	int64_t key;
	uint64_t number;

	must(weir_priority_queue_try_dequeue(priority, &key, &number));
}

static void priority_begin_empty(void)
{
	must(weir_priority_queue_create(CAPACITY, NULL, &priority, NULL));
}

static void priority_begin(void)
{
	priority_begin_empty();
	for (int i = 0; i < BATCH; i++)
		priority_enqueue();
}

static void priority_end(void)
{
	must(weir_priority_queue_destroy(priority, NULL));
}

static void queue_enqueue(void)
{
	must(weir_queue_enqueue(queue, numbers, WEIR_NO_DEADLINE, NULL, NULL));
}

static void queue_dequeue(void)
{
	void *item;

	must(weir_queue_dequeue(queue, &item, WEIR_NO_DEADLINE, NULL, NULL));
}

/* -- critical sections ------------------------------------------------------------------------- */

static void section_begin(void)
{
	must(weir_critical_section_create(NULL, &section, NULL));
}

static void section_end(void)
{
	must(weir_critical_section_destroy(section, NULL));
}

static enum weir_status inside(void *context, weir_error *error)
{
	(void)context, (void)error;
	return WEIR_OK;
}

static void section_execute(void)
{
	must(weir_critical_section_execute(section, inside, NULL, WEIR_NO_DEADLINE, NULL, NULL));
}

static void notify_begin(void)
{
	weiri_eventcount_init(&event);
}

static void notify(void)
{
	weiri_eventcount_notify(&event, 1);
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct cost_operation operations[] = {
	{"ring enqueue", ring_16, nothing, ring_enqueue, ring_dequeue, ring_end},
	{"ring dequeue", ring_16, ring_enqueue, ring_dequeue, nothing, ring_end},
	{"ring enqueue by a port", port_begin, nothing, port_enqueue, port_dequeue, ring_end},
	{"ring dequeue by a port", port_begin, port_enqueue, port_dequeue, nothing, ring_end},
	{"ring enqueue of 32", ring_16, nothing, ring_enqueue_many, ring_dequeue_many, ring_end},
	{"ring dequeue of 32", ring_16, ring_enqueue_many, ring_dequeue_many, nothing, ring_end},
	{"ring LTQ64 enqueue", ring_64, nothing, ring_enqueue, ring_dequeue, ring_end},
	{"ring LTQ64 dequeue", ring_64, ring_enqueue, ring_dequeue, nothing, ring_end},
	{"ring LTQ64 enqueue of 32", ring_64, nothing, ring_enqueue_many, ring_dequeue_many, ring_end},
	{"ring LTQ64 dequeue of 32", ring_64, ring_enqueue_many, ring_dequeue_many, nothing, ring_end},
	{"ring SPAN16 enqueue", ring_spans, nothing, ring_enqueue, ring_dequeue, ring_end},
	{"ring SPAN16 dequeue", ring_spans, ring_enqueue, ring_dequeue, nothing, ring_end},
	{"ring SPAN16 enqueue of 32", ring_spans, nothing, ring_enqueue_many, ring_dequeue_many, ring_end},
	{"ring SPAN16 dequeue of 32", ring_spans, ring_enqueue_many, ring_dequeue_many, nothing, ring_end},
	{"spsc enqueue", spsc_begin, nothing, spsc_enqueue, spsc_dequeue, spsc_end},
	{"spsc dequeue", spsc_begin, spsc_enqueue, spsc_dequeue, nothing, spsc_end},
	{"spsc enqueue of 32", spsc_begin, nothing, spsc_enqueue_many, spsc_dequeue_many, spsc_end},
	{"spsc dequeue of 32", spsc_begin, spsc_enqueue_many, spsc_dequeue_many, nothing, spsc_end},
	{"shm ring enqueue of 64 bytes", shm_ring_begin, nothing, shm_enqueue, shm_dequeue, shm_ring_end},
	{"shm ring dequeue of 64 bytes", shm_ring_begin, shm_enqueue, shm_dequeue, nothing, shm_ring_end},
	{"shm ring reserve, publish", shm_ring_begin, nothing, shm_reserve_publish, shm_dequeue, shm_ring_end},
	{"shm ring take, release", shm_ring_begin, shm_enqueue, shm_take_release, nothing, shm_ring_end},
	{"shm latest write of 64 bytes", shm_latest_begin, nothing, shm_write, nothing, shm_latest_end},
	{"shm latest read of 64 bytes", shm_latest_begin, nothing, shm_read, nothing, shm_latest_end},
	{"queue try enqueue", queue_begin, nothing, queue_try_enqueue, queue_try_dequeue, queue_end},
	{"queue try dequeue", queue_begin, queue_try_enqueue, queue_try_dequeue, nothing, queue_end},
	{"queue enqueue", queue_begin, nothing, queue_enqueue, queue_dequeue, queue_end},
	{"queue dequeue", queue_begin, queue_enqueue, queue_dequeue, nothing, queue_end},
	{"queue try enqueue of 32", queue_begin, nothing, queue_try_enqueue_many, queue_try_dequeue_many, queue_end},
	{"queue try dequeue of 32", queue_begin, queue_try_enqueue_many, queue_try_dequeue_many, nothing, queue_end},
	{"queue for batches try enqueue of 32", queue_for_batches_begin, nothing, queue_try_enqueue_many,
     queue_try_dequeue_many, queue_end},
	{"queue for batches try dequeue of 32", queue_for_batches_begin, queue_try_enqueue_many, queue_try_dequeue_many,
     nothing, queue_end},
	{"shuffle queue try enqueue", shuffle_begin, nothing, queue_try_enqueue, queue_try_dequeue, queue_end},
	{"shuffle queue try dequeue", shuffle_begin, queue_try_enqueue, queue_try_dequeue, nothing, queue_end},
	{"priority enqueue", priority_begin, nothing, priority_enqueue, priority_dequeue, priority_end},
	{"priority dequeue", priority_begin, priority_enqueue, priority_dequeue, nothing, priority_end},
	{"priority enqueue, empty", priority_begin_empty, nothing, priority_enqueue, priority_dequeue, priority_end},
	{"priority dequeue of the only one", priority_begin_empty, priority_enqueue, priority_dequeue, nothing,
     priority_end},
	{"critical section, free", section_begin, nothing, section_execute, nothing, section_end},
	{"eventcount notify, no waiter", notify_begin, nothing, notify, nothing, nothing},
};

const struct cost_group cost_rings = COST_GROUP(operations);
