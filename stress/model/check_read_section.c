/*
 * check_read_section.c - read sections beside writes and collections: what a peek or a snapshot has
 * shown exists until the end of the section, and a snapshot is of one instant.
 *
 * The reads, snapshots, assigns and commits must be linearizable (judged.h). Values are filled just before they are
 * published, so a read of a freed one shows as a race or a use after free. In finish() everything
 * must be freed.
 */
#include <weir/read_section.h>

#include "model/judged.h"
#include "model/variable_scopes.h"
#include "reclaim/admit.h"
#include "reclaim/announce.h"
#include "reclaim/settle.h"
#include "var/install.h"
#include "var/tensor_value.h"

enum { BEGIN, PEEK, END, FIND, SNAPSHOT, ASSIGN, COMMIT };

static struct scene {
	weir_var *x, *y;
	enum size size;
	size_t writes;
	_Atomic(uint32_t) flag;
	int64_t saw[2];
	weir_read_section inner; /* of a signal handler */
	weir_read kept;
	weir_read_section open; /* of `reader`, which the second thread owns */
	struct weiri_record *reader;
} scene;

static weir_tensor *number(int64_t value)
{
	return number_of_size(value, scene.size);
}

static void setup(void *context)
{
	(void)context;
	weir_reclaim_set_budget(8 * LARGE * sizeof(int64_t));
	scene.x = variable_of_size(0, scene.size);
	judged_as_variables();
	setup_ends();
}

static void setup_two(void *context)
{
	setup(context);
	scene.y = variable_of_size(0, scene.size);
	setup_ends();
}

/* An aborted commit's version is at the head. */
static void setup_aborted(void *context)
{
	struct weiri_version *version;

	setup(context);
	version = weiri_version_of_tensor(weiri_record_get(), scene.x, number(9));
	weiri_version_set_base(version, weiri_load_relaxed(&scene.x->head));
	weiri_store_relaxed(&version->stamp, WEIRI_STAMP_ABORTED);
	weiri_store_relaxed(&scene.x->head, version);
}

static void setup_two_aborted(void *context)
{
	setup_aborted(context);
	scene.y = variable_of_size(0, scene.size);
	setup_ends();
}

static void finish(void *context)
{
	(void)context;
	weir_var_destroy(scene.x, NULL);
	weir_var_destroy(scene.y, NULL);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static void assign_to(weir_var *var, int64_t value)
{
	weir_tensor *tensor = number(value);
	weir_read published;

	weir_model_call_begins(ASSIGN);
	weir_model_assert(weir_var_assign(var, tensor, WEIR_NO_DEADLINE, &published, NULL) == WEIR_OK);
	weir_model_call_ends(ASSIGN);
	judged_write(var == scene.y, published.version, (uint64_t)value);
	weir_read_release(&published);
	weir_tensor_release(tensor);
}

static void assign(int64_t value)
{
	assign_to(scene.x, value);
}

static void begin_again(weir_read_section *section)
{
	weir_model_call_begins(BEGIN);
	weir_model_assert(weir_read_section_begin(section) == WEIR_OK);
	weir_model_call_ends(BEGIN);
}

static weir_read_section begun(void)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};

	(void)weiri_record_get(); /* the bounds apply to a thread that has a record */
	begin_again(&section);
	return section;
}

static void begin_and_end(weir_read_section *section)
{
	weir_model_assert(weir_read_section_begin(section) == WEIR_OK);
	weir_model_assert(weir_read_section_end(section) == WEIR_OK);
}

static void end(weir_read_section *section)
{
	weir_model_call_begins(END);
	weir_model_assert(weir_read_section_end(section) == WEIR_OK);
	weir_model_call_ends(END);
}

/* What was read exists. A value that is not used would not be loaded. */
static void look_at(const weir_read *read)
{
	weir_model_assert(value_of(read) >= 0);
}

static const weir_read *judged_as_read(const weir_read *read)
{
	weir_model_assert(read != NULL);
	judged_read(0, read->version, (uint64_t)value_of(read));
	weir_model_assert((int64_t)read->version == value_of(read) + 1);
	return read;
}

