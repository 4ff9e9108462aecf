/*
 * waits.c - finds out which thread waits for which when nothing completes.
 *
 * Before a call, threads declare what they may wait on (stress_begin_on) and what they can give to
 * others (stress_gives). This tells which thread could release which. A waiting thread is *within
 * reach* if some thread can give what it needs. That thread must not have ended, and must not wait
 * unless it is within reach itself. A thread out of reach waits for ever: for an ended thread, or
 * in a circle.
 *
 * The report adds what the system tells about each thread: whether it sleeps, and on which futex.
 * This includes threads that do not belong to the harness, such as a pool's workers. Nothing here
 * allocates, because a thread that hangs may hold the lock of malloc().
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <weir/time.h>

#include "run.h"

enum { PLACES = STRESS_MAX_THREADS + 1, MOST_NAMED = 8, STATE = 96 };

struct seen {
	const struct stress_thread *thread;
	const char *doing;
	const struct stress_object *on; /* NULL: it does not wait on an object */
	uint32_t needs;
	int within_reach, told;
};

/* Only the watchdog calls this, once. */
static struct seen seen[PLACES];
static size_t count;

struct text {
	char *memory;
	size_t size;
};

static void append(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(struct text *text, const char *format, ...)
{
	size_t used = strlen(text->memory);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text->memory + used, text->size - used, format, arguments);
	va_end(arguments);
}

/* -- what threads declared --------------------------------------------------------------------- */

/* [relaxed] throughout: nothing has moved for seconds, and all are static data. */
static void collect(void)
{
	count = 0;
	for (size_t i = 0; i < PLACES; i++) {
		const struct stress_thread *thread = stress_thread_in(i);

		if (thread != NULL)
			seen[count++] = (struct seen){.thread = thread,
			                              .doing = weiri_load_relaxed(&thread->doing),
			                              .on = weiri_load_relaxed(&thread->on),
			                              .needs = weiri_load_relaxed(&thread->needs)};
	}
}

static int can_give(const struct seen *giver, const struct seen *waiter)
{
	for (size_t i = 0; giver != waiter && i < STRESS_GIFTS; i++) {
		const struct stress_gift *gift = &giver->thread->gift[i];

		/* [relaxed] as above */
		if (weiri_load_relaxed(&gift->object) == waiter->on && (weiri_load_relaxed(&gift->bits) & waiter->needs) != 0)
			return 1;
	}
	return 0;
}

static int is_within_reach(const struct seen *waiter)
{
	for (size_t i = 0; i < count; i++) {
		const struct seen *giver = &seen[i];

		if (can_give(giver, waiter) && !giver->thread->ended && (giver->on == NULL || giver->within_reach))
			return 1;
	}
	return 0;
}

static void find_who_is_within_reach(void)
{
	for (int changed = 1; changed;) {
		changed = 0;
		for (size_t i = 0; i < count; i++) {
			if (seen[i].on != NULL && !seen[i].within_reach && is_within_reach(&seen[i]))
				seen[i].within_reach = changed = 1;
		}
	}
}

/* -- what the system reports ------------------------------------------------------------------- */

static int read_task(int id, const char *file, char *text, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/%s", id, file);
	return stress_read_file(path, text, size);
}

/* "runs", "sleeps in futex 0x7f12ab34", "sleeps". */
static void describe_task(int id, char *text, size_t size)
{
	char line[512], *after;
	long number;

	(void)snprintf(text, size, "gone");
	if (!read_task(id, "stat", line, sizeof(line)) || (after = strrchr(line, ')')) == NULL || after[1] == '\0')
		return;
	(void)snprintf(text, size, "%s", after[2] == 'R' ? "runs" : "sleeps");
	if (!read_task(id, "syscall", line, sizeof(line)))
		return;
	number = strtol(line, &after, 10);
	if (after != line && number == (long)SYS_futex)
		(void)snprintf(text, size, "sleeps in futex 0x%llx", strtoull(after, NULL, 16));
}

static int is_ours(int id)
{
	for (size_t i = 0; i < count; i++) {
		/* [relaxed] written when it started */
		if (weiri_load_relaxed(&seen[i].thread->kernel_id) == id)
			return 1;
	}
	return id == (int)syscall(SYS_gettid);
}

static void tell_other(struct text *text, int id)
{
	char state[STATE], name[32] = "?";

	describe_task(id, state, sizeof(state));
	if (read_task(id, "comm", name, sizeof(name)))
		name[strcspn(name, "\n")] = '\0';
	append(text, "\n      %d \"%s\" %s", id, name, state);
}

/*
 * The system's own format. opendir() allocates, and a thread that hangs may hold the lock of
 * malloc().
 */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t length;
	uint8_t type;
	char name[];
};

