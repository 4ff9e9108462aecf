/*
 * check_shm.c - shared memory beside processes that die: a thread stands for a process, and ends
 * before a given step of its call, as by kill -9.
 *
 * A scope gives each thread a row of calls, a letter each; LETTERS says what each letter does. A
 * scope with deaths is explored once for each step at which the first thread can die.
 *
 * Required of every execution:
 * - Each item that is taken is whole, and no item is taken twice. Items are plain data, so a frame
 *   that two hands have shows as a race.
 * - At the end, after a recovery, each frame is named by one slot or kept by one hand, and the
 *   tokens of hands are theirs.
 * - A reader of the newest value finds it whole, and never an older one than before. No two living
 *   writers publish one version.
 * - A thread that waits for an item takes one: the checker reports threads that all sleep. In
 *   scopes with looks, time passes only when all sleep. So where no process dies, it must not pass;
 *   and a wait that ends by its deadline must leave no item inside, and no fired token unseen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/cancel.h>
#include <weir/time.h>

#include "model/scope.h"
#include "ring/layout.h"
#include "shm/doorbell.h"
#include "shm/frames.h"
#include "shm/newest.h"
#include "shm/seats.h"
#include "shm/step.h"

enum { PROCESSES = 4, MOST_ITEMS = 8, PRIVATE = offsetof(weir_ring, tail_hint), SHARED = 4096, MOST_STEPS = 24 };
/* The identity of a thread as a process, and as the next process, which has a dead one's seat. */
enum { FIRST = 1, NEXT = FIRST + PROCESSES };
/* Between two looks of a sleeper, and until the deadline of a wait; other waits have none. */
enum { LOOK_NS = 100, PATIENCE_NS = 3 * LOOK_NS };

/* What stands for a process in the ring, and what happened to it. */
struct process {
	_Atomic(uint32_t) dead; /* what /proc would say */
	uint32_t steps_left;    /* before the death; UINT32_MAX: it lives */
	void **back;            /* of __builtin_setjmp(), on the thread's stack */
};