static const weir_read *peek(const weir_read_section *section)
{
	const weir_read *read;

	weir_model_call_begins(PEEK);
	read = weir_read_section_peek(section, scene.x);
	weir_model_call_ends(PEEK);
	return judged_as_read(read);
}

static const weir_read *find(const weir_read_section *section)
{
	const weir_read *read;

	weir_model_call_begins(FIND);
	read = weir_read_section_find(section, scene.x);
	weir_model_call_ends(FIND);
	return judged_as_read(read);
}

static void write_x(void)
{
	for (size_t i = 1; i <= scene.writes; i++)
		assign((int64_t)i);
}

typedef const weir_read *look(const weir_read_section *section);

/* What was shown first is there while the section shows more, which is no older. */
static void look_twice(look *one, look *other)
{
	weir_read_section section = begun();
	const weir_read *first = one(&section);
	int64_t value = value_of(first);

	weir_model_assert(value_of(other(&section)) >= value);
	weir_model_assert(value_of(first) == value);
	end(&section);
}

static void peeks_beside_assigns(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		write_x();
	else
		look_twice(peek, peek);
}

static void find_beside_assigns(void *context, size_t who)
{
	weir_read_section section;

	(void)context;
	if (who == 0) {
		write_x();
		return;
	}
	section = begun();
	(void)find(&section);
	end(&section);
}

/* An inner section and a handle come and go. */
static void nested_beside_assigns(void *context, size_t who)
{
	weir_read_section outer, inner;
	const weir_read *first;
	weir_read read;

	(void)context;
	if (who == 0) {
		write_x();
		return;
	}
	outer = begun();
	first = peek(&outer);
	inner = begun();
	weir_model_assert(weir_var_read(scene.x, &read) == WEIR_OK);
	end(&inner);
	look_at(first);
	end(&outer);
	look_at(&read);
	weir_read_release(&read);
}

/* The thread writes in its section, and so collects there. */
static void write_in_a_section(void *context, size_t who)
{
	weir_read_section section;
	const weir_read *first;

	(void)context;
	section = begun();
	first = peek(&section);
	assign((int64_t)first->version);
	look_at(first);
	end(&section);
	(void)who;
}

static void write_in_a_section_beside_a_peek(void *context, size_t who)
{
	if (who == 0)
		write_in_a_section(context, who);
	else
		look_twice(peek, peek);
}

/* The thread has ended this section before, so the inlined begin and end do what the library's do. */
static void begin_again_and_peek(size_t sections)
{
	weir_read_section section = begun();
	const weir_read *read;

	end(&section);
	for (size_t i = 0; i < sections; i++) {
		begin_again(&section);
		read = peek(&section);
		weir_model_assert(weir_read_section_begin(&section) == WEIR_FAILED_PRECONDITION);
		look_at(read);
		end(&section);
		weir_model_assert(weir_read_section_peek(&section, scene.x) == NULL);
		weir_model_assert(weir_read_section_end(&section) == WEIR_FAILED_PRECONDITION);
	}
}

static void begin_again_beside_assigns(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		write_x();
	else
		begin_again_and_peek(1);
}

static void begin_twice_again_beside_assigns(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		write_x();
	else
		begin_again_and_peek(2);
}

/*
 * A read by a handle announces the next era in a section, and the section goes on with what it has shown. A collector that
 * sees this announcement, and a section that begins later, or is given up as the era moves on, must see the first one's end.
 */
static void begin_again_after_a_read(size_t who, uint64_t (*before_it_begins)(void))
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	const weir_read *first;
	weir_read read;

	if (who == 0) {
		if (weiri_load_relaxed(&scene.flag) != 0)
			write_x();
		return;
	}
	weir_model_assert(weir_read_section_begin(&section) == WEIR_OK);
	first = weir_read_section_peek(&section, scene.x);
	weiri_store_relaxed(&scene.flag, 1u); /* the other thread comes later, and knows nothing of this one */
	weir_model_assert(weir_var_read(scene.x, &read) == WEIR_OK);
	look_at(first);
	weir_model_assert(weir_read_section_end(&section) == WEIR_OK);
	if (before_it_begins != NULL)
		(void)before_it_begins();
	begin_and_end(&section);
	weir_read_release(&read);
}

