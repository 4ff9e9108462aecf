/*
 * dump.c - writes all queues, critical sections, areas and iterators: their contents, waiters,
 * producers and consumers.
 *
 * Algorithm. Each object is first copied into a struct view. During the copy a section protects the
 * entries of the object's lists, and a hold on its registry entry protects the object itself. Both
 * end before the view is printed. So a slow read of /proc, or a slow file descriptor, never delays
 * a collection or the release of a destroyed object.
 * Progress: lock-free, except for write(2) and poll(2). If other threads change a list, the walk of
 * the list may start over. Each walk ends after a fixed number of steps.
 */
#include <weir/dump.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/uncancelled.h"
#include "queue/announce.h"
#include "queue/operation.h"
#include "sync/registry.h"
#include "queue/right.h"
#include "var/stalls.h"

enum {
	MOST_SHOWN = 32,
	MOST_STEPS = 4096,
	NAME_SIZE = 96,
	CONTENT_SIZE = 480,
	TEXT_SIZE = 4096,
	PATIENCE_MS = 1000,
	OLD_NS = 1000000000
};

/* -- what is seen of a queue ------------------------------------------------------------------- */

struct waiter {
	const void *entry; /* to recognize it; not to be followed */
	enum weir_queue_op_kind kind;
	bool is_select;
	const char *verb; /* in an area */
	uint32_t thread;
	bool asynchronous;
	size_t count; /* items, or cases of a select */
	uint64_t began_ns;
};

struct participant {
	const weir_queue_announcement *announcement; /* as above */
	enum weir_queue_role role;
	uint32_t thread;
	char as[WEIRI_ANNOUNCED_AS_SIZE];
};

struct view {
	uint64_t number;
	char name[NAME_SIZE];
	size_t waiters[WEIRI_SIDES], participants;
	struct waiter waiter[WEIRI_SIDES][MOST_SHOWN]; /* of an area: of the first side only */
	/* Of an area. */
	const char *kind; /* NULL: it is a queue */
	char content[CONTENT_SIZE];
	/* Of a queue. */
	const char *order;
	uint32_t flags;
	size_t size, capacity;
	uint64_t admission, turn;
	bool is_section;
	uint32_t holder; /* of a critical section */
	bool closed;
	struct weir_queue_stats stats;
	struct participant participant[MOST_SHOWN];
};

/*
 * Copies a name, cuts it if it is too long, and replaces quotes and unprintable characters by '?'.
 */
static void copy_name(char name[NAME_SIZE], const char *from)
{
	size_t length = strlen(from);

	(void)snprintf(name, NAME_SIZE, length < NAME_SIZE ? "%s" : "%.92s...", from);
	for (char *at = name; *at != '\0'; at++) {
		if ((unsigned char)*at < ' ' || *at == '"' || *at == 127)
			*at = '?';
	}
}

static bool knows_waiter(const struct view *view, enum weiri_side side, const void *entry)
{
	for (size_t i = 0; i < view->waiters[side]; i++) {
		if (view->waiter[side][i].entry == entry)
			return true;
	}
	return false;
}

/* Adds an entry of a list to the view: a part of a queue operation, or a case of a select. */
static void add_waiter(struct view *view, enum weiri_side side, struct weiri_pending_entry *entry)
{
	const weir_pending *pending = entry->pending;
	bool is_select;

	if (weiri_pending_over(pending) || knows_waiter(view, side, entry))
		return; /* an ended operation; or the walk started over */
	is_select = pending->kind == &weiri_select_kind;
	view->waiter[side][view->waiters[side]++] =
		(struct waiter){.entry = entry,
	                    .kind = weiri_queue_part_of(entry)->kind,
	                    .is_select = is_select,
	                    .thread = pending->thread,
	                    .asynchronous = !pending->is_blocking,
	                    .count = is_select ? pending->entry_count : weiri_queue_part_of(entry)->count,
	                    .began_ns = pending->began_ns};
}