static const struct scope {
	const char *name;
	const char *calls[PROCESSES];
	uint32_t capacity, inside; /* items at the start */
	uint32_t deaths;           /* the first thread dies at each step below this one; 0: never */
	uint32_t second;           /* so does the second */
	enum { RING, RING_OF_2_DEAD, NEWEST, NEWEST_OF_DEAD, BELL, BELL_OF_NEWEST, BELL_WITH_LOOKS } about;
} scopes[] = {
	{"shm_publish_beside_take", {"p", "t"}, 1, 0, 0, 0, RING},
	{"shm_2_publishes_beside_2_takes", {"pp", "tt"}, 1, 0, 0, 0, RING},
	{"shm_2_publishers_1_taker", {"p", "p", "t"}, 1, 0, 0, 0, RING},
	{"shm_2_takers_of_1", {"t", "t"}, 2, 1, 0, 0, RING},
	{"shm_death_in_publish_then_recovery", {"p", "r"}, 2, 0, 7, 0, RING},
	{"shm_death_in_publish_beside_take_and_recovery", {"p", "t", "rp"}, 1, 0, 7, 0, RING},
	{"shm_death_in_take_beside_publish_and_recovery", {"t", "p", "rt"}, 1, 1, 7, 0, RING},
	{"shm_death_in_publish_overtaken_then_recovery", {"p", "tpt", "r"}, 1, 0, 7, 0, RING},
	{"shm_death_in_take_overtaken_then_recovery", {"t", "ptp", "r"}, 1, 1, 7, 0, RING},
	{"shm_death_in_publish_beside_2_recoveries", {"p", "rp", "rp"}, 2, 0, 7, 0, RING},
	{"shm_death_in_take_beside_2_recoveries", {"t", "rt", "rt"}, 2, 2, 7, 0, RING},
	{"shm_death_in_publish_and_in_its_recovery", {"p", "r", "rp"}, 1, 0, 7, 4, RING},
	{"shm_death_in_take_and_in_its_recovery", {"t", "r", "rp"}, 1, 1, 7, 4, RING},
	{"shm_deaths_of_publisher_and_taker", {"p", "t", "r"}, 1, 0, 7, 7, RING},
	{"shm_death_in_publish_beside_publish_and_2_takes", {"p", "pt", "tr"}, 1, 0, 7, 0, RING},
	{"shm_death_in_take_beside_take_and_publish_n2", {"t", "tp", "rtp"}, 2, 1, 7, 0, RING},
	{"shm_death_in_second_publish_overtaken_beside_recovery", {"pp", "tt", "rp"}, 1, 0, 13, 0, RING},
	{"shm_deaths_of_2_takers_beside_publisher", {"t", "t", "pr"}, 1, 1, 7, 7, RING},
	{"shm_death_in_publish_of_a_frame_that_another_saw_before", {"td", "t", "ptr"}, 1, 1, 0, 0, RING},
	{"shm_2_recoveries_of_one_beside_another_dead", {"", "", "r", "r"}, 1, 0, 0, 0, RING_OF_2_DEAD},
	{"shm_2_threads_of_a_process_with_1_hand", {"P", "P"}, 2, 0, 0, 0, RING},
	{"shm_close_beside_publish_and_take", {"p", "t", "c"}, 1, 0, 0, 0, RING},
	{"shm_close_beside_publish_and_2_takes", {"p", "tt", "c"}, 1, 0, 0, 0, RING},
	{"shm_newest_write_beside_read", {"w", "n"}, 0, 0, 0, 0, NEWEST},
	{"shm_newest_2_writes_beside_read", {"ww", "n"}, 0, 1, 0, 0, NEWEST},
	{"shm_newest_2_writes_beside_2_reads", {"ww", "nn"}, 0, 1, 0, 0, NEWEST},
	{"shm_newest_write_beside_2_readers", {"w", "n", "n"}, 0, 1, 0, 0, NEWEST},
	{"shm_newest_death_in_write_then_takeover_beside_read", {"w", "w", "n"}, 0, 1, 7, 0, NEWEST},
	{"shm_newest_death_in_read_beside_3_writes", {"n", "www"}, 0, 1, 5, 0, NEWEST},
	{"shm_newest_seat_of_dead_writer_taken_then_write", {"w", "sw", "n"}, 0, 1, 7, 0, NEWEST},
	{"shm_newest_seat_of_dead_writer_taken_beside_takeover", {"w", "sw", "w"}, 0, 1, 7, 0, NEWEST},
	{"shm_newest_seat_of_dead_writer_taken_by_one_that_dies", {"w", "sw", "sw"}, 0, 1, 7, 4, NEWEST},
	{"shm_newest_seat_of_dead_reader_taken_beside_2_writes", {"n", "sn", "ww"}, 0, 1, 5, 0, NEWEST},
	{"shm_newest_writer_leaves_beside_2_writes_and_read", {"wl", "ww", "n"}, 0, 0, 0, 0, NEWEST},
	{"shm_newest_writer_leaves_and_its_seat_is_taken", {"wl", "sw", "w"}, 0, 0, 0, 0, NEWEST},
	{"shm_newest_seat_of_dead_writer_taken_beside_a_certain_write", {"", "s", "W"}, 0, 0, 0, 0, NEWEST_OF_DEAD},
	{"shm_newest_seat_of_dead_writer_taken_by_2_attaches_beside_write",
     {"", "sw", "s", "w"},
     0,
     0,
     0,
     0,
     NEWEST_OF_DEAD},
	{"shm_bell_waiting_take_beside_publish", {"D", "e"}, 1, 0, 0, 0, BELL},
	{"shm_bell_2_waiting_takes_beside_2_publishes", {"D", "D", "ee"}, 2, 0, 0, 0, BELL},
	{"shm_bell_2_waiting_takes_of_a_thread_beside_2_publishers", {"DD", "e", "e"}, 2, 0, 0, 0, BELL},
	{"shm_bell_waiting_takes_beside_publishes_and_another_ring", {"D", "DD", "eee", "b"}, 3, 0, 0, 0, BELL},
	{"shm_bell_waiting_read_beside_write", {"R", "v"}, 0, 0, 0, 0, BELL_OF_NEWEST},
	{"shm_bell_2_waiting_reads_beside_write", {"R", "R", "v"}, 0, 0, 0, 0, BELL_OF_NEWEST},
	{"shm_bell_timed_take_beside_publish", {"L", "e"}, 1, 0, 0, 0, BELL_WITH_LOOKS},
	{"shm_bell_2_timed_takes_beside_2_publishes", {"L", "L", "ee"}, 2, 0, 0, 0, BELL_WITH_LOOKS},
	{"shm_bell_take_beside_close", {"E", "x"}, 1, 0, 0, 0, BELL},
	{"shm_bell_2_takes_beside_close", {"E", "E", "x"}, 1, 0, 0, 0, BELL},
	{"shm_bell_2_takes_of_1_item_beside_close", {"E", "E", "x"}, 1, 1, 0, 0, BELL},
	{"shm_bell_take_with_token_then_end_beside_fire", {"CZ", "F"}, 1, 0, 0, 0, BELL_WITH_LOOKS},
	{"shm_bell_take_with_token_beside_fire_and_publish", {"C", "F", "e"}, 1, 0, 0, 0, BELL_WITH_LOOKS},
	{"shm_bell_death_in_publish_and_ring_beside_take", {"e", "L"}, 1, 0, 11, 0, BELL_WITH_LOOKS},
	{"shm_bell_death_in_ring_beside_another_ring", {"e", "L", "e"}, 2, 0, 11, 0, BELL_WITH_LOOKS},
	{"shm_bell_death_in_ring_beside_2_takes", {"e", "L", "L"}, 1, 0, 11, 0, BELL_WITH_LOOKS},
	{"shm_bell_death_in_waiting_take_beside_take", {"L", "L", "e"}, 1, 0, 4, 0, BELL_WITH_LOOKS},
};