static void begin_again_after_a_read_in_the_same_era(void *context, size_t who)
{
	(void)context;
	begin_again_after_a_read(who, NULL);
}

static void begin_again_after_a_read_in_a_new_era(void *context, size_t who)
{
	(void)context;
	begin_again_after_a_read(who, weiri_era_begin);
}

/* The writer waits until the section ends, and is woken then: it does not look again by itself. */
static void leave_no_budget(size_t who)
{
	if (who != 0)
		return;
	weiri_reclaim_look_again_ns = WEIR_NO_DEADLINE;
	weir_reclaim_set_budget(1);
}

static void over_the_budget(void *context, size_t who)
{
	leave_no_budget(who);
	peeks_beside_assigns(context, who);
}

/* Of the two looks the one that comes last sees the other thread's write. */
static void look_around_a_flag(size_t who, look *one)
{
	if (who == 0) {
		weir_read_section section = begun();

		weiri_store_seq_cst(&scene.flag, 1u);
		scene.saw[0] = value_of(one(&section));
		end(&section);
	} else {
		assign(1);
		scene.saw[1] = weiri_load_seq_cst(&scene.flag);
	}
}

static void peek_around_a_flag(void *context, size_t who)
{
	(void)context;
	look_around_a_flag(who, peek);
}

static void one_saw_the_other(void *context)
{
	weir_model_assert(scene.saw[0] == 1 || scene.saw[1] == 1);
	finish(context);
}

static void begin_again_over_the_budget(void *context, size_t who)
{
	leave_no_budget(who);
	begin_again_beside_assigns(context, who);
}

/* The thread is in its section when the writer comes, which waits for the end. */
static void end_beside_a_writer_that_waits(void *context, size_t who)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};

	(void)context;
	leave_no_budget(who);
	if (who == 0) {
		if (weiri_load_acquire(&scene.flag) != 0)
			write_x();
		return;
	}
	weir_model_assert(weir_read_section_begin(&section) == WEIR_OK);
	weiri_store_release(&scene.flag, 1u);
	end(&section);
}

/* The thread ends with its section open. */
static void end_with_the_thread(void *context, size_t who)
{
	weir_read_section section;

	(void)context;
	if (who == 0) {
		write_x();
		return;
	}
	section = begun();
	(void)peek(&section);
}

/* -- signal handlers, which interrupt sections that begin again -------------------------------- */

/* Membarriers have had their turns, so announcements go on counting: as in check_reclaim.c. */
static void setup_unsettled(void *context)
{
	struct weiri_record *mine = weiri_record_get(), *other = weiri_record_register();

	setup(context);
	weiri_section_leave(other, weiri_section_enter(other));
	weiri_record_mine = mine;
	weiri_settle_pause_ns = 1;
	(void)weiri_era_begin();
	weiri_settle_mine(mine, weiri_era_begin());
}

/* An open section reserves the first era alone, and the newest version was born in the next one. */
static void setup_with_open_section(void *context)
{
	struct weiri_record *mine = weiri_record_get();

	setup(context);
	scene.reader = weiri_record_register();
	begin_and_end(&scene.inner);
	weir_model_assert(weir_read_section_begin(&scene.open) == WEIR_OK);
	weiri_record_mine = mine;
	(void)weiri_era_begin();
	assign_tensor(scene.x, number(1));
	weiri_announce_nothing(scene.reader);
}

/* What the section has shown stays, whatever the handler did. */
static void begin_again_interrupted(void (*handler)(void))
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	const weir_read *read;

	begin_and_end(&section);
	begin_and_end(&scene.inner);
	weir_model_interrupt(handler);
	weir_model_assert(weir_read_section_begin(&section) == WEIR_OK);
	read = weir_read_section_peek(&section, scene.x);
	look_at(read);
	weir_model_assert(weir_read_section_end(&section) == WEIR_OK);
	weir_model_interrupt(NULL);
}

static void peek_in_a_handler(void)
{
	weir_model_assert(weir_read_section_begin(&scene.inner) == WEIR_OK);
	look_at(weir_read_section_peek(&scene.inner, scene.x));
	weir_model_assert(weir_read_section_end(&scene.inner) == WEIR_OK);
}

