/*
 * check_meeting.c - meetings have one holder, who sees what each party brought; a party leaves its own
 * meeting or none; and ranks are told once, with the sum or with the cause.
 */
#include <stdio.h>
#include <string.h>
#include <weir/transport.h>

#include "model/scope.h"
#include "run/meeting.h"

enum { PARTIES = 3 };

/* -- the word ---------------------------------------------------------------------------------- */

static struct scene {
	struct weiri_meeting meeting;
	uint32_t parties;
	int brought[PARTIES]; /* plain: a race if the holder does not acquire it */
	int held[2];          /* how often each meeting was held */
} scene;

static void setup(void *context)
{
	(void)context;
	weiri_meeting_init(&scene.meeting);
}

/* Comes with a gift; the holder takes all gifts, and opens the next meeting. Returns the number. */
static uint64_t come(uint32_t who)
{
	uint64_t number;

	scene.brought[who]++;
	if (!weiri_meeting_come(&scene.meeting, who, scene.parties, &number))
		return number;
	weir_model_assert(number < 2);
	scene.held[number]++;
	for (uint32_t i = 0; i < scene.parties; i++) {
		weir_model_assert(scene.brought[i] == 1);
		scene.brought[i] = 0;
	}
	weiri_meeting_next(&scene.meeting, number);
	return number;
}

static void each_comes(void *context, size_t who)
{
	(void)context;
	(void)come((uint32_t)who);
}

/* Party 0 leaves, or finds it too late; if it has left it comes again. */
static void one_leaves(void *context, size_t who)
{
	uint64_t number = 0;

	(void)context;
	if (who != 0) {
		(void)come((uint32_t)who);
		return;
	}
	scene.brought[0]++;
	if (weiri_meeting_come(&scene.meeting, 0, scene.parties, &number)) {
		scene.held[number]++;
		for (uint32_t i = 0; i < scene.parties; i++)
			scene.brought[i]--;
		weiri_meeting_next(&scene.meeting, number);
		weir_model_assert(!weiri_meeting_leave(&scene.meeting, 0, scene.parties, number));
	} else if (weiri_meeting_leave(&scene.meeting, 0, scene.parties, number)) {
		scene.brought[0]--;
		(void)come(0);
	}
}

static void all_met_once(void *context)
{
	(void)context;
	weir_model_assert(scene.held[0] == 1 && scene.held[1] == 0);
	for (uint32_t i = 0; i < scene.parties; i++)
		weir_model_assert(scene.brought[i] == 0);
}

/* Meeting 0 was held. Thread 0 is late with leaving it, while both parties come to meeting 1. */
static void setup_second(void *context)
{
	uint64_t number;

	setup(context);
	(void)weiri_meeting_come(&scene.meeting, 0, 2, &number);
	(void)weiri_meeting_come(&scene.meeting, 1, 2, &number);
	weiri_meeting_next(&scene.meeting, 0);
}

static void one_is_late(void *context, size_t who)
{
	(void)context;
	if (who == 2)
		weir_model_assert(!weiri_meeting_leave(&scene.meeting, 0, 2, 0));
	else
		(void)come((uint32_t)who);
}

static void second_was_held(void *context)
{
	(void)context;
	weir_model_assert(scene.held[1] == 1);
}

/* Threads 0 and 1 meet. Thread 2 comes to the next meeting if it sees that, and then knows what the holder did. */
static void one_comes_to_the_next(void *context, size_t who)
{
	uint64_t number;

	(void)context;
	if (who < 2) {
		(void)come((uint32_t)who);
	} else if (weiri_load_relaxed(&scene.meeting.word) >> WEIRI_MEETING_PARTIES ==
	           1) { /* [relaxed] the come orders it */
		weir_model_assert(!weiri_meeting_come(&scene.meeting, 0, 2, &number) && number == 1);
		weir_model_assert(scene.held[0] == 1);
	}
}

static int check(const char *name, size_t threads, uint32_t parties, void (*begin)(void *), void (*run)(void *, size_t),
                 void (*judge)(void *))
{
	struct weir_model_program program = {name, threads, &scene, sizeof(scene), begin, run, judge};

	scene = (struct scene){.parties = parties};
	return scope_complete(&program) | scope_stops(&program, 0, NULL, NULL);
}

/* -- ranks ------------------------------------------------------------------------------------- */