static struct scene {
	const struct scope *scope;
	struct process processes[PROCESSES];
	/* The ring: all processes are hands of one struct. */
	struct weiri_frames frames;
	uint64_t given[PROCESSES]; /* items that each thread published */
	int note;                  /* written by the closer before the close */
	uint32_t taken[PROCESSES][MOST_ITEMS * PROCESSES];
	struct weiri_bell bell;
	weir_cancel *token;
	uint64_t begun_ns;
	/* The newest value: one struct for each process, and for the next that a thread stands for. */
	struct weiri_newest newest[2][PROCESSES];
	uint64_t last_version[PROCESSES];
	uint32_t versions[PROCESSES][MOST_ITEMS]; /* that each thread published */
	/* Private memory, then shared memory, as mapping.h says. */
	_Alignas(128) char memory[PRIVATE + SHARED];
} scene;

static char *shared(void)
{
	return scene.memory + PRIVATE;
}

/* -- death ------------------------------------------------------------------------------------- */

static void die_in(size_t me)
{
	struct process *process = &scene.processes[me];

	if (process->steps_left != UINT32_MAX && process->steps_left-- == 0)
		__builtin_longjmp(process->back, 1);
}

static void before_step_0(void)
{
	die_in(0);
}

static void before_step_1(void)
{
	die_in(1);
}

static int is_dead(size_t process)
{
	/* [acquire] pairs with the end of the process, which the system orders. */
	return weiri_load_acquire(&scene.processes[process].dead) != 0;
}

/* What the library asks the system. A thread that dies does so as the process that it then stands for. */
bool weiri_seats_is_gone(uint64_t identity)
{
	return identity != 0 && is_dead((size_t)(identity - FIRST) % PROCESSES);
}

/* -- the ring ---------------------------------------------------------------------------------- */

static uint64_t *item_of(size_t hand)
{
	return weiri_frames_payload(&scene.frames, weiri_frames_of(&scene.frames, (uint32_t)hand));
}

/* [P3] A call that finds the ring closed sees what the closer did before: else this read is a race. */
static void know(enum weir_status status)
{
	if (status == WEIR_CANCELLED || status == WEIR_OUT_OF_RANGE)
		weir_model_assert(scene.note == 1);
	else
		weir_model_assert(status == WEIR_OK || status == WEIR_WOULD_BLOCK);
}