static void interrupted_by_a_peek(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		write_x();
	else
		begin_again_interrupted(peek_in_a_handler);
}

/*
 * Where the other thread replaces and frees what the section found, before the peek knows of the new era, and the handler
 * then reserves that era, the peek must not take the handler's reservation for its own.
 */
static void peek_interrupted_by_a_peek(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		assign_tensor(scene.x, number(2));
		(void)weir_reclaim_flush(0);
		return;
	}
	weiri_record_mine = scene.reader;
	weir_model_interrupt(peek_in_a_handler);
	look_at(weir_read_section_peek(&scene.open, scene.x));
	weir_model_interrupt(NULL);
	weir_model_assert(weir_read_section_end(&scene.open) == WEIR_OK);
}

/* What the child of a fork finds, and has done when it begins a thread, which writes. */
static void fork_in_a_handler(void)
{
	weiri_announce_after_fork(weiri_record_get());
	weiri_store_release(&scene.flag, 1u);
}

static void interrupted_by_a_fork(void *context, size_t who)
{
	(void)context;
	if (who != 0)
		begin_again_interrupted(fork_in_a_handler);
	else if (weiri_load_acquire(&scene.flag) != 0)
		write_x();
}

/* The handler replaces the version, reserves the era of the new one in its own section, and keeps it by a slot. */
static void assign_and_keep_in_a_handler(void)
{
	weir_model_assert(weir_read_section_begin(&scene.inner) == WEIR_OK);
	(void)weiri_era_begin();
	assign_tensor(scene.x, large_number(1));
	weir_model_assert(weir_var_snapshot(&scene.x, 1, &scene.kept, NULL) == WEIR_OK);
	weir_model_assert(weir_read_section_end(&scene.inner) == WEIR_OK);
	weiri_store_relaxed(&scene.flag, 1u); /* the other thread comes later, and knows nothing of this one */
}

static void interrupted_by_an_assign(void *context, size_t who)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};

	(void)context;
	if (who == 0) {
		if (weiri_load_relaxed(&scene.flag) != 0)
			assign_tensor(scene.x, large_number(2));
		return;
	}
	begin_and_end(&section);
	begin_and_end(&scene.inner);
	weir_model_interrupt(assign_and_keep_in_a_handler);
	weir_model_assert(weir_read_section_begin(&section) == WEIR_OK);
	weir_model_interrupt(NULL);
	weir_model_assert(weir_read_section_end(&section) == WEIR_OK);
	if (scene.kept.tensor == NULL)
		return;
	weir_model_assert(value_of(&scene.kept) != 0);
	weir_read_release(&scene.kept);
}

/* -- snapshots --------------------------------------------------------------------------------- */

static void judge_both(enum history_kind kind, struct history_part x, struct history_part y)
{
	weir_model_answer_parts(kind, 0, 0, (struct history_part[]){x, y}, 2);
}

/* Shows x and y. */
static void show_both(const weir_read_section *section, const weir_read *reads[2])
{
	weir_var *const vars[] = {scene.x, scene.y};

	weir_model_call_begins(SNAPSHOT);
	weir_model_assert(weir_read_section_snapshot(section, vars, 2, reads, NULL) == WEIR_OK);
	weir_model_call_ends(SNAPSHOT);
	judge_both(HISTORY_READ, (struct history_part){0, reads[0]->version, HISTORY_NONE, (uint64_t)value_of(reads[0])},
	           (struct history_part){1, reads[1]->version, HISTORY_NONE, (uint64_t)value_of(reads[1])});
}

static const weir_read *show_x(const weir_read_section *section)
{
	const weir_read *read;

	weir_model_call_begins(SNAPSHOT);
	weir_model_assert(weir_read_section_snapshot(section, &scene.x, 1, &read, NULL) == WEIR_OK);
	weir_model_call_ends(SNAPSHOT);
	return judged_as_read(read);
}

/* The bound of a snapshot holds where nothing is written. */
static void snapshots_alone(void *context, size_t who)
{
	weir_read_section section = begun();
	const weir_read *reads[2];

	(void)context, (void)who;
	show_both(&section, reads);
	end(&section);
}