static struct group {
	weir_ranks *ranks;
	weir_transport *at[2];
	weir_transfer *transfers[2];
	weir_tensor *inputs[2];
	bool releases; /* completions release, on whatever thread they run */
	int told[2];
	enum weir_status status[2];
	float sum[2];
} group;

static void note(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	size_t who = (size_t)((int *)context - group.told);

	(void)error;
	weir_model_assert(group.told[who]++ == 0);
	group.status[who] = status;
	if (status == WEIR_OK)
		group.sum[who] = *(const float *)weir_tensor_data(sum);
	weir_tensor_release(sum);
	if (group.releases) {
		group.at[who]->release(group.at[who], group.transfers[who]);
		group.transfers[who] = NULL;
	}
}

static void setup_ranks(void *context)
{
	struct weir_ranks_options options = {WEIR_RANKS_OPTIONS_INIT, .channels = 1};

	(void)context;
	weir_model_assert(weir_ranks_create(2, &options, &group.ranks, NULL) == WEIR_OK);
	for (size_t i = 0; i < 2; i++) {
		struct weir_channel what = {"w", WEIR_F32, NULL};
		uint32_t channel;

		group.at[i] = weir_ranks_transport(group.ranks, i);
		weir_model_assert(group.at[i]->open(group.at[i], &what, &channel, NULL) == WEIR_OK);
		weir_model_assert(weir_tensor_scalar_f32((float)(i + 1), &group.inputs[i]) == WEIR_OK);
	}
}

static void start(size_t who)
{
	struct weir_reduction reduction = {
		.input = group.inputs[who], .divisor = 1, .done = note, .context = &group.told[who]};

	weir_model_assert(group.at[who]->start(group.at[who], &reduction, &group.transfers[who], NULL) == WEIR_OK);
}

static void start_both(void *context, size_t who)
{
	(void)context;
	start(who);
}

static void start_and_cancel(void *context, size_t who)
{
	(void)context;
	start(who);
	if (who == 0)
		group.at[0]->cancel(group.at[0], group.transfers[0], NULL);
}

/* Both have the sum; or rank 0 has left, and rank 1 waits. */
static void told_once(void *context)
{
	bool left = group.told[0] == 1 && group.status[0] == WEIR_CANCELLED;

	(void)context;
	weir_model_assert(group.told[0] == 1 && group.told[1] == (left ? 0 : 1));
	for (size_t i = 0; i < 2; i++)
		weir_model_assert(left || (group.status[i] == WEIR_OK && group.sum[i] == 3.0f));
	if (left)
		group.at[1]->cancel(group.at[1], group.transfers[1], NULL);
	for (size_t i = 0; i < 2; i++) {
		group.at[i]->release(group.at[i], group.transfers[i]);
		group.at[i]->close(group.at[i], 0);
		weir_tensor_release(group.inputs[i]);
	}
	weir_model_assert(weir_ranks_destroy(group.ranks, NULL) == WEIR_OK);
}

static int check_ranks(const char *name, bool releases, void (*run)(void *, size_t))
{
	struct weir_model_program program = {name, 2, &group, sizeof(group), setup_ranks, run, told_once};

	group = (struct group){.releases = releases};
	return scope_complete(&program);
}

/* -- two runs of one rank ---------------------------------------------------------------------- */

enum { RUNS = 3 };

/* Runs 0 and 1 are of rank 0, run 2 is of rank 1. */
static struct crowd {
	weir_ranks *ranks;
	weir_transport *at[RUNS];
	weir_transfer *transfers[RUNS]; /* NULL: another run of the rank was under way */
	weir_tensor *input;
	int told[RUNS];
} crowd;

static void note_run(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	(void)error;
	weir_model_assert(++*(int *)context == 1);
	weir_model_assert(status == WEIR_CANCELLED || *(const float *)weir_tensor_data(sum) == 2.0f);
	weir_tensor_release(sum);
}

static void setup_crowd(void *context)
{
	struct weir_ranks_options options = {WEIR_RANKS_OPTIONS_INIT, .channels = 1};
	struct weir_channel what = {"w", WEIR_F32, NULL};
	uint32_t channel;

	(void)context;
	weir_model_assert(weir_ranks_create(2, &options, &crowd.ranks, NULL) == WEIR_OK);
	weir_model_assert(weir_tensor_scalar_f32(1, &crowd.input) == WEIR_OK);
	for (size_t i = 0; i < RUNS; i++)
		crowd.at[i] = weir_ranks_transport(crowd.ranks, i / 2);
	for (size_t i = 0; i < RUNS; i += 2)
		weir_model_assert(crowd.at[i]->open(crowd.at[i], &what, &channel, NULL) == WEIR_OK);
}

