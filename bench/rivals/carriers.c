/*
 * carriers.c - what carries messages between processes: weir_shm_ring, a ring under a mutex that
 * processes share, a pipe, a Unix socket, and multiprocessing.Queue of Python, which runs in
 * interpreters of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weir/shm_ring.h>
#include <weir/time.h>

#include "rivals.h"

/* -- the ring ---------------------------------------------------------------------------------- */

struct ring {
	weir_shm_ring *ring;
	int file;
	size_t bytes;
};

static void *ring_create(size_t capacity, size_t bytes)
{
	struct ring *self = calloc(1, sizeof(*self));

	if (self == NULL)
		exit(3);
	self->bytes = bytes;
	self->file = memfd_create("weir-bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (weir_shm_ring_create(self->file, capacity, bytes, NULL, &self->ring, NULL) != WEIR_OK)
		exit(3);
	return self;
}

/* A child attaches; if no seat is free, this recovers those of killed processes. */
static void ring_join(void *context)
{
	struct ring *self = context;

	if (weir_shm_ring_attach(self->file, &self->ring, NULL) != WEIR_OK)
		exit(3);
}

static void ring_destroy(void *context)
{
	struct ring *self = context;

	(void)weir_shm_ring_destroy(self->ring, NULL);
	(void)close(self->file);
	free(self);
}

static void ring_send(void *context, const void *message)
{
	struct ring *self = context;

	(void)weir_shm_ring_enqueue(self->ring, message, self->bytes, WEIR_NO_DEADLINE, NULL, NULL);
}

static void ring_receive(void *context, void *message)
{
	struct ring *self = context;
	size_t size;

	(void)weir_shm_ring_dequeue(self->ring, message, self->bytes, &size, WEIR_NO_DEADLINE, NULL, NULL);
}

enum { HEAD = 16, END = 8 };

/* The work of a producer that computes its message there. */
static void frame_send(void *context, const void *message)
{
	struct ring *self = context;
	struct weir_shm_frame frame;

	(void)weir_shm_ring_try_reserve(self->ring, &frame);
	memset(frame.data, ((const char *)message)[HEAD], self->bytes);
	memcpy(frame.data, message, HEAD);
	memcpy((char *)frame.data + self->bytes - END, (const char *)message + self->bytes - END, END);
	(void)weir_shm_ring_publish(self->ring, &frame, self->bytes, WEIR_NO_DEADLINE, NULL, NULL);
}

static void frame_receive(void *context, void *message)
{
	struct ring *self = context;
	struct weir_shm_frame frame;

	(void)weir_shm_ring_take(self->ring, &frame, WEIR_NO_DEADLINE, NULL, NULL);
	memcpy(message, frame.data, HEAD);
	memcpy((char *)message + self->bytes - END, (char *)frame.data + self->bytes - END, END);
	(void)weir_shm_ring_release(self->ring, &frame);
}

const struct carrier_contender weir_carrier_contender = {
	.about = {.name = "weir_shm_ring", .lock_free = 1},
	.create = ring_create,
	.join = ring_join,
	.destroy = ring_destroy,
	.send = ring_send,
	.receive = ring_receive,
};

const struct carrier_contender weir_frame_carrier_contender = {
	.about = {.name = "weir_shm_ring, in place", .lock_free = 1},
	.create = ring_create,
	.join = ring_join,
	.destroy = ring_destroy,
	.send = frame_send,
	.receive = frame_receive,
};

/* -- a ring under a mutex ---------------------------------------------------------------------- */

struct locked {
	pthread_mutex_t lock;
	pthread_cond_t items, room;
	size_t capacity, bytes, size, head, tail;
	unsigned char messages[];
};

static void *locked_create(size_t capacity, size_t bytes)
{
	const size_t size = sizeof(struct locked) + capacity * bytes;
	struct locked *self = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t mutex;
	pthread_condattr_t condition;

	if (self == MAP_FAILED)
		exit(3);
	self->capacity = capacity;
	self->bytes = bytes;
	self->size = size;
	(void)pthread_mutexattr_init(&mutex);
	(void)pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	(void)pthread_mutex_init(&self->lock, &mutex);
	(void)pthread_condattr_init(&condition);
	(void)pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
	(void)pthread_cond_init(&self->items, &condition);
	(void)pthread_cond_init(&self->room, &condition);
	return self;
}

static void locked_destroy(void *context)
{
	struct locked *self = context;

	(void)munmap(self, self->size);
}

static void locked_send(void *context, const void *message)
{
	struct locked *self = context;

	(void)pthread_mutex_lock(&self->lock);
	while (self->tail - self->head == self->capacity)
		(void)pthread_cond_wait(&self->room, &self->lock);
	memcpy(self->messages + self->tail++ % self->capacity * self->bytes, message, self->bytes);
	(void)pthread_cond_signal(&self->items);
	(void)pthread_mutex_unlock(&self->lock);
}

static void locked_receive(void *context, void *message)
{
	struct locked *self = context;

	(void)pthread_mutex_lock(&self->lock);
	while (self->tail == self->head)
		(void)pthread_cond_wait(&self->items, &self->lock);
	memcpy(message, self->messages + self->head++ % self->capacity * self->bytes, self->bytes);
	(void)pthread_cond_signal(&self->room);
	(void)pthread_mutex_unlock(&self->lock);
}

const struct carrier_contender mutex_carrier_contender = {
	.about = {.name = "mutex and ring"},
	.create = locked_create,
	.destroy = locked_destroy,
	.send = locked_send,
	.receive = locked_receive,
};

/* -- a pipe, a socket -------------------------------------------------------------------------- */

struct stream {
	int ends[2];
	size_t bytes;
};

static struct stream *stream_of(size_t bytes)
{
	struct stream *self = calloc(1, sizeof(*self));

	if (self == NULL)
		exit(3);
	self->bytes = bytes;
	return self;
}

static void *pipe_create(size_t capacity, size_t bytes)
{
	struct stream *self = stream_of(bytes);

	(void)capacity;
	if (pipe(self->ends) != 0)
		exit(3);
	return self;
}

static void *socket_create(size_t capacity, size_t bytes)
{
	struct stream *self = stream_of(bytes);
	int two[2];

	(void)capacity;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, two) != 0)
		exit(3);
	self->ends[0] = two[0];
	self->ends[1] = two[1];
	return self;
}