/* The greater bound holds where nothing is written any more: stamps that are ahead of the clock, and an era that begins. */
static void snapshots_after_assigns(void *context, size_t who)
{
	weir_read_section section = begun();
	const weir_read *reads[2];

	(void)context, (void)who;
	assign_to(scene.y, 1);
	show_both(&section, reads);
	assign_to(scene.x, 1);
	weiri_store_relaxed(&weiri_record_get()->snapshots_ahead, 0u);
	(void)weiri_era_begin();
	show_both(&section, reads);
	weir_model_assert(value_of(reads[0]) == 1 && value_of(reads[1]) == 1);
	end(&section);
}

/* x is written before y. The section began before the writes, or between them. */
static void snapshot_beside_assigns_in_order(void *context, size_t who)
{
	weir_read_section section;
	const weir_read *reads[2];

	(void)context;
	if (who == 0) {
		assign_to(scene.x, 1);
		assign_to(scene.y, 1);
		return;
	}
	section = begun();
	show_both(&section, reads);
	weir_model_assert(value_of(reads[1]) <= value_of(reads[0]));
	end(&section);
}

/*
 * The section began before the snapshot: a peek has shown what was there, and goes on doing so. The version that was
 * newest when the snapshot began may have been replaced and collected, and so may its successor.
 */
static void peek_and_snapshot_beside_assigns(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		write_x();
	else
		look_twice(peek, show_x);
}

static void snapshot_and_peek_beside_assigns(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		write_x();
	else
		look_twice(show_x, peek);
}

/* As in check_var.c: the version that is assigned is born in an era that the snapshot, which advances the clock, lacks. */
static void snapshot_ahead_beside_assigns(void *context, size_t who)
{
	if (who == 0)
		(void)weiri_era_begin();
	else
		weiri_store_relaxed(&weiri_record_get()->snapshots_ahead, 1u);
	snapshot_and_peek_beside_assigns(context, who);
}

static void tick(void)
{
	weiri_clock_advance(weiri_load_seq_cst(&weiri_clock));
}

/*
 * Others advance the clock. So the snapshot finds a stamp that it includes on a version that was born in an era that it
 * has not reserved yet.
 */
static void snapshot_beside_assigns_and_ticks(void *context, size_t who)
{
	if (who != 0) {
		snapshot_and_peek_beside_assigns(context, who);
		return;
	}
	(void)weiri_era_begin();
	for (size_t i = 1; i <= scene.writes; i++) {
		assign((int64_t)i);
		tick();
	}
}

static void commit_both(void)
{
	weir_tensor *one = number(1);
	struct weir_commit_part parts[] = {{scene.x, 1, one}, {scene.y, 1, one}};

	weir_model_call_begins(COMMIT);
	weir_model_assert(weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weir_model_call_ends(COMMIT);
	judge_both(HISTORY_WRITE, (struct history_part){0, 1, 2, 1}, (struct history_part){1, 1, 2, 1});
	weir_tensor_release(one);
}

static void snapshot_beside_commit(void *context, size_t who)
{
	weir_read_section section;
	const weir_read *reads[2];

	(void)context;
	if (who == 0) {
		commit_both();
		return;
	}
	section = begun();
	show_both(&section, reads);
	weir_model_assert(value_of(reads[0]) == value_of(reads[1]));
	end(&section);
}

/* The snapshot advances the clock at once, before it reads the heads. */
static void snapshot_ahead_beside_commit(void *context, size_t who)
{
	if (who == 1)
		weiri_store_relaxed(&weiri_record_get()->snapshots_ahead, 1u);
	snapshot_beside_commit(context, who);
}

/* Another snapshot advances the clock to the stamp that the commit may get. */
static void snapshot_beside_commit_and_tick(void *context, size_t who)
{
	if (who == 2)
		tick();
	else
		snapshot_beside_commit(context, who);
}

/* The thread has peeked before. So its snapshot may find a cell that a reader has passed already. */
static void peek_and_snapshot_beside_commit_and_tick(void *context, size_t who)
{
	weir_read_section section;

	if (who == 1) {
		section = begun();
		(void)peek(&section);
		end(&section);
	}
	snapshot_beside_commit_and_tick(context, who);
}

/* The section is older than the commit, which may be stopped, and a third thread frees what it can. */
static void peek_and_snapshot_beside_commit_and_collector(void *context, size_t who)
{
	weir_read_section section;
	const weir_read *first, *reads[2];

	if (who != 1) {
		if (who == 0)
			commit_both();
		else
			(void)weir_reclaim_flush(0);
		return;
	}
	(void)context;
	section = begun();
	first = peek(&section);
	show_both(&section, reads);
	weir_model_assert(value_of(reads[0]) == value_of(reads[1]));
	weir_model_assert(value_of(first) <= value_of(reads[0]));
	end(&section);
}

static void snapshot_around_a_flag(void *context, size_t who)
{
	(void)context;
	look_around_a_flag(who, show_x);
}

/* A planted fault: a snapshot that shows one part of a commit and not the other. */
static void half_of_a_commit(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		commit_both();
		return;
	}
	weir_model_call_begins(SNAPSHOT);
	weir_model_call_ends(SNAPSHOT);
	judge_both(HISTORY_READ, (struct history_part){0, 2, HISTORY_NONE, HISTORY_NONE},
	           (struct history_part){1, 1, HISTORY_NONE, HISTORY_NONE});
}

