/*
 * check_value.c - variables of bytes and of pointers: copies out beside writes and collections,
 * commits that mix kinds, who releases a pointer, and blocks that threads keep.
 *
 * One variable has two words that are always equal. The other has a pointer to an object with one
 * word, which its release function frees; so a pointer that is released too early shows as a use of
 * freed memory, and one that is released twice or never as a double free or a leak. A commit stores
 * one number in both variables, so a snapshot that differs is torn.
 *
 * Besides, the threads may share one tensor, to which each has a reference. It may be changed only by
 * a thread whose reference is the only one left; a change that comes too early shows as a race.
 */
#include <string.h>
#include <weir/read_section.h>
#include <weir/reclaim.h>
#include <weir/value.h>

#include "model/scope.h"
#include "model/setup_end.h"
#include "reclaim/budget.h"
#include "reclaim/magazine.h"
#include "tensor/object.h"

enum { THREADS = 2 };

struct words {
	int64_t left, right;
};

static struct scene {
	weir_var *bytes, *pointer;
	weir_tensor *shared; /* NULL: none */
	bool shares;
	const char *calls[THREADS];
	uint64_t keeps; /* the bytes of a magazine, and of all together */
	int64_t next[THREADS];
	weir_read_section sections[THREADS];
	_Atomic(uint32_t) flag; /* of the program, which uses it beside the variables */
	bool asks;              /* a thread looks whether the other came first */
	bool saw, saw_flag;     /* it did */
} scene;

static int64_t *object_of(int64_t value)
{
	int64_t *object = weiri_allocate(weir_default_allocator(), sizeof(*object), sizeof(*object));

	weir_model_assert(object != NULL);
	*object = value;
	return object;
}

static void release_object(void *context, void *pointer)
{
	(void)context;
	weiri_release(weir_default_allocator(), pointer, sizeof(int64_t), sizeof(int64_t));
}

static struct words words_of(int64_t value)
{
	return (struct words){value, value};
}

static void setup(void *context)
{
	struct weir_var_options bytes = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(struct words)};
	/* Each value counts so much that each write collects. */
	struct weir_var_options pointer = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_POINTER, .size = 64 << 10,
	                                   .release = release_object};
	struct words first = words_of(0);

	(void)context;
	weiri_magazine_most = scene.keeps;
	weir_reclaim_set_budget(scene.keeps != 0 ? WEIRI_MAGAZINES_SHARE * scene.keeps : 8 * (64 << 10));
	weir_model_assert(weir_var_create_value(WEIR_VALUE_OF(first), &bytes, &scene.bytes, NULL) == WEIR_OK);
	weir_model_assert(weir_var_create_value(weir_value_pointer(object_of(0)), &pointer, &scene.pointer, NULL) ==
	                  WEIR_OK);
	setup_ends();
	if (!scene.shares)
		return;
	weir_model_assert(weir_tensor_scalar_i64(1, &scene.shared) == WEIR_OK);
	for (size_t i = 1; i < THREADS; i++)
		(void)weir_tensor_retain(scene.shared);
}

static int64_t next_of(size_t me)
{
	return (int64_t)(10 * (me + 1)) + scene.next[me]++;
}

static void copy_out(void)
{
	struct words words;
	uint64_t number;

	weir_model_assert(weir_var_read_into(scene.bytes, &words, sizeof(words), &number, NULL) == WEIR_OK);
	weir_model_assert(words.left == words.right && (number == 1) == (words.left == 0));
}

static void look(void)
{
	weir_read read;

	weir_model_assert(weir_var_read(scene.bytes, &read) == WEIR_OK);
	weir_model_assert(((const struct words *)read.data)->left == ((const struct words *)read.data)->right);
	weir_read_release(&read);
}

static void look_behind(void)
{
	weir_read read;

	weir_model_assert(weir_var_read(scene.pointer, &read) == WEIR_OK);
	weir_model_assert((*(const int64_t *)read.pointer == 0) == (read.version == 1));
	weir_read_release(&read);
}