static void run_rank(void *context, size_t who)
{
	struct weir_reduction reduction = {
		.input = crowd.input, .divisor = 1, .done = note_run, .context = &crowd.told[who]};
	enum weir_status status = crowd.at[who]->start(crowd.at[who], &reduction, &crowd.transfers[who], NULL);

	(void)context;
	weir_model_assert(status == WEIR_OK || (who < 2 && status == WEIR_FAILED_PRECONDITION));
}

static void run_and_cancel(void *context, size_t who)
{
	run_rank(context, who);
	if (who == 0 && crowd.transfers[0] != NULL)
		crowd.at[0]->cancel(crowd.at[0], crowd.transfers[0], NULL);
}

/* A run that was not told is in the meeting that is open, so it can leave. */
static void each_run_ends(void *context)
{
	(void)context;
	for (size_t i = 0; i < RUNS; i++) {
		if (crowd.transfers[i] == NULL)
			continue;
		if (crowd.told[i] == 0)
			crowd.at[i]->cancel(crowd.at[i], crowd.transfers[i], NULL);
		weir_model_assert(crowd.told[i] == 1);
		crowd.at[i]->release(crowd.at[i], crowd.transfers[i]);
	}
	for (size_t i = 0; i < RUNS; i += 2)
		crowd.at[i]->close(crowd.at[i], 0);
	weir_tensor_release(crowd.input);
	weir_model_assert(weir_ranks_destroy(crowd.ranks, NULL) == WEIR_OK);
}

/* Opens the only channel, if it is free, and closes it again: what it is for is plain memory. */
static void open_and_close(void *context, size_t who)
{
	struct weir_channel what = {who == 0 ? "a" : "b", WEIR_F32, NULL};
	uint32_t channel;

	(void)context;
	if (crowd.at[0]->open(crowd.at[0], &what, &channel, NULL) == WEIR_OK)
		crowd.at[0]->close(crowd.at[0], channel);
}

static void setup_closed(void *context)
{
	struct weir_ranks_options options = {WEIR_RANKS_OPTIONS_INIT, .channels = 1};

	(void)context;
	weir_model_assert(weir_ranks_create(1, &options, &crowd.ranks, NULL) == WEIR_OK);
	crowd.at[0] = weir_ranks_transport(crowd.ranks, 0);
}

static void destroy_ranks(void *context)
{
	(void)context;
	weir_model_assert(weir_ranks_destroy(crowd.ranks, NULL) == WEIR_OK);
}

static int check_crowd(const char *name, size_t threads, void (*begin)(void *), void (*run)(void *, size_t),
                       void (*end)(void *))
{
	struct weir_model_program program = {name, threads, &crowd, sizeof(crowd), begin, run, end};

	crowd = (struct crowd){.ranks = NULL};
	return scope_as_far_as(&program, scope_long() ? 0 : 20000);
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	bad |= check("meeting_2_come", 2, 2, setup, each_comes, all_met_once);
	bad |= check("meeting_3_come", 3, 3, setup, each_comes, all_met_once);
	bad |= check("meeting_1_comes_beside_1_that_leaves", 2, 2, setup, one_leaves, all_met_once);
	bad |= check("meeting_2_come_beside_1_that_leaves", 3, 3, setup, one_leaves, all_met_once);
	bad |= check("meeting_2_come_beside_1_that_is_late", 3, 2, setup_second, one_is_late, second_was_held);
	bad |= check("meeting_2_come_beside_1_that_comes_to_the_next", 3, 2, setup, one_comes_to_the_next, all_met_once);
	bad |= check_ranks("ranks_2_start", false, start_both);
	bad |= check_ranks("ranks_2_start_and_release_when_told", true, start_both);
	bad |= check_ranks("ranks_1_starts_beside_1_that_cancels", false, start_and_cancel);
	bad |= check_crowd("ranks_2_runs_of_1_rank_beside_the_other", RUNS, setup_crowd, run_rank, each_run_ends);
	bad |= check_crowd("ranks_1_starts_and_cancels_beside_a_run_of_it", 2, setup_crowd, run_and_cancel, each_run_ends);
	bad |= check_crowd("ranks_2_open_and_close_the_only_channel", 2, setup_closed, open_and_close, destroy_ranks);
	return bad;
}