/* A planted fault: what was shown is used after the end of the section. */
static void use_after_the_end(void *context, size_t who)
{
	weir_read_section section;
	const weir_read *read;

	(void)context;
	if (who == 0) {
		write_x();
		return;
	}
	section = begun();
	read = peek(&section);
	end(&section);
	weir_model_assert(value_of(read) >= 0);
}

enum progress { WAITS, GOES_ON };
enum { SYMMETRIC = 6 }; /* this many scopes, from the first, are also run with membarrier refused */

static const struct scope {
	const char *name;
	size_t threads;
	void (*thread)(void *, size_t);
	void (*setup)(void *);
	void (*finish)(void *);
	size_t writes;
	enum size size;
	enum progress progress; /* while a thread is stopped */
} scopes[] = {
	{"read_section_peek_x2_beside_1_assign_and_collect", 2, peeks_beside_assigns, setup, finish, 1, LARGE_VALUES,
     GOES_ON},
	{"read_section_peek_x2_beside_2_assigns_and_collects", 2, peeks_beside_assigns, setup, finish, 2, LARGE_VALUES,
     GOES_ON},
	{"read_section_peek_x2_beside_3_assigns_over_the_budget", 2, over_the_budget, setup, finish, 3, LARGE_VALUES,
     WAITS},
	{"read_section_again_beside_2_assigns_over_the_budget", 2, begin_again_over_the_budget, setup, finish, 2,
     LARGE_VALUES, WAITS},
	{"read_section_end_beside_2_assigns_that_wait_for_it", 2, end_beside_a_writer_that_waits, setup, finish, 2,
     LARGE_VALUES, WAITS},
	{"read_section_again_beside_2_assigns_and_collects", 2, begin_again_beside_assigns, setup, finish, 2, LARGE_VALUES,
     GOES_ON},
	{"read_section_again_beside_1_assign", 2, begin_again_beside_assigns, setup, finish, 1, SMALL_VALUES, GOES_ON},
	{"read_section_again_x2_beside_1_assign_and_collect", 2, begin_twice_again_beside_assigns, setup, finish, 1,
     LARGE_VALUES, GOES_ON},
	{"read_section_peek_x2_beside_2_assigns", 2, peeks_beside_assigns, setup, finish, 2, SMALL_VALUES, GOES_ON},
	{"read_section_find_beside_2_assigns", 2, find_beside_assigns, setup, finish, 2, SMALL_VALUES, GOES_ON},
	{"read_section_aborted_peek_x2_beside_1_assign_and_collect", 2, peeks_beside_assigns, setup_aborted, finish, 1,
     LARGE_VALUES, GOES_ON},
	{"read_section_in_a_section_beside_2_assigns_and_collects", 2, nested_beside_assigns, setup, finish, 2,
     LARGE_VALUES, GOES_ON},
	{"read_section_with_an_assign_and_collect_beside_peek_x2", 2, write_in_a_section_beside_a_peek, setup, finish, 0,
     LARGE_VALUES, GOES_ON},
	{"read_section_peek_and_assign_around_a_flag", 2, peek_around_a_flag, setup, one_saw_the_other, 0, SMALL_VALUES,
     GOES_ON},
	{"read_section_that_ends_with_its_thread_beside_2_assigns", 2, end_with_the_thread, setup, finish, 2, SMALL_VALUES,
     GOES_ON},
	{"read_section_2_snapshots_of_2", 2, snapshots_alone, setup_two, finish, 0, SMALL_VALUES, GOES_ON},
	{"read_section_2_snapshots_of_2_after_assigns", 1, snapshots_after_assigns, setup_two, finish, 0, SMALL_VALUES,
     GOES_ON},
	{"read_section_aborted_2_snapshots_of_2_after_assigns", 1, snapshots_after_assigns, setup_two_aborted, finish, 0,
     SMALL_VALUES, GOES_ON},
	{"read_section_snapshot_of_2_beside_2_assigns_in_order", 2, snapshot_beside_assigns_in_order, setup_two, finish, 0,
     SMALL_VALUES, GOES_ON},
	{"read_section_snapshot_of_2_beside_commit_of_2", 2, snapshot_beside_commit, setup_two, finish, 0, SMALL_VALUES,
     GOES_ON},
	{"read_section_snapshot_of_2_beside_commit_of_2_and_collect", 2, snapshot_beside_commit, setup_two, finish, 0,
     LARGE_VALUES, GOES_ON},
	{"read_section_snapshot_of_2_beside_commit_of_2_and_tick", 3, snapshot_beside_commit_and_tick, setup_two, finish, 0,
     SMALL_VALUES, GOES_ON},
	{"read_section_peek_and_snapshot_of_2_beside_commit_of_2_and_tick", 3, peek_and_snapshot_beside_commit_and_tick,
     setup_two, finish, 0, SMALL_VALUES, GOES_ON},
	{"read_section_peek_and_snapshot_of_2_beside_commit_of_2_and_collector", 3,
     peek_and_snapshot_beside_commit_and_collector, setup_two, finish, 0, SMALL_VALUES, GOES_ON},
	{"read_section_peek_and_snapshot_beside_2_assigns_and_collects", 2, peek_and_snapshot_beside_assigns, setup, finish,
     2, LARGE_VALUES, GOES_ON},
	{"read_section_snapshot_and_peek_beside_2_assigns_and_collects", 2, snapshot_and_peek_beside_assigns, setup, finish,
     2, LARGE_VALUES, GOES_ON},
	{"read_section_snapshot_ahead_beside_a_new_era_2_assigns_and_collects", 2, snapshot_ahead_beside_assigns, setup,
     finish, 2, LARGE_VALUES, GOES_ON},
	{"read_section_snapshot_beside_2_assigns_and_ticks_and_collects", 2, snapshot_beside_assigns_and_ticks, setup,
     finish, 2, LARGE_VALUES, GOES_ON},
	{"read_section_snapshot_ahead_of_2_beside_commit_of_2", 2, snapshot_ahead_beside_commit, setup_two, finish, 0,
     SMALL_VALUES, GOES_ON},
	{"read_section_aborted_snapshot_and_peek_beside_1_assign", 2, snapshot_and_peek_beside_assigns, setup_aborted,
     finish, 1, SMALL_VALUES, GOES_ON},
	{"read_section_snapshot_and_assign_around_a_flag", 2, snapshot_around_a_flag, setup, one_saw_the_other, 0,
     SMALL_VALUES, GOES_ON},
	{"read_section_again_after_a_read_by_a_handle_beside_1_assign_and_collect", 2,
     begin_again_after_a_read_in_the_same_era, setup, finish, 1, LARGE_VALUES, GOES_ON},
	{"read_section_again_after_a_read_by_a_handle_and_a_new_era_beside_1_assign_and_collect", 2,
     begin_again_after_a_read_in_a_new_era, setup, finish, 1, LARGE_VALUES, GOES_ON},
	{"read_section_again_interrupted_by_a_peek_beside_2_assigns_and_collects", 2, interrupted_by_a_peek, setup, finish,
     2, LARGE_VALUES, GOES_ON},
	{"read_section_peek_interrupted_by_a_peek_beside_1_assign_and_flush", 2, peek_interrupted_by_a_peek,
     setup_with_open_section, finish, 0, SMALL_VALUES, GOES_ON},
	{"read_section_again_interrupted_by_a_fork_beside_1_assign_and_collect", 2, interrupted_by_a_fork, setup, finish, 1,
     LARGE_VALUES, GOES_ON},
	{"read_section_again_interrupted_by_an_assign_beside_1_assign_and_collect", 2, interrupted_by_an_assign,
     setup_unsettled, finish, 1, SMALL_VALUES, GOES_ON},
};