static void tell_of_others(struct text *text)
{
	static _Alignas(struct entry) char entries[16384];
	int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long length = folder >= 0 ? syscall(SYS_getdents64, folder, entries, sizeof(entries)) : 0;
	const struct entry *entry;
	int named = 0;

	for (long at = 0; at < length && named < MOST_NAMED; at += entry->length) {
		int id;

		entry = (const struct entry *)(const void *)(entries + at);
		id = (int)strtol(entry->name, NULL, 10);
		if (id == 0 || is_ours(id))
			continue;
		if (named++ == 0)
			append(text, "\n    threads that do not belong to the harness");
		tell_other(text, id);
	}
	if (folder >= 0)
		(void)close(folder);
}

/* -- the report -------------------------------------------------------------------------------- */

static void tell_thread(struct text *text, const struct seen *one)
{
	const struct stress_thread *thread = one->thread;
	/* [relaxed] as above */
	uint64_t now = weir_now_ns(), operations = weiri_load_relaxed(&thread->operations);
	char state[STATE];

	/* [relaxed] as above */
	describe_task(weiri_load_relaxed(&thread->kernel_id), state, sizeof(state));
	append(text, "\n      %s %u: for %.1f s; %" PRIu64 " operation%s, the last %.1f s ago; %s", thread->role,
	       thread->number, (double)(now - thread->begun_ns) * 1e-9, operations, operations == 1 ? "" : "s",
	       (double)(now - thread->completed_ns) * 1e-9, thread->ended ? "has ended" : state);
}

static void tell_needs(struct text *text, const struct stress_object *object, uint32_t needs)
{
	const char *separator = "";

	for (unsigned bit = 0; bit < sizeof(object->gives) / sizeof(object->gives[0]); bit++) {
		if ((needs >> bit & 1) != 0 && object->gives[bit] != NULL) {
			append(text, "%s%s", separator, object->gives[bit]);
			separator = " or ";
		}
	}
}

static void tell_givers(struct text *text, const struct seen *waiter)
{
	unsigned named = 0;
	int anybody_left = 0;

	append(text, "\n      could be released by: ");
	for (size_t i = 0; i < count; i++) {
		const struct seen *giver = &seen[i];

		if (!can_give(giver, waiter))
			continue;
		anybody_left |= !giver->thread->ended;
		if (named++ >= MOST_NAMED)
			continue;
		append(text, "%s%s %u, which ", named == 1 ? "" : "; ", giver->thread->role, giver->thread->number);
		if (giver->thread->ended)
			append(text, "has ended");
		else if (giver->on != NULL)
			append(text, "waits in %s of %s %s", giver->doing, giver->on->kind, giver->on->name);
		else
			append(text, "does not wait, last: %s", giver->doing);
	}
	if (named == 0)
		append(text, "no running thread");
	else if (named > MOST_NAMED)
		append(text, "; and %u more", named - MOST_NAMED);
	if (!waiter->within_reach)
		append(text, "\n      so forever: %s",
		       anybody_left ? "they wait for one another" : "no thread is left that could");
}

/* Describes all threads that wait like this one. */
static void tell_group(struct text *text, const struct seen *first)
{
	char state[STATE] = "";
	unsigned members = 0;

	for (size_t i = 0; i < count; i++)
		members += seen[i].on == first->on && seen[i].doing == first->doing && seen[i].needs == first->needs;
	if (first->on->describe != NULL)
		first->on->describe(first->on->structure, state, sizeof(state));
	append(text, "\n    %u thread%s in %s of %s %s%s%s%s, for ", members, members == 1 ? "" : "s", first->doing,
	       first->on->kind, first->on->name, state[0] == '\0' ? "" : " (", state, state[0] == '\0' ? "" : ")");
	tell_needs(text, first->on, first->needs);
	for (size_t i = 0; i < count; i++) {
		if (seen[i].on == first->on && seen[i].doing == first->doing && seen[i].needs == first->needs) {
			seen[i].told = 1;
			tell_thread(text, &seen[i]);
		}
	}
	tell_givers(text, first);
}

void stress_describe_waits(char *memory, size_t size)
{
	struct text text = {memory, size};

	collect();
	find_who_is_within_reach();
	for (size_t i = 0; i < count; i++) {
		if (seen[i].on != NULL && !seen[i].told)
			tell_group(&text, &seen[i]);
	}
	for (size_t i = 0; i < count; i++) {
		if (seen[i].on == NULL) {
			append(&text, "\n    in \"%s\"", seen[i].doing);
			tell_thread(&text, &seen[i]);
		}
	}
	tell_of_others(&text);
}

void stress_gives(struct stress_thread *self, const struct stress_object *object, uint32_t bits)
{
	size_t place = 0, free_place = STRESS_GIFTS;

	/* [relaxed] throughout: for a report. */
	for (; place < STRESS_GIFTS && weiri_load_relaxed(&self->gift[place].object) != object; place++) {
		if (weiri_load_relaxed(&self->gift[place].object) == NULL)
			free_place = place;
	}
	if (place == STRESS_GIFTS)
		place = free_place;
	STRESS_CHECK(place < STRESS_GIFTS, "a thread gives to more than %d objects", (int)STRESS_GIFTS);
	weiri_store_relaxed(&self->gift[place].bits, bits);
	weiri_store_relaxed(&self->gift[place].object, bits != 0 ? object : NULL);
}
