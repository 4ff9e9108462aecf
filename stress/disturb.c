/*
 * disturb.c - signals that hold threads for a moment at random instructions; see stress_disturb()
 * in harness.h.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <weir/time.h>

#include "base/futex.h"
#include "run.h"

enum { DISTURBANCE = SIGUSR2 };

static const uint64_t disturb_every_ns = 200000;

static pthread_t disturber;
static int disturbed;

/* Runs on a thread of the scenario, between any two instructions. */
static void be_held(int signal_number)
{
	int saved_errno = errno;
	/* Some threads are only overtaken. Others are held so long that collections run meanwhile. */
	uint64_t draw = stress_mix(weir_now_ns());
	struct timespec pause_for = {0, (long)(draw % 4 == 0 ? draw % 400000 : draw % 20000)};

	(void)signal_number;
	(void)nanosleep(&pause_for, NULL);
	errno = saved_errno;
}

/* The lock keeps the thread from ending while the signal is sent. */
static void disturb_one(uint64_t draw)
{
	struct stress_thread *victim;

	(void)pthread_mutex_lock(&stress_now.lock);
	victim = stress_now.threads[draw % STRESS_MAX_THREADS];
	for (size_t i = 0; i < STRESS_MAX_THREADS && (victim == NULL || victim->ended); i++)
		victim = stress_now.threads[(draw + i) % STRESS_MAX_THREADS];
	if (victim != NULL && !victim->ended)
		(void)pthread_kill(victim->thread, DISTURBANCE);
	(void)pthread_mutex_unlock(&stress_now.lock);
}

static void *disturb(void *unused)
{
	uint64_t random = stress_now.stream;

	(void)unused;
	/* [acquire] pairs with the release in stress_stop_watching(). */
	while (weiri_load_acquire(&stress_now.ended) == 0) {
		random += UINT64_C(0x9e3779b97f4a7c15);
		disturb_one(stress_mix(random));
		(void)weiri_futex_wait(&stress_now.ended, 0, weir_deadline_in(stress_mix(random) % disturb_every_ns));
	}
	return NULL;
}

void stress_disturb(void)
{
	struct sigaction action = {.sa_handler = be_held, .sa_flags = SA_RESTART};

	STRESS_CHECK(sigaction(DISTURBANCE, &action, NULL) == 0, "cannot install the signal handler");
	STRESS_CHECK(pthread_create(&disturber, NULL, disturb, NULL) == 0, "cannot start the disturber");
	disturbed = 1;
}

void stress_stop_disturbing(void)
{
	if (disturbed)
		(void)pthread_join(disturber, NULL);
	disturbed = 0;
}