static struct weir_model_program prepare(const struct scope *scope)
{
	scene = (struct scene){.writes = scope->writes,
	                       .size = scope->size,
	                       .inner = {WEIR_READ_SECTION_INIT},
	                       .open = {WEIR_READ_SECTION_INIT}};
	return (struct weir_model_program){scope->name,  scope->threads, &scene,       sizeof(scene),
	                                   scope->setup, scope->thread,  scope->finish};
}

static const char *const calls[WEIR_MODEL_CALLS + 1] = {"begin", "peek", "end", "find", "snapshot", NULL};

/* As in check_var.c: the bounds of the header, less the steps that cannot occur in a scope. */
static void bounds_of(const struct scope *scope, int has_fences, uint32_t bounds[WEIR_MODEL_CALLS])
{
	uint32_t rounds = scope->size == LARGE_VALUES ? 2 : 0, wake = scope->progress == WAITS ? 3 : 0,
			 fence = has_fences != 0;

	bounds[BEGIN] = 16;
	bounds[PEEK] = 13 + 4 * rounds;
	bounds[END] = wake != 0 ? 23 : 5 + 2 * fence;
	bounds[FIND] = 9 + 4 * rounds;
	if (scope->thread == snapshots_alone)
		bounds[SNAPSHOT] = 3 + 3 * 2;
	if (scope->thread == snapshots_after_assigns)
		bounds[SNAPSHOT] = 20 + 11 * 2;
}