static void publish(size_t me, size_t hand)
{
	uint64_t number = me * MOST_ITEMS + scene.given[me];
	enum weir_status status;

	item_of(hand)[0] = number;
	scene.given[me]++; /* if it dies, the item may be inside or not */
	status = weiri_frames_publish(&scene.frames, (uint32_t)hand);
	if (status != WEIR_OK)
		scene.given[me]--;
	know(status);
}

static void close_ring(void)
{
	scene.note = 1;
	weiri_frames_close(&scene.frames);
}

/* Steps of a publish: the records, the exchange, and what says that it has happened. */
enum { RECORDED = 3, EXCHANGED = 4 };

/* The first thread dies when its records say that an exchange is under way, before the exchange. */
static void die_before_exchange(size_t me)
{
	weir_model_assert(me == 0);
	scene.processes[me].steps_left = RECORDED;
	weiri_shm_before_step = before_step_0;
	publish(me, me);
}

/* The thread is of the first process: it publishes with its only hand, unless the other thread has it. */
static void publish_by_idle_hand(size_t me)
{
	int hand = weiri_frames_pick(&scene.frames);

	if (hand < 0)
		return;
	publish(me, (size_t)hand);
	weiri_frames_drop(&scene.frames, (uint32_t)hand);
}

static void note(size_t me, uint64_t number)
{
	weir_model_assert(number < PROCESSES * MOST_ITEMS);
	scene.taken[me][number]++;
}

static void take(size_t me, size_t hand)
{
	enum weir_status status = weiri_frames_take(&scene.frames, (uint32_t)hand);

	if (status == WEIR_OK)
		note(me, item_of(hand)[0]);
	know(status);
}

/* Before the threads begin, a process publishes, and dies after so many steps. */
static void die_in_setup(size_t me, void (*before_step)(void), uint32_t steps)
{
	void *back[5];

	scene.processes[me].back = back;
	scene.processes[me].steps_left = steps;
	if (__builtin_setjmp(back) == 0) {
		weiri_shm_before_step = before_step;
		publish(me, me);
		weir_model_fail("the process lives");
	}
	weiri_shm_before_step = NULL;
	scene.processes[me].steps_left = UINT32_MAX;
	weiri_store_relaxed(&scene.processes[me].dead, 1u); /* [relaxed] no thread has begun */
}

/*
 * The first process dies before its exchange in the only slot, and the second one between its
 * exchange there and the token. Then the item is taken, so that the slot does not show what happened.
 */
static void die_both(void)
{
	die_in_setup(0, before_step_0, RECORDED);
	die_in_setup(1, before_step_1, EXCHANGED);
	take(PROCESSES - 1, PROCESSES - 1);
}

/* Recovers the seat of a dead process. Returns 1 if this thread has its seat afterwards. */
static int recover_seat(size_t me, uint32_t seat)
{
	weiri_seat *word = weiri_frames_seats(&scene.frames) + seat;
	const uint64_t identity = NEXT + me;
	size_t freed = 0;
	uint64_t kept;
	unsigned bits = scene.frames.ring->cell_bits;

	if (!is_dead(seat))
		return 0;
	weir_model_assert(weiri_frames_recover_seat(&scene.frames, seat, identity, &freed));
	if (weiri_seats_take(word, 1, identity) < 0)
		return 0;
	kept = weiri_load_acquire(&scene.frames.hands[seat].kept);
	scene.frames.own[seat].round = kept >> bits;
	scene.frames.own[seat].frame = (uint32_t)(kept & ((UINT64_C(1) << bits) - 1));
	return 1;
}

/* The thread that got the dead process's seat goes on with its hand. */
static size_t hand_of(size_t me, int *has_seat)
{
	return *has_seat ? 0 : me;
}

