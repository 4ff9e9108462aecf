/*
 * check_trace.c - records of threads that never wait, beside a call that writes the trace. A chunk has
 * room for two records here (run/trace_buffer.c).
 *
 * Required of every execution:
 * - What a write of the trace gives of a thread are its first records, whole and without a gap
 * - At the end all records are there
 * - Each thread has a buffer of its own; one with the id of a thread that has ended goes on with the
 *   buffer of that
 */
#include <stdio.h>
#include <weir/flow/trace.h>

#include "base/compiler.h"
#include "model/scope.h"
#include "reclaim/record.h"
#include "session/trace.h"

enum { THREADS = 2, MOST_WORDS = 64 };

static struct scene {
	weir_trace *trace;
	int records; /* that each thread adds */
	uint64_t words[MOST_WORDS];
	size_t count;
} scene;

static void setup(void *context)
{
	(void)context;
	weir_model_assert(weir_trace_create(NULL, &scene.trace, NULL) == WEIR_OK);
}

/* Record `number` of the thread `who`. */
static void add(size_t who, int number)
{
	const struct weiri_trace_point point = {&scene.trace->buffers, who + 1};

	weiri_trace_effect(&point, WEIRI_TRACE_READ, &scene, (uint64_t)number);
}

static void add_records(size_t who)
{
	for (int i = 0; i < scene.records; i++)
		add(who, i);
}

static enum weir_status collect(void *context, const char *bytes, size_t size, weir_error *error)
{
	(void)context, (void)error;
	for (size_t i = 0; i < size / 8; i++) {
		uint64_t word = 0;

		for (size_t b = 0; b < 8; b++)
			word |= (uint64_t)(uint8_t)bytes[i * 8 + b] << b * 8;
		weir_model_assert(scene.count < MOST_WORDS);
		scene.words[scene.count++] = word;
	}
	return WEIR_OK;
}

/* Checks what was written. Returns how many records it has. */
static int check_words(void)
{
	int next[THREADS] = {0}, total = 0;
	size_t at = WEIRI_TRACE_HEAD_WORDS;

	while (at < scene.count) {
		const uint64_t *record = scene.words + at;
		size_t words = (size_t)(record[0] >> 8 & 0xffffff);

		at += words;
		weir_model_assert(words != 0 && at <= scene.count);
		if ((record[0] & 0xff) == WEIRI_TRACE_THREAD)
			continue;
		weir_model_assert((record[0] & 0xff) == WEIRI_TRACE_EFFECT && words == WEIRI_TRACE_EFFECT_WORDS);
		weir_model_assert(record[1] >= 1 && record[1] <= THREADS && record[2] == (uintptr_t)&scene);
		weir_model_assert(record[3] == (uint64_t)next[record[1] - 1]++);
		total++;
	}
	return total;
}

static int write_trace(void)
{
	scene.count = 0;
	weir_model_assert(weir_trace_write(scene.trace, collect, NULL, NULL) == WEIR_OK);
	return check_words();
}

static void record_beside_a_write(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		add_records(0);
	else
		weir_model_assert(write_trace() <= scene.records);
}

static void both_record(void *context, size_t who)
{
	(void)context;
	add_records(who);
}

/* Once the first thread has written its record, its id is that of the second: Linux gives ids again. */
static void one_goes_on(void *context, size_t who)
{
	struct weiri_published *link;
	struct weiri_trace_buffer *buffer;

	(void)context;
	if (who == 0) {
		add(0, 0);
		return;
	}
	link = weiri_published_first(&scene.trace->buffers.list);
	buffer = WEIRI_CONTAINER_OF(link, struct weiri_trace_buffer, link);
	/* [relaxed] that the thread has ended orders nothing here; P3 does. */
	if (link == NULL || weiri_load_relaxed(&buffer->rests) == 0)
		return;
	buffer->thread = weiri_record_my_thread();
	add(0, 1);
	weir_model_assert(weiri_published_first(&scene.trace->buffers.list) == link);
}

static void finish(void *context)
{
	(void)context;
	weir_model_assert(weir_trace_dropped(scene.trace) == 0);
	weir_model_assert(weir_trace_destroy(scene.trace, NULL) == WEIR_OK);
}

static void all_of_one(void *context)
{
	weir_model_assert(write_trace() == scene.records);
	finish(context);
}

static void all_of_both(void *context)
{
	weir_model_assert(write_trace() == 2 * scene.records);
	finish(context);
}

static void one_or_two(void *context)
{
	int records = write_trace();

	weir_model_assert(records == 1 || records == 2);
	finish(context);
}

static int check(const char *name, int records, void (*thread)(void *, size_t), void (*end)(void *))
{
	struct weir_model_program program = {name, THREADS, &scene, sizeof(scene), setup, thread, end};

	scene = (struct scene){.records = records};
	return scope_complete(&program) | scope_stops(&program, 0, NULL, NULL);
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	bad |= check("trace_3_records_beside_a_write", 3, record_beside_a_write, all_of_one);
	bad |= check("trace_2_threads_that_record", 1, both_record, all_of_both);
	bad |= check("trace_a_later_thread_with_the_same_id", 1, one_goes_on, one_or_two);
	return bad;
}