static int check_planted(void)
{
	const struct scope late = {
		"read_section_use_after_its_end", 2, use_after_the_end, setup, finish, 2, LARGE_VALUES, GOES_ON};
	const struct scope half = {
		"read_section_snapshot_of_half_a_commit", 2, half_of_a_commit, setup_two, finish, 0, SMALL_VALUES, GOES_ON};
	struct weir_model_program program = prepare(&late);
	int bad = scope_finds(&program, "data race");

	program = prepare(&half);
	return bad | scope_finds(&program, judged_wrong);
}

static int check(const struct scope *scope, int symmetric, uint64_t executions)
{
	struct weir_model_program program = prepare(scope);
	uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	int bad;

	scope_symmetric(symmetric);
	bounds_of(scope, symmetric, bounds);
	bad = scope_within(&program, executions, calls, bounds);
	if (!symmetric && scope->progress == GOES_ON)
		bad |= scope_stops(&program, scope_long() ? 5000 : 30, calls, bounds);
	return bad;
}

/* Enough for what complete.tsv lists, and for what stress/model/killers.tsv says of the orders in the header. */
static uint64_t most_executions(const struct scope *scope)
{
	if (scope_long())
		return 10000000;
	if (scope->thread == begin_again_after_a_read_in_a_new_era)
		return 80000;
	return scope->thread == interrupted_by_a_fork || scope->thread == interrupted_by_an_assign ? 20000 : 8000;
}

int main(int argc, char **argv)
{
	int bad;

	scope_arguments(argc, argv);
	bad = check_planted();
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		bad |= check(&scopes[i], 0, most_executions(&scopes[i]));
	for (size_t i = 0; i < SYMMETRIC; i++)
		bad |= check(&scopes[i], 1, scope_long() ? 10000000 : 5000);
	return bad;
}