static void expect_whole(void)
{
	const uint64_t mask = (UINT64_C(1) << scene.frames.ring->cell_bits) - 1;
	const _Atomic(uint64_t) *slots = scene.frames.ring->slots;
	unsigned named[MOST_ITEMS * PROCESSES] = {0};

	for (uint32_t i = 0; i < scene.scope->capacity; i++)
		named[weiri_load_relaxed(&slots[i]) & mask]++;
	for (uint32_t i = 0; i < PROCESSES; i++) {
		uint64_t kept = weiri_load_relaxed(&scene.frames.hands[i].kept);
		uint64_t token = weiri_load_relaxed(&weiri_frames_at(&scene.frames, (uint32_t)(kept & mask))->token);

		named[kept & mask]++;
		weir_model_assert(token == (kept >> scene.frames.ring->cell_bits << WEIRI_FRAMES_HAND_BITS | i));
	}
	for (uint32_t i = 0; i < scene.frames.count; i++) {
		uint64_t token = weiri_load_relaxed(&weiri_frames_at(&scene.frames, i)->token);

		weir_model_assert(named[i] == 1);
		for (uint32_t k = 0; k < i && token != 0; k++)
			weir_model_assert(weiri_load_relaxed(&weiri_frames_at(&scene.frames, k)->token) != token);
	}
}

/* -- the bell ---------------------------------------------------------------------------------- */

static void publish_and_ring(size_t me, size_t hand)
{
	publish(me, hand);
	weiri_bell_ring(&scene.bell);
}

static enum weir_status attempt_take(void *context)
{
	return weiri_frames_take(&scene.frames, *(const uint32_t *)context);
}

static enum weir_status explain(enum weir_status status, weir_error *error)
{
	(void)error;
	return status;
}

/* A wait of its own thread ended by its deadline, when all others slept, were stopped or had ended. */
static void was_late(uint32_t hand, const weir_cancel *token)
{
	weir_model_assert(!weir_cancel_fired(token));
	weir_model_assert(attempt_take(&hand) == WEIR_WOULD_BLOCK);
}

static void take_until(size_t me, weir_cancel *token)
{
	uint32_t hand = (uint32_t)me;
	const struct weiri_bell_wait wait = {"shm", attempt_take, explain, &hand, weir_deadline_in(PATIENCE_NS), token};
	enum weir_status status = weiri_bell_wait(&scene.bell, &wait, NULL);

	if (status == WEIR_DEADLINE_EXCEEDED) {
		was_late(hand, token);
		return;
	}
	/* A look finds what no ring told. */
	weir_model_assert(weir_now_ns() < wait.deadline_ns);
	if (status == WEIR_OK)
		note(me, item_of(me)[0]);
	else
		weir_model_assert(status == WEIR_CANCELLED && weir_cancel_fired(token));
}

static void take_waiting(size_t me)
{
	uint32_t hand = (uint32_t)me;
	const struct weiri_bell_wait wait = {"shm", attempt_take, explain, &hand, WEIR_NO_DEADLINE, NULL};

	weir_model_assert(weiri_bell_wait(&scene.bell, &wait, NULL) == WEIR_OK);
	note(me, item_of(me)[0]);
}

static void take_until_closed(size_t me)
{
	uint32_t hand = (uint32_t)me;
	const struct weiri_bell_wait wait = {"shm", attempt_take, explain, &hand, WEIR_NO_DEADLINE, NULL};
	enum weir_status status = weiri_bell_wait(&scene.bell, &wait, NULL);

	know(status);
	if (status == WEIR_OK)
		note(me, item_of(me)[0]);
	else
		weir_model_assert(status == WEIR_OUT_OF_RANGE);
}

static void close_and_ring(void)
{
	close_ring();
	weiri_bell_ring_slowly(&scene.bell);
}

/* As a destroy does. The hook's reads of the bell must have happened before, else this is a race. */
static void end_bell(void)
{
	/* [acquire] pairs with the hook's last access. */
	if (weiri_load_acquire(&scene.bell.tokens) == 0)
		scene.bell.word = NULL;
}

/* -- the newest value -------------------------------------------------------------------------- */

static void write_newest(size_t me, int is_next)
{
	struct weiri_newest *newest = &scene.newest[is_next][me];
	struct weiri_buffer *buffer;
	uint32_t number;
	uint64_t version;

	if (newest->role == 0 && !weiri_newest_become_writer(newest))
		return;
	buffer = weiri_newest_prepare(newest, &number);
	version = weiri_newest_version(newest) + 1;
	*(uint64_t *)(void *)buffer->value = version;
	scene.versions[me][version]++; /* if it dies, the version may be published or not */
	weir_model_assert(weiri_newest_publish(newest, number) == version);
}