static void write_bytes(size_t me)
{
	struct words next = words_of(next_of(me));

	weir_model_assert(weir_var_assign_value(scene.bytes, WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
}

static void write_pointer(size_t me)
{
	int64_t *object = object_of(next_of(me));

	weir_model_assert(weir_var_assign_value(scene.pointer, weir_value_pointer(object), WEIR_NO_DEADLINE, NULL, NULL) ==
	                  WEIR_OK);
}

static enum weir_status add(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	struct words *words = next->room;

	(void)context, (void)current, (void)error;
	words->left++;
	words->right++;
	return WEIR_OK;
}

static void update_bytes(void)
{
	weir_model_assert(weir_var_update_value(scene.bytes, add, NULL, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
}

static enum weir_status refuse(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	(void)context, (void)next, (void)error;
	if (((const struct words *)current->data)->left != 0)
		scene.saw = true;
	return WEIR_CANCELLED;
}

/* An update that refuses what it finds is a read. */
static void refuse_after_the_flag(void)
{
	scene.asks = true;
	weiri_store_seq_cst(&scene.flag, 1u);
	weir_model_assert(weir_var_update_value(scene.bytes, refuse, NULL, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_CANCELLED);
}

/* In the total order of seq_cst operations one of the two looks comes last, and sees what the other thread wrote. */
static void write_before_the_flag(size_t me)
{
	write_bytes(me);
	if (weiri_load_seq_cst(&scene.flag) != 0)
		scene.saw_flag = true;
}

static void begin_section(size_t me)
{
	scene.sections[me] = (weir_read_section){WEIR_READ_SECTION_INIT};
	weir_model_assert(weir_read_section_begin(&scene.sections[me]) == WEIR_OK);
}

/* One number in both, if neither has moved since the beginning. */
static void commit_both(size_t me)
{
	int64_t value = next_of(me);
	struct words words = words_of(value);
	int64_t *object = object_of(value);
	struct weir_value_part parts[2] = {{scene.bytes, 1, WEIR_VALUE_OF(words)},
	                                   {scene.pointer, 1, weir_value_pointer(object)}};
	enum weir_status status = weir_var_commit_values(parts, 2, WEIR_NO_DEADLINE, NULL, NULL);

	weir_model_assert(status == WEIR_OK || status == WEIR_ABORTED);
	if (status == WEIR_ABORTED)
		release_object(NULL, object); /* it is still the caller's */
}

static void snapshot_both(void)
{
	weir_var *vars[2] = {scene.bytes, scene.pointer};
	weir_read reads[2];

	weir_model_assert(weir_var_snapshot(vars, 2, reads, NULL) == WEIR_OK);
	weir_model_assert(((const struct words *)reads[0].data)->left == *(const int64_t *)reads[1].pointer);
	weir_read_release_many(reads, 2);
}

static void look_at_shared(void)
{
	int64_t value = *(const int64_t *)weir_tensor_data(scene.shared);

	weir_model_assert(value == 1 || value == 2);
	weir_tensor_release(scene.shared);
}

static void change_shared_if_sole(void)
{
	if (weiri_value_is_sole(&scene.shared->value)) {
		int64_t *data = (int64_t *)(uintptr_t)weir_tensor_data(scene.shared);

		*data = 2;
	}
	weir_tensor_release(scene.shared);
}

#define LETTERS(LETTER) \
	LETTER('r', "copy the bytes out", copy_out()) \
	LETTER('h', "take a handle on the bytes, look, release it", look()) \
	LETTER('o', "take a handle on the object, look, release it", look_behind()) \
	LETTER('w', "assign bytes", write_bytes(me)) \
	LETTER('u', "update the bytes", update_bytes()) \
	LETTER('y', "set the flag, and refuse to update the bytes", refuse_after_the_flag()) \
	LETTER('j', "assign bytes, and look at the flag", write_before_the_flag(me)) \
	LETTER('b', "begin a read section", begin_section(me)) \
	LETTER('e', "end the read section", (void)weir_read_section_end(&scene.sections[me])) \
	LETTER('p', "assign a pointer, and collect", write_pointer(me)) \
	LETTER('m', "commit both, expecting the first versions", commit_both(me)) \
	LETTER('s', "take a snapshot of both", snapshot_both()) \
	LETTER('l', "look at the tensor to which each thread has a reference, and release it", look_at_shared()) \
	LETTER('x', "change that tensor if the reference is the only one, and release it", change_shared_if_sole()) \
	LETTER('f', "free what was retired", (void)weir_reclaim_flush(0))

static void call(size_t me, char what)
{
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.calls[me], call);
}

static void finish(void *context)
{
	(void)context;
	weir_model_assert(!scene.asks || scene.saw || scene.saw_flag);
	weir_model_assert(weir_var_destroy(scene.bytes, NULL) == WEIR_OK);
	weir_model_assert(weir_var_destroy(scene.pointer, NULL) == WEIR_OK);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
	if (weiri_record_mine != NULL)
		weiri_magazine_end(weiri_record_mine);
	/* A thread that was stopped for ever may have counted what it does not keep, or still have something. */
	weir_model_assert(weiri_load_relaxed(&weiri_budget.kept) >= 0);
}

static const struct row {
	const char *name;
	const char *calls[THREADS];
	uint64_t keeps;
	bool shares;
} rows[] = {
	{"value_copy_beside_write_and_collection", {"r", "wf"}, 0, false},
	{"value_handle_beside_write_and_collection", {"h", "wf"}, 0, false},
	{"value_pointer_beside_write", {"o", "p"}, 0, false},
	{"value_2_updates", {"u", "u"}, 0, false},
	/*
	 * While the section is open, an era passes, and a read announces the new one. So the update goes the
	 * short way with an old hi. The other thread replaces the new version before it has its stamp.
	 */
	{"value_update_in_a_section_beside_write_and_collection", {"bphue", "wf"}, 0, false},
	/* A thread's first read takes no slot, so the update comes after another read. */
	{"value_update_that_refuses_and_assign_around_a_flag", {"hy", "j"}, 0, false},
	{"value_mixed_commit_beside_snapshot", {"m", "s"}, 0, false},
	{"value_mixed_commit_beside_write_of_bytes", {"m", "w"}, 0, false},
	{"value_mixed_commit_beside_write_of_pointer", {"m", "p"}, 0, false},
	{"value_2_mixed_commits", {"m", "m"}, 0, false},
	{"value_kept_blocks_beside_the_end_of_a_thread", {"wfw", "wfw"}, 1024, false},
	{"value_kept_blocks_beside_copy", {"rr", "wfw"}, 1024, false},
	{"value_2_threads_ask_for_the_last_unit", {"wf", "wf"}, 1024, false},
	{"value_2_releases_of_a_tensor", {"l", "l"}, 0, true},
	{"value_change_of_a_tensor_beside_its_release", {"x", "l"}, 0, true},
};

static struct scope_plan prepare(size_t index)
{
	scene = (struct scene){.keeps = rows[index].keeps, .shares = rows[index].shares};
	memcpy(scene.calls, rows[index].calls, sizeof(scene.calls));
	return (struct scope_plan){.program = {rows[index].name, THREADS, &scene, sizeof(scene), setup, thread, finish},
	                           .executions = 20000,
	                           .stopped = 20};
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(rows) / sizeof(rows[0]));
}
