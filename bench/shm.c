/*
 * shm.c - messages from one process to another: weir_shm_ring beside what else carries them.
 *
 * A child sends as fast as it can; the parent receives for the duration, checks each message's
 * number, and kills the child. Messages have 64 bytes or 256 KiB. Each contender copies a message in
 * and out once; "in place" fills and reads frames of the ring without a copy. The rivals: a ring
 * under a mutex that processes share, a pipe, a Unix socket, and multiprocessing.Queue of Python,
 * which runs in an interpreter of its own. The program prints one line for each, in messages per
 * second, and how many times as fast the ring is.
 *
 *     weir-shm [MILLISECONDS [ROUNDS]]
 *
 * The contenders take turns for ROUNDS rounds, and the median counts.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/shm_ring.h>
#include <weir/time.h>

enum { SMALL = 64, LARGE = 256 * 1024, SLOTS_SMALL = 1024, SLOTS_LARGE = 16, MOST_ROUNDS = 15, CONTENDERS = 6 };

static size_t message_size;
static unsigned char *message; /* of this process */

static size_t slots(void)
{
	return message_size == SMALL ? SLOTS_SMALL : SLOTS_LARGE;
}

static void fail(const char *what)
{
	(void)fprintf(stderr, "weir-shm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void check(const unsigned char *found, uint64_t number)
{
	uint64_t first, last;

	memcpy(&first, found, sizeof(first));
	memcpy(&last, found + message_size - sizeof(last), sizeof(last));
	if (first != number || last != number) {
		(void)fprintf(stderr, "weir-shm: message %" PRIu64 " is wrong\n", number);
		exit(1);
	}
}

static void stamp(unsigned char *bytes, uint64_t number)
{
	memcpy(bytes, &number, sizeof(number));
	memcpy(bytes + message_size - sizeof(number), &number, sizeof(number));
}

/* -- the ring ---------------------------------------------------------------------------------- */

static int ring_file;
static weir_shm_ring *ring;

static void ring_open(void)
{
	ring_file = memfd_create("bench", MFD_ALLOW_SEALING);
	if (weir_shm_ring_create(ring_file, slots(), message_size, NULL, &ring, NULL) != WEIR_OK)
		fail("no ring");
}

static void ring_join(void)
{
	if (weir_shm_ring_attach(ring_file, &ring, NULL) != WEIR_OK)
		fail("attach");
}

static void ring_close(void)
{
	(void)weir_shm_ring_destroy(ring, NULL);
	(void)close(ring_file);
}

static void ring_send(void)
{
	(void)weir_shm_ring_enqueue(ring, message, message_size, WEIR_NO_DEADLINE, NULL, NULL);
}

static void ring_receive(void)
{
	size_t size;

	(void)weir_shm_ring_dequeue(ring, message, message_size, &size, WEIR_NO_DEADLINE, NULL, NULL);
}

static void frame_send(void)
{
	struct weir_shm_frame frame;

	(void)weir_shm_ring_try_reserve(ring, &frame);
	/* The work of a producer that computes its message there. */
	memset(frame.data, message[0], message_size);
	memcpy(frame.data, message, sizeof(uint64_t));
	memcpy((char *)frame.data + message_size - 8, message, sizeof(uint64_t));
	(void)weir_shm_ring_publish(ring, &frame, message_size, WEIR_NO_DEADLINE, NULL, NULL);
}

static void frame_receive(void)
{
	struct weir_shm_frame frame;

	(void)weir_shm_ring_take(ring, &frame, WEIR_NO_DEADLINE, NULL, NULL);
	memcpy(message, frame.data, sizeof(uint64_t));
	memcpy(message + message_size - 8, (char *)frame.data + message_size - 8, sizeof(uint64_t));
	(void)weir_shm_ring_release(ring, &frame);
}

/* -- a ring under a mutex ---------------------------------------------------------------------- */

struct locked {
	pthread_mutex_t lock;
	pthread_cond_t items, room;
	size_t head, tail;
	unsigned char messages[];
};

static struct locked *locked;

static void locked_open(void)
{
	pthread_mutexattr_t mutex;
	pthread_condattr_t condition;

	locked =
		mmap(NULL, sizeof(*locked) + slots() * message_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (locked == MAP_FAILED)
		fail("mmap");
	(void)pthread_mutexattr_init(&mutex);
	(void)pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	(void)pthread_mutex_init(&locked->lock, &mutex);
	(void)pthread_condattr_init(&condition);
	(void)pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
	(void)pthread_cond_init(&locked->items, &condition);
	(void)pthread_cond_init(&locked->room, &condition);
}

static void locked_close(void)
{
	(void)munmap(locked, sizeof(*locked) + slots() * message_size);
}

static void locked_send(void)
{
	(void)pthread_mutex_lock(&locked->lock);
	while (locked->tail - locked->head == slots())
		(void)pthread_cond_wait(&locked->room, &locked->lock);
	memcpy(locked->messages + locked->tail++ % slots() * message_size, message, message_size);
	(void)pthread_cond_signal(&locked->items);
	(void)pthread_mutex_unlock(&locked->lock);
}

static void locked_receive(void)
{
	(void)pthread_mutex_lock(&locked->lock);
	while (locked->tail == locked->head)
		(void)pthread_cond_wait(&locked->items, &locked->lock);
	memcpy(message, locked->messages + locked->head++ % slots() * message_size, message_size);
	(void)pthread_cond_signal(&locked->room);
	(void)pthread_mutex_unlock(&locked->lock);
}

/* -- a pipe, a socket -------------------------------------------------------------------------- */

static int ends[2];

static void pipe_open(void)
{
	if (pipe(ends) != 0)
		fail("pipe");
}

static void socket_open(void)
{
	int two[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, two) != 0)
		fail("socketpair");
	ends[0] = two[0], ends[1] = two[1];
}

static void ends_close(void)
{
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void ends_send(void)
{
	for (size_t done = 0; done < message_size;) {
		ssize_t part = write(ends[1], message + done, message_size - done);

		if (part <= 0)
			_exit(1);
		done += (size_t)part;
	}
}

static void ends_receive(void)
{
	for (size_t done = 0; done < message_size;) {
		ssize_t part = read(ends[0], message + done, message_size - done);

		if (part <= 0)
			fail("read");
		done += (size_t)part;
	}
}

/* -- measuring --------------------------------------------------------------------------------- */

static void nothing(void)
{
}

static const struct contender {
	const char *name;
	void (*open)(void), (*join)(void), (*close)(void), (*send)(void), (*receive)(void);
} contenders[] = {
	{"weir_shm_ring", ring_open, ring_join, ring_close, ring_send, ring_receive},
	{"weir_shm_ring, in place", ring_open, ring_join, ring_close, frame_send, frame_receive},
	{"mutex and ring", locked_open, nothing, locked_close, locked_send, locked_receive},
	{"pipe", pipe_open, nothing, ends_close, ends_send, ends_receive},
	{"Unix socket", socket_open, nothing, ends_close, ends_send, ends_receive},
};
enum { OURS = sizeof(contenders) / sizeof(contenders[0]) };
_Static_assert(OURS + 1 == CONTENDERS, "and Python");

static double measure(const struct contender *contender, uint64_t duration_ns)
{
	uint64_t count = 0, begun, end;
	pid_t child;

	contender->open();
	child = fork();
	if (child == 0) {
		contender->join();
		for (uint64_t number = 1;; number++) {
			stamp(message, number);
			contender->send();
		}
	}
	contender->receive(); /* the child has begun */
	check(message, ++count);
	begun = weir_now_ns();
	do {
		contender->receive();
		check(message, ++count);
		end = weir_now_ns();
	} while (end - begun < duration_ns);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	contender->close();
	return (double)(count - 1) * 1e9 / (double)(end - begun);
}

static const char python[] =
	"import multiprocessing as m, sys, time\n"
	"def send(q, size):\n"
	"    data = bytes(size)\n"
	"    while True: q.put(data)\n"
	"if __name__ == '__main__':\n"
	"    m.set_start_method('fork')\n"
	"    size, seconds, slots = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])\n"
	"    q = m.Queue(slots); p = m.Process(target=send, args=(q, size), daemon=True); p.start()\n"
	"    q.get(); t = time.monotonic(); n = 0\n"
	"    while time.monotonic() - t < seconds: q.get(); n += 1\n"
	"    print(n / (time.monotonic() - t)); p.kill()\n";

/* Returns 0 if there is no Python. */
static double measure_python(uint64_t duration_ns)
{
	char command[sizeof(python) + 128];
	double rate = 0;
	FILE *output;

	(void)snprintf(command, sizeof(command), "exec python3 -c \"%s\" %zu %g %zu 2>/dev/null", python, message_size,
	               (double)duration_ns / 1e9, slots());
	output = popen(command, "r");
	if (output == NULL || fscanf(output, "%lf", &rate) != 1)
		rate = 0;
	if (output != NULL)
		(void)pclose(output);
	return rate;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void compare(size_t size, uint64_t duration_ns, size_t rounds)
{
	double rates[CONTENDERS][MOST_ROUNDS], ours;

	message_size = size;
	for (size_t round = 0; round < rounds; round++) {
		for (size_t i = 0; i < OURS; i++)
			rates[i][round] = measure(&contenders[i], duration_ns);
		rates[OURS][round] = measure_python(duration_ns);
	}
	for (size_t i = 0; i < CONTENDERS; i++)
		qsort(rates[i], rounds, sizeof(double), by_size);
	ours = rates[0][rounds / 2];
	(void)printf("%zu bytes, median of %zu rounds of %" PRIu64 " ms\n", size, rounds, duration_ns / 1000000);
	for (size_t i = 0; i < CONTENDERS; i++) {
		double rate = rates[i][rounds / 2];
		const char *name = i < OURS ? contenders[i].name : "multiprocessing.Queue";

		if (rate > 0)
			(void)printf("  %-24s %12.0f messages/s   the ring is %6.1f times as fast\n", name, rate, ours / rate);
		else
			(void)printf("  %-24s absent\n", name);
	}
}

int main(int argc, char **argv)
{
	uint64_t milliseconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 500;
	size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;

	message = calloc(1, LARGE);
	if (message == NULL || rounds < 1 || rounds > MOST_ROUNDS || milliseconds == 0)
		return 1;
	compare(SMALL, milliseconds * 1000000, rounds);
	compare(LARGE, milliseconds * 1000000, rounds);
	free(message);
	return 0;
}