/* No living process is the writer, and none becomes it meanwhile. */
static void write_certainly(size_t me)
{
	weir_model_assert(weiri_newest_become_writer(&scene.newest[0][me]));
	write_newest(me, 0);
}

static void leave_newest(size_t me)
{
	weiri_newest_leave(&scene.newest[0][me], FIRST + me);
}

static void read_newest(size_t me, int is_next)
{
	struct weiri_newest *newest = &scene.newest[is_next][me];
	const struct weiri_buffer *buffer;
	int claim;

	buffer = weiri_newest_claim(newest, &claim);
	weir_model_assert(claim >= 0);
	if (buffer == NULL)
		return;
	weir_model_assert(*(const uint64_t *)(const void *)buffer->value == weiri_load_relaxed(&buffer->version));
	weir_model_assert(weiri_load_relaxed(&buffer->version) >= scene.last_version[me]);
	scene.last_version[me] = weiri_load_relaxed(&buffer->version);
	weiri_newest_let_go(newest, claim);
}

static enum weir_status look_for_newer(void *context)
{
	size_t me = *(const size_t *)context;

	return weiri_newest_version(&scene.newest[0][me]) > scene.last_version[me] ? WEIR_OK : WEIR_WOULD_BLOCK;
}

static void read_waiting(size_t me)
{
	const uint64_t before = scene.last_version[me];
	const struct weiri_bell_wait wait = {"shm", look_for_newer, explain, &me, WEIR_NO_DEADLINE, NULL};

	weir_model_assert(weiri_bell_wait(&scene.bell, &wait, NULL) == WEIR_OK);
	read_newest(me, 0);
	weir_model_assert(scene.last_version[me] > before);
}

static void write_and_ring(size_t me)
{
	write_newest(me, 0);
	weiri_bell_ring(&scene.bell);
}

/* Attaches as another process, for which only the seat of a dead one is left. */
static int attach_newest(size_t me)
{
	return weiri_newest_sit(&scene.newest[1][me], NEXT + me);
}

/* -- scopes ------------------------------------------------------------------------------------ */

#define LETTERS(LETTER) \
	LETTER('p', "publish an item", publish(me, hand_of(me, has_seat))) \
	LETTER('P', "publish an item with the hand of the first process, if it is idle", publish_by_idle_hand(me)) \
	LETTER('d', "die in a publish of an item, before its exchange", die_before_exchange(me)) \
	LETTER('t', "take an item", take(me, hand_of(me, has_seat))) \
	LETTER('r', "if the first process is dead, recover its seat; a thread that gets the seat uses it from here on", \
	       *has_seat |= recover_seat(me, 0)) \
	LETTER('c', "close", close_ring()) \
	LETTER('e', "publish an item and ring the bell", publish_and_ring(me, me)) \
	LETTER('D', "take an item, waiting", take_waiting(me)) \
	LETTER('b', "ring the bell", weiri_bell_ring(&scene.bell)) \
	LETTER('L', "take an item, waiting until a deadline", take_until(me, NULL)) \
	LETTER('C', "take an item, waiting with the token and until a deadline", take_until(me, scene.token)) \
	LETTER('E', "take an item, waiting; the ring may be closed", take_until_closed(me)) \
	LETTER('x', "close, and ring the bell", close_and_ring()) \
	LETTER('Z', "end the bell, unless a hook may still use it", end_bell()) \
	LETTER('F', "fire the token", (void)weir_cancel_fire(scene.token, NULL)) \
	LETTER('w', "write the newest value, if there is no writer, or a dead one", write_newest(me, *has_seat)) \
	LETTER('W', "write the newest value; there is no writer, or a dead one", write_certainly(me)) \
	LETTER('l', "leave the newest value", leave_newest(me)) \
	LETTER('v', "write the newest value and ring the bell", write_and_ring(me)) \
	LETTER('R', "read the newest value, waiting for a newer one", read_waiting(me)) \
	LETTER('n', "read the newest value", read_newest(me, *has_seat)) \
	LETTER('s', "attach by the seat of a dead process; a thread that gets it uses it from here on", \
	       *has_seat |= attach_newest(me))

static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

static void call(size_t me, char what, int *has_seat)
{
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_fail("no such letter");
	}
}