static void see_waiters(struct weiri_scope *scope, struct view *view, weir_queue *queue, enum weiri_side side)
{
	struct weiri_list *list = side == WEIRI_SIDE_ENQUEUE ? &queue->producers.list : &queue->consumers.list;
	struct weiri_list_node *node = NULL;

	for (int steps = 0; steps < MOST_STEPS && view->waiters[side] < MOST_SHOWN; steps++) {
		node = weiri_list_next(scope, list, node);
		if (node == NULL)
			return;
		add_waiter(view, side, weiri_pending_entry_of(node));
	}
}

static bool knows_participant(const struct view *view, const weir_queue_announcement *announcement)
{
	for (size_t i = 0; i < view->participants; i++) {
		if (view->participant[i].announcement == announcement)
			return true;
	}
	return false;
}

static void see_participants(struct weiri_scope *scope, struct view *view, weir_queue *queue)
{
	const weir_queue_announcement *one = NULL;

	for (int steps = 0; steps < MOST_STEPS && view->participants < MOST_SHOWN; steps++) {
		struct participant *seen = &view->participant[view->participants];

		one = weiri_announced_next(scope, queue, one);
		if (one == NULL)
			return;
		if (knows_participant(view, one))
			continue;
		*seen = (struct participant){.announcement = one, .role = one->role, .thread = one->thread};
		memcpy(seen->as, one->as, sizeof(seen->as));
		view->participants++;
	}
}

static void see(struct weiri_scope *scope, struct view *view, weir_queue *queue)
{
	copy_name(view->name, queue->name);
	view->kind = NULL;
	view->order = queue->store->name;
	view->flags = queue->flags;
	view->capacity = queue->capacity;
	/* [relaxed] both are only displayed. */
	view->admission = weiri_load_relaxed(&queue->admission);
	view->turn = weiri_load_relaxed(&queue->turn);
	view->is_section = queue->right != NULL;
	view->holder = view->is_section ? weiri_right_holder(queue->right) : WEIRI_RIGHT_FREE;
	view->closed = weiri_queue_store_closed(queue);
	weiri_queue_read_stats(queue, &view->stats);
	view->size = weiri_queue_size(queue);
	view->waiters[WEIRI_SIDE_ENQUEUE] = view->waiters[WEIRI_SIDE_DEQUEUE] = view->participants = 0;
	see_waiters(scope, view, queue, WEIRI_SIDE_ENQUEUE);
	see_waiters(scope, view, queue, WEIRI_SIDE_DEQUEUE);
	see_participants(scope, view, queue);
}

static void see_waiters_at(struct weiri_scope *scope, struct view *view, struct weiri_waitable *waitable)
{
	struct weiri_list_node *node = NULL;

	for (int steps = 0; steps < MOST_STEPS && view->waiters[0] < MOST_SHOWN; steps++) {
		const struct weiri_waitable_op *op;

		node = weiri_list_next(scope, &waitable->waiters.list, node);
		if (node == NULL)
			return;
		op = WEIRI_CONTAINER_OF(weiri_pending_entry_of(node), struct weiri_waitable_op, entry);
		if (weiri_pending_over(&op->pending) || knows_waiter(view, 0, &op->entry))
			continue;
		view->waiter[0][view->waiters[0]++] = (struct waiter){.entry = &op->entry,
		                                                      .verb = op->verb,
		                                                      .thread = op->pending.thread,
		                                                      .asynchronous = !op->pending.is_blocking,
		                                                      .began_ns = op->pending.began_ns};
	}
}

/* Copies an object that describes itself, such as an area, into the view. */
static void see_waitable(struct weiri_scope *scope, struct view *view, const struct weiri_registered_kind *kind,
                         void *object)
{
	struct weiri_waitable *waitable = kind->waitable(object);

	copy_name(view->name, waitable->name);
	view->kind = waitable->what;
	kind->tell(scope, object, view->content, sizeof(view->content));
	view->waiters[0] = view->waiters[1] = view->participants = 0;
	view->stats.waiting = weiri_load_relaxed(&waitable->waiting); /* [relaxed] a count */
	see_waiters_at(scope, view, waitable);
}