static void stream_destroy(void *context)
{
	struct stream *self = context;

	(void)close(self->ends[0]);
	(void)close(self->ends[1]);
	free(self);
}

static void stream_send(void *context, const void *message)
{
	struct stream *self = context;

	for (size_t done = 0; done < self->bytes;) {
		ssize_t part = write(self->ends[1], (const char *)message + done, self->bytes - done);

		if (part <= 0)
			_exit(1);
		done += (size_t)part;
	}
}

static void stream_receive(void *context, void *message)
{
	struct stream *self = context;

	for (size_t done = 0; done < self->bytes;) {
		ssize_t part = read(self->ends[0], (char *)message + done, self->bytes - done);

		if (part <= 0)
			_exit(1);
		done += (size_t)part;
	}
}

const struct carrier_contender pipe_carrier_contender = {
	.about = {.name = "pipe", .lacks = "each message is a system call on both sides"},
	.create = pipe_create,
	.destroy = stream_destroy,
	.send = stream_send,
	.receive = stream_receive,
};

const struct carrier_contender socket_carrier_contender = {
	.about = {.name = "Unix socket", .lacks = "each message is a system call on both sides"},
	.no_kills = 1, /* a stream has no boundaries behind which another sender could go on */
	.create = socket_create,
	.destroy = stream_destroy,
	.send = stream_send,
	.receive = stream_receive,
};

/* -- Python ------------------------------------------------------------------------------------ */

static const char rate[] = "import multiprocessing as m, sys, time\n"
						   "def send(q, size):\n"
						   "    data = bytes(size)\n"
						   "    while True: q.put(data)\n"
						   "m.set_start_method('fork')\n"
						   "slots, size, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000\n"
						   "q = m.Queue(slots)\n"
						   "p = m.Process(target=send, args=(q, size), daemon=True); p.start()\n"
						   "q.get(); t = time.monotonic(); n = 0\n"
						   "while time.monotonic() - t < seconds: q.get(); n += 1\n"
						   "print(n / (time.monotonic() - t), flush=True); p.kill()\n";

/* Nothing arrives for 1 s: the number of kills is printed. */
static const char kills[] =
	"import multiprocessing as m, random, sys, time\n"
	"def send(q, size):\n"
	"    data = bytes(size)\n"
	"    while True: q.put(data)\n"
	"def receive(q, count, size):\n"
	"    while len(q.get()) == size: count.value += 1\n"
	"m.set_start_method('fork')\n"
	"slots, size, most = int(sys.argv[1]), int(sys.argv[2]), int(float(sys.argv[3]))\n"
	"q, count = m.Queue(slots), m.Value('Q', 0, lock=False)\n"
	"def start(): p = m.Process(target=send, args=(q, size), daemon=True); p.start(); return p\n"
	"r = m.Process(target=receive, args=(q, count, size), daemon=True); r.start()\n"
	"senders, done = [start() for _ in range(3)], 0\n"
	"def arrives():\n"
	"    before, until = count.value, time.monotonic() + 1\n"
	"    while count.value == before and time.monotonic() < until: time.sleep(0.00005)\n"
	"    return count.value != before\n"
	"while done < most and arrives():\n"
	"    time.sleep(random.random() * 0.001); i = random.randrange(3)\n"
	"    senders[i].kill(); senders[i].join(); senders[i] = start(); done += 1\n"
	"print(done, flush=True)\n"
	"for p in [r, *senders]: p.kill()\n";

/* Returns what the program prints; -1 if it fails. */
static double ask_python(const char *program, size_t capacity, size_t bytes, double last)
{
	char command[sizeof(kills) + 128];
	double answer = -1;
	FILE *output;

	(void)snprintf(command, sizeof(command), "exec python3 -c \"%s\" %zu %zu %g 2>/dev/null", program, capacity, bytes,
	               last);
	output = popen(command, "r");
	if (output == NULL || fscanf(output, "%lf", &answer) != 1)
		answer = -1;
	if (output != NULL)
		(void)pclose(output);
	return answer;
}

static double python_rate(size_t capacity, size_t bytes, unsigned duration_ms)
{
	return ask_python(rate, capacity, bytes, duration_ms);
}

static double python_kills(size_t capacity, size_t bytes, unsigned most)
{
	return ask_python(kills, capacity, bytes, most);
}

const struct carrier_contender python_carrier_contender = {
	.about = {.name = "multiprocessing.Queue", .version = "CPython", .lacks = "runs in processes of its own"},
	.rate_apart = python_rate,
	.kills_apart = python_kills,
};