static void setup_ring(void)
{
	const struct weiri_frames_geometry geometry = {scene.scope->capacity, 8, PROCESSES, 1};
	struct weiri_frames_layout layout;

	if (!weiri_frames_lay_out(&geometry, &layout) || layout.size > SHARED)
		weir_model_fail("the scope has no room");
	weiri_frames_fill(&geometry, &layout, shared());
	weiri_frames_open(&scene.frames, (weir_ring *)(void *)scene.memory, &geometry, &layout);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		scene.frames.own[i] = (struct weiri_own_hand){1, scene.scope->capacity + i};
		weiri_store_relaxed(weiri_frames_seats(&scene.frames) + i, (uint64_t)FIRST + i);
	}
	weiri_store_relaxed(&scene.frames.idle, UINT64_C(1));
	scene.begun_ns = weir_now_ns();
	scene.bell.word = (_Atomic(uint32_t) *)(void *)(shared() + layout.bells);
	weiri_store_relaxed(&scene.bell.eventfd, -1);
	if (scene.scope->about == BELL_WITH_LOOKS)
		weir_model_assert(weir_cancel_create(NULL, &scene.token, NULL) == WEIR_OK);
	for (uint32_t i = 0; i < scene.scope->inside; i++)
		publish(PROCESSES - 1, PROCESSES - 1);
	if (scene.scope->about == RING_OF_2_DEAD)
		die_both();
}

static void setup_newest(void)
{
	const struct weiri_newest_geometry geometry = {8, PROCESSES, 1};
	struct weiri_newest_layout layout;

	if (!weiri_newest_lay_out(&geometry, &layout) || layout.size > SHARED)
		weir_model_fail("the scope has no room");
	for (uint32_t i = 0; i < PROCESSES; i++) {
		weiri_newest_open(&scene.newest[0][i], &geometry, &layout, shared());
		weiri_newest_open(&scene.newest[1][i], &geometry, &layout, shared());
		if (!weiri_newest_sit(&scene.newest[0][i], (uint64_t)FIRST + i))
			weir_model_fail("the scope has no seat");
	}
	scene.bell.word = (_Atomic(uint32_t) *)(void *)(shared() + layout.bell);
	weiri_store_relaxed(&scene.bell.eventfd, -1);
	for (uint32_t i = 0; i < scene.scope->inside; i++)
		write_newest(PROCESSES - 1, 0);
	weiri_newest_leave(&scene.newest[0][PROCESSES - 1], (uint64_t)FIRST + PROCESSES - 1);
	/* The seat is taken again, so that a process that attaches finds no free one. */
	if (!weiri_newest_sit(&scene.newest[0][PROCESSES - 1], (uint64_t)FIRST + PROCESSES - 1))
		weir_model_fail("the scope has no seat");
	if (scene.scope->about == NEWEST_OF_DEAD) {
		write_newest(0, 0);
		weiri_store_relaxed(&scene.processes[0].dead, 1u); /* [relaxed] no thread has begun */
	}
}

static bool is_about_newest(void)
{
	return scene.scope->about == NEWEST || scene.scope->about == NEWEST_OF_DEAD || scene.scope->about == BELL_OF_NEWEST;
}

static void setup(void *context)
{
	(void)context;
	if (is_about_newest())
		setup_newest();
	else
		setup_ring();
}

static void run(void *context, size_t me)
{
	struct process *process = &scene.processes[me];
	void *back[5];
	int has_seat = 0;

	(void)context;
	process->back = back;
	if (__builtin_setjmp(back) != 0) {
		weiri_shm_before_step = NULL;
		/* [release] pairs with is_dead(). */
		weiri_store_release(&process->dead, 1u);
		return;
	}
	if (process->steps_left != UINT32_MAX)
		weiri_shm_before_step = me == 0 ? before_step_0 : before_step_1;
	for (const char *what = scene.scope->calls[me]; *what != '\0'; what++)
		call(me, *what, &has_seat);
	weiri_shm_before_step = NULL;
}