/* Copies the next object into the view. Returns false if there are no more objects. */
static bool see_next(struct weiri_record *record, struct weiri_registry_place *place, struct view *view)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	struct weiri_registered *entry = weiri_registry_next(&scope, place);
	const struct weiri_registered_kind *kind = NULL;
	void *object = NULL;
	bool ours_to_free = false;

	if (entry != NULL) {
		kind = weiri_registered_kind(entry);
		object = weiri_registered_object(entry);
		view->number = place->number;
		if (kind == &weiri_queue_registered)
			see(&scope, view, object);
		else
			see_waitable(&scope, view, kind, object);
		ours_to_free = weiri_registry_let_go(entry);
	}
	weiri_scope_leave(&scope);
	if (ours_to_free) /* it was destroyed while it was read */
		kind->free(object);
	return entry != NULL;
}

/* -- writing ----------------------------------------------------------------------------------- */

struct output {
	int fd;
	enum weir_status status; /* of the first write that failed */
	size_t length;
	char text[TEXT_SIZE];
};

/* Waits until a non-blocking descriptor has room. Returns false if it had none for PATIENCE_MS. */
static bool wait_for_room(int fd)
{
	int ready;

	do
		ready = weiri_poll_out(fd, PATIENCE_MS);
	while (ready < 0 && errno == EINTR);
	return ready > 0;
}

static enum weir_status write_all(int fd, const char *text, size_t length)
{
	while (length != 0) {
		ssize_t written = weiri_write(fd, text, length);

		if (written > 0) {
			text += written;
			length -= (size_t)written;
		} else if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			if (!wait_for_room(fd))
				return WEIR_DEADLINE_EXCEEDED;
		} else if (written < 0 && errno == EBADF) {
			return WEIR_INVALID_ARGUMENT;
		} else if (written == 0 || errno != EINTR) {
			return WEIR_DATA_LOSS;
		}
	}
	return WEIR_OK;
}

static void flush(struct output *out)
{
	if (out->status == WEIR_OK)
		out->status = write_all(out->fd, out->text, out->length);
	out->length = 0;
}

static void say(struct output *out, const char *format, ...) WEIR_PRINTF(2, 3);

/* Appends text that is shorter than the buffer; if it does not fit, the buffer is flushed first. */
static void say(struct output *out, const char *format, ...)
{
	for (int attempt = 0; attempt < 2; attempt++) {
		size_t room = sizeof(out->text) - out->length;
		va_list arguments;
		int length;

		va_start(arguments, format);
		length = vsnprintf(out->text + out->length, room, format, arguments);
		va_end(arguments);
		if (length >= 0 && (size_t)length < room) {
			out->length += (size_t)length;
			return;
		}
		flush(out);
	}
}

/* Writes a thread with the name that the system has for it: `thread 123 "worker"`. */
static void say_thread(struct output *out, uint32_t thread)
{
	char path[64], read_name[32] = "?", name[NAME_SIZE];
	ssize_t length = 0;
	int file;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%" PRIu32 "/comm", thread);
	file = weiri_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (file >= 0) { /* otherwise it has ended, or there is no /proc */
		length = weiri_read(file, read_name, sizeof(read_name) - 1);
		(void)weiri_close(file);
	}
	if (length > 0)
		read_name[length - 1] = '\0'; /* instead of the newline */
	copy_name(name, read_name);
	say(out, "thread %" PRIu32 " \"%s\"", thread, name);
}

static double seconds(uint64_t nanoseconds)
{
	return (double)nanoseconds / 1e9;
}

static void print_state(struct output *out, const struct view *view)
{
	uint64_t to_come = view->admission & WEIRI_ADMISSION_PENDING;
	const struct weir_queue_stats *stats = &view->stats;

	say(out, "queue \"%s\" (number %" PRIu64 "): %s%s, %zu of %zu inside, %s", view->name, view->number, view->order,
	    (view->flags & WEIR_QUEUE_FAIR) != 0 ? ", fair" : "", view->size, view->capacity,
	    view->closed ? "closed" : "open");
	if (view->closed && to_come != 0)
		say(out, ", %" PRIu64 " enqueues still to come", to_come);
	say(out, "%s\n", (view->turn & 1) != 0 ? ", a batch collects" : "");
	say(out, "  %" PRIu64 " in, %" PRIu64 " out, at most %" PRIu64 " inside; ", stats->items_in, stats->items_out,
	    stats->high_water);
	say(out, "waits: %" PRIu64 " of enqueues (the ended ones %.3f s), %" PRIu64 " of dequeues (%.3f s); ",
	    stats->enqueue_waits, seconds(stats->enqueue_blocked_ns), stats->dequeue_waits,
	    seconds(stats->dequeue_blocked_ns));
	say(out, "%" PRIu64 " wakes, %" PRIu64 " retries\n", stats->wakes, stats->retries);
}

static bool is_section(const struct view *view)
{
	return view->kind == NULL && view->is_section;
}

static void print_area(struct output *out, const struct view *view)
{
	say(out, "%s \"%s\" (number %" PRIu64 "): ", view->kind, view->name, view->number);
	say(out, "%s\n", view->content);
}

/* Returns what a waiter waits for. */
static const char *awaited(const struct view *view, enum weiri_side side)
{
	if (view->kind != NULL)
		return "";
	if (is_section(view))
		return " to enter";
	return side == WEIRI_SIDE_ENQUEUE ? " for room" : " for an item";
}

static void print_section(struct output *out, const struct view *view)
{
	say(out, "critical section \"%s\" (number %" PRIu64 "): %s", view->name, view->number,
	    (view->flags & WEIR_QUEUE_FAIR) != 0 ? "fair, " : "");
	if (view->holder == WEIRI_RIGHT_FREE) {
		say(out, "free");
	} else if (view->holder == WEIRI_RIGHT_TAKEN) {
		say(out, "taken, by no thread in particular");
	} else {
		say(out, "taken by ");
		say_thread(out, view->holder);
	}
	say(out, "\n  entered %" PRIu64 " times; %" PRIu64 " waited %.3f s; %" PRIu64 " wakes, %" PRIu64 " retries\n",
	    view->stats.items_out, view->stats.dequeue_waits, seconds(view->stats.dequeue_blocked_ns), view->stats.wakes,
	    view->stats.retries);
}

static void print_waiter(struct output *out, const struct view *view, const struct waiter *waiter, enum weiri_side side)
{
	uint64_t now = weir_now_ns();

	say(out, "  waits%s: ", awaited(view, side));
	if (!waiter->asynchronous) {
		say_thread(out, waiter->thread);
		say(out, ", ");
	}
	if (waiter->verb != NULL)
		say(out, "%s", waiter->verb);
	else if (waiter->is_select)
		say(out, "select of %zu case%s", waiter->count, WEIRI_S(waiter->count));
	else if (is_section(view))
		say(out, "execute");
	else
		say(out, "%s of %s%zu", weiri_queue_verb(waiter->kind),
		    waiter->kind == WEIR_QUEUE_OP_DEQUEUE_UP_TO ? "up to " : "", waiter->count);
	if (waiter->asynchronous) {
		say(out, ", asynchronous, begun by ");
		say_thread(out, waiter->thread);
	}
	say(out, ", for %.1f s\n", seconds(now > waiter->began_ns ? now - waiter->began_ns : 0));
}

static void print_waiters(struct output *out, const struct view *view, enum weiri_side side)
{
	for (size_t i = 0; i < view->waiters[side]; i++)
		print_waiter(out, view, &view->waiter[side][i], side);
	if (view->waiters[side] == MOST_SHOWN)
		say(out, "  and others, of %" PRIu64 "%s\n", view->stats.waiting, view->kind != NULL ? "" : " on both sides");
}