static void finish_ring(void)
{
	uint32_t taken[PROCESSES * MOST_ITEMS] = {0};

	for (uint32_t seat = 0; seat < 2; seat++)
		(void)recover_seat(PROCESSES - 1, seat);
	expect_whole();
	while (weiri_frames_take(&scene.frames, PROCESSES - 1) == WEIR_OK)
		note(PROCESSES - 1, item_of(PROCESSES - 1)[0]);
	for (size_t by = 0; by < PROCESSES; by++) {
		for (size_t i = 0; i < PROCESSES * MOST_ITEMS; i++)
			taken[i] += scene.taken[by][i];
	}
	for (size_t i = 0; i < PROCESSES * MOST_ITEMS; i++) {
		size_t who = i / MOST_ITEMS;

		weir_model_assert(taken[i] <= 1);
		weir_model_assert(taken[i] == 0 || i % MOST_ITEMS < scene.given[who]);
		/* Only a dead process loses items: its own, or one that it took. */
		weir_model_assert(i % MOST_ITEMS >= scene.given[who] || taken[i] == 1 || is_dead(0) || is_dead(1));
	}
}

static void finish_bell(void)
{
	/* All hooks have run or are off, so the ring could be destroyed. [relaxed] all threads have ended. */
	weir_model_assert(weiri_load_relaxed(&scene.bell.tokens) == 0);
	/* Where no thread dies, each wait must end by an item or the token. */
	weir_model_assert(weir_now_ns() == scene.begun_ns || scene.scope->deaths != 0);
	weir_cancel_release(scene.token);
}

static void finish_newest(void)
{
	uint64_t version = weiri_newest_version(&scene.newest[0][PROCESSES - 1]);

	read_newest(PROCESSES - 1, 0);
	for (uint64_t v = 1; v < MOST_ITEMS; v++) {
		uint32_t count = 0;

		for (size_t by = 0; by < PROCESSES; by++)
			count += scene.versions[by][v];
		/* A writer that died before it published leaves its number to the next. */
		weir_model_assert(v <= version ? count >= 1 : count <= 2);
		weir_model_assert(count <= 1 || is_dead(0) || is_dead(1));
	}
}

static void finish(void *context)
{
	(void)context;
	if (is_about_newest())
		finish_newest();
	else
		finish_ring();
	if (scene.scope->about == BELL_WITH_LOOKS)
		finish_bell();
}

static int check(const struct scope *scope, uint32_t first, uint32_t second)
{
	char name[SCOPE_NAME];
	struct weir_model_program program = {
		name, scope_threads(scope->calls, PROCESSES), &scene, sizeof(scene), setup, run, finish};
	bool dies_by_itself = strchr(scope->calls[0], 'd') != NULL;
	int bad;

	memset(&scene, 0, sizeof(scene));
	scene.scope = scope;
	for (size_t i = 0; i < PROCESSES; i++)
		scene.processes[i].steps_left = UINT32_MAX;
	if (scope->deaths != 0)
		scene.processes[0].steps_left = first;
	if (scope->second != 0)
		scene.processes[1].steps_left = second;
	if (scope->second != 0)
		(void)snprintf(name, sizeof(name), "%s_at_%u_and_%u", scope->name, first, second);
	else if (scope->deaths != 0)
		(void)snprintf(name, sizeof(name), "%s_at_%u", scope->name, first);
	else
		(void)snprintf(name, sizeof(name), "%s", scope->name);
	weiri_bell_look_ns = scope->about == BELL_WITH_LOOKS ? LOOK_NS : WEIR_NO_DEADLINE;
	bad = scope_as_far_as(&program, scope_long() ? 0 : dies_by_itself ? 100000 : 20000);
	/* A process that is stopped, and not gone: the others end, too, unless they wait for it without looks. */
	if (scope->deaths == 0 && scope->about != BELL && scope->about != BELL_OF_NEWEST && !dies_by_itself)
		bad |= scope_stops(&program, scope_long() || program.threads < 3 || scope->about != BELL_WITH_LOOKS ? 0 : 300,
		                   NULL, NULL);
	return bad;
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		for (uint32_t first = 0; first == 0 || first < scopes[i].deaths; first++) {
			for (uint32_t second = 0; second == 0 || second < scopes[i].second; second++)
				bad |= check(&scopes[i], first, second);
		}
	}
	return bad;
}