static void print_participant(struct output *out, const struct participant *one)
{
	char as[NAME_SIZE];

	copy_name(as, one->as);
	say(out, "  %s by: ", one->role == WEIR_QUEUE_PRODUCER ? "fed" : "drained");
	say_thread(out, one->thread);
	if (as[0] != '\0')
		say(out, ", as \"%s\"", as);
	say(out, "\n");
}

static void print(struct output *out, const struct view *view)
{
	if (view->kind != NULL)
		print_area(out, view);
	else if (is_section(view))
		print_section(out, view);
	else
		print_state(out, view);
	print_waiters(out, view, WEIRI_SIDE_ENQUEUE);
	print_waiters(out, view, WEIRI_SIDE_DEQUEUE);
	for (size_t i = 0; i < view->participants; i++)
		print_participant(out, &view->participant[i]);
	if (view->participants == MOST_SHOWN)
		say(out, "  and others\n");
}

/* The memory that a dump works with: too much for a small stack. */
struct desk {
	struct output out;
	struct view view;
	struct weiri_stalls stalls;
};

/* -- memory ------------------------------------------------------------------------------------ */

static void print_stall(void *context, const struct weir_stall *stall)
{
	struct output *out = context;
	char name[NAME_SIZE];

	copy_name(name, stall->variable[0] != '\0' ? stall->variable : "(gone)");
	say(out, "memory: ");
	if (stall->thread != 0)
		say_thread(out, stall->thread);
	else
		say(out, "a thread that has ended");
	if (stall->kind == WEIR_STALL_SECTION && stall->read_sections != 0)
		say(out, " has had a read section open for %.1f s\n", seconds(stall->age_ns));
	else if (stall->kind == WEIR_STALL_SECTION)
		say(out, " has been inside one call for %.1f s\n", seconds(stall->age_ns));
	else
		say(out, " holds version %" PRIu64 " of variable \"%s\", %" PRIu64 " bytes, replaced %.1f s ago\n",
		    stall->version, name, stall->bytes, seconds(stall->age_ns));
}

/*
 * Prints nothing if the dump runs in the release of a tensor's memory, where no collection can run.
 */
static void print_stalls(struct desk *desk)
{
	struct output *out = &desk->out;
	size_t found = 0;

	if (weiri_stalls_show(&desk->stalls, OLD_NS, print_stall, out, &found) == WEIR_OK && found > WEIR_STALLS_SHOWN)
		say(out, "memory: and %zu others\n", found - WEIR_STALLS_SHOWN);
}

static enum weir_status dump(struct weiri_record *record, struct desk *desk)
{
	struct weiri_registry_place place = {0};
	struct output *out = &desk->out;
	size_t count = 0, others = 0;

	while (out->status == WEIR_OK && see_next(record, &place, &desk->view)) {
		print(out, &desk->view);
		if (desk->view.kind == NULL && !is_section(&desk->view))
			count++;
		else
			others++;
	}
	print_stalls(desk);
	say(out, "%zu queue%s", count, WEIRI_S(count));
	if (others != 0)
		say(out, ", %zu critical sections, areas and iterators", others);
	say(out, "\n");
	flush(out);
	return out->status;
}

/* Takes pages from the system, because the program may hang in the allocator. */
static enum weir_status dump_to(struct weiri_record *record, int fd)
{
	/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file: mmap(2) wants -1 */
	struct desk *desk = mmap(NULL, sizeof(*desk), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	enum weir_status status;

	if (desk == MAP_FAILED)
		return WEIR_RESOURCE_EXHAUSTED;
	desk->out.fd = fd;
	status = dump(record, desk);
	(void)munmap(desk, sizeof(*desk));
	return status;
}

enum weir_status weir_dump(int fd)
{
	struct weiri_record *record = weiri_record_get();
	int errno_before = errno, mode = weiri_file_mode(fd);
	enum weir_status status = WEIR_INVALID_ARGUMENT;

	if (mode != -1 && (mode & O_ACCMODE) != O_RDONLY)
		status = record != NULL ? dump_to(record, fd) : WEIR_RESOURCE_EXHAUSTED;
	errno = errno_before;
	return status;
}
