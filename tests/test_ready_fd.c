/*
 * test_ready_fd.c - the word and the count of a ready descriptor, while a thread is stopped before
 * any instruction of a settle.
 */
#include <criterion/criterion.h>

#include <poll.h>

#include "stepped.h"
#include "sync/ready_fd.h"

/* The condition: `level` is above 0. */
struct scene {
	struct weiri_ready_fd ready_fd;
	_Atomic(int) level;
	_Atomic(int) looks; /* at the level, by all threads */
};

static bool above_0(void *context)
{
	struct scene *scene = context;
	bool holds = weiri_load_relaxed(&scene->level) > 0;

	(void)weiri_fetch_add_relaxed(&scene->looks, 1);
	return holds;
}

static void settle(struct scene *scene)
{
	weiri_fence_seq_cst();
	weiri_ready_fd_settle(&scene->ready_fd, above_0, scene);
}

static void rise(void *context)
{
	struct scene *scene = context;

	(void)weiri_fetch_add_relaxed(&scene->level, 1);
	weiri_fence_seq_cst();
	weiri_ready_fd_raise(&scene->ready_fd, above_0, scene);
}

static void fall(void *context)
{
	struct scene *scene = context;

	(void)weiri_fetch_sub_relaxed(&scene->level, 1);
	settle(scene);
}

static bool is_lit(const struct scene *scene)
{
	struct pollfd entry = {scene->ready_fd.event.fd, POLLIN, 0};

	return poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

static struct scene scene_at(int level)
{
	struct scene scene = {.level = 0};

	weiri_ready_fd_init(&scene.ready_fd);
	cr_assert_geq(scene.ready_fd.event.fd, 0);
	weiri_store_relaxed(&scene.level, level);
	settle(&scene);
	cr_assert_eq(is_lit(&scene), level > 0);
	return scene;
}

static uint64_t takers(const struct scene *scene)
{
	return weiri_load_relaxed(&scene->ready_fd.word) % WEIRI_READY_FD_SPARE / WEIRI_READY_FD_TAKER;
}

/* Everything agrees: no thread is inside, and nothing is left to take. */
static void end(struct scene *scene, size_t at)
{
	cr_assert_eq(is_lit(scene), above_0(scene), "stopped at %zu", at);
	while (above_0(scene))
		fall(scene);
	settle(scene);
	cr_assert(!is_lit(scene), "stopped at %zu", at);
	cr_assert(weiri_ready_fd_is_dark(&scene->ready_fd), "stopped at %zu: something is left to take", at);
	cr_assert_eq(takers(scene), 0);
	weiri_ready_fd_fini(&scene->ready_fd);
}

Test(ready_fd, a_settle_that_finds_the_word_right_does_not_write)
{
	struct scene scene = scene_at(2);
	uint64_t word = weiri_load_relaxed(&scene.ready_fd.word);

	rise(&scene);
	fall(&scene);
	settle(&scene);
	cr_expect_eq(weiri_load_relaxed(&scene.ready_fd.word), word);
	fall(&scene);
	cr_expect_eq(weiri_load_relaxed(&scene.ready_fd.word), word, "one is left");
	fall(&scene);
	word = weiri_load_relaxed(&scene.ready_fd.word);
	settle(&scene);
	cr_expect_eq(weiri_load_relaxed(&scene.ready_fd.word), word);
	end(&scene, 0);
}

/*
 * A thread that lights is stopped. Another thread ends the condition: it makes the descriptor
 * unreadable, whatever the stopped thread has added or will add. Nor can the stopped thread keep the
 * next change from being seen.
 */
Test(ready_fd, what_a_stopped_thread_lights_others_make_dark)
{
	struct scene scene;
	struct stepped call = {.call = rise, .context = &scene};
	int stands = 1;

	stepped_or_skip();
	for (size_t at = 0; stands; at += stepped_stride(1)) {
		scene = scene_at(0);
		stands = stepped_start(&call, at);
		if (above_0(&scene)) {
			fall(&scene);
			cr_assert(!is_lit(&scene), "stopped at %zu: readable for nothing", at);
			rise(&scene);
		} else {
			rise(&scene);
		}
		cr_assert(is_lit(&scene), "stopped at %zu: late", at);
		fall(&scene);
		cr_assert_eq(is_lit(&scene), above_0(&scene), "stopped at %zu", at);
		stepped_finish(&call);
		settle(&scene);
		end(&scene, at);
	}
}

/*
 * A thread that makes the descriptor dark is stopped. The next thread that makes the condition true
 * lights it. If the condition ends again, the descriptor is readable for nothing only if the stopped
 * thread is a taker.
 */
Test(ready_fd, a_stopped_thread_that_makes_it_dark_keeps_no_other_from_lighting_it)
{
	struct scene scene;
	struct stepped call = {.call = fall, .context = &scene};
	int stands = 1;

	stepped_or_skip();
	for (size_t at = 0; stands; at += stepped_stride(1)) {
		scene = scene_at(1);
		stands = stepped_start(&call, at);
		for (int i = 0; i < 3; i++) {
			rise(&scene);
			cr_assert(is_lit(&scene), "stopped at %zu: late", at);
			fall(&scene);
			cr_assert(is_lit(&scene) == above_0(&scene) || takers(&scene) == 1, "stopped at %zu", at);
		}
		stepped_finish(&call);
		settle(&scene);
		end(&scene, at);
	}
}

/* Both kinds are stopped at once: the second call stands still while the first does. */
Test(ready_fd, two_stopped_threads_keep_no_third_from_lighting_it)
{
	struct scene scene;
	struct stepped down = {.call = fall, .context = &scene}, up = {.call = rise, .context = &scene};
	int stands = 1;

	stepped_or_skip();
	for (size_t at = 0; stands; at += stepped_stride(5)) {
		int both = 1;

		for (size_t other = 0; both; other += stepped_stride(5)) {
			scene = scene_at(1);
			stands = stepped_start(&down, at);
			both = stepped_start(&up, other);
			rise(&scene);
			cr_assert(is_lit(&scene), "stopped at %zu and %zu: late", at, other);
			stepped_finish(&down);
			cr_assert(is_lit(&scene), "stopped at %zu: late", other);
			stepped_finish(&up);
			end(&scene, at);
		}
	}
}

/*
 * The moments that the tests above meet only by chance, or never: each is a state that a call is led
 * into.
 */

typedef bool reached_fn(const struct scene *scene, int looks);

/* Starts the call, and lets it go on until this is reached. `looks` are those since its start. */
static void start_until(struct stepped *call, reached_fn *reached)
{
	const struct scene *scene = call->context;
	int before = weiri_load_relaxed(&scene->looks), stands = stepped_start(call, 0);

	while (stands && !reached(scene, weiri_load_relaxed(&scene->looks) - before))
		stands = stepped_next(call);
	cr_assert(stands, "it has ended before that");
}

/* Lets the call go on to its end. The descriptor is readable before each instruction of it. */
static void finish_lit(struct stepped *call)
{
	const struct scene *scene = call->context;

	do
		cr_assert(is_lit(scene), "late");
	while (stepped_next(call));
	stepped_finish(call);
	cr_assert(is_lit(scene), "late");
}

static uint64_t state(const struct scene *scene)
{
	return weiri_load_relaxed(&scene->ready_fd.word) & (WEIRI_READY_FD_STATE | WEIRI_READY_FD_CHECK);
}

static bool has_promised(const struct scene *scene, int looks)
{
	(void)looks;
	return state(scene) == 1 && !is_lit(scene);
}

static bool has_added(const struct scene *scene, int looks)
{
	(void)looks;
	return state(scene) == 1 && is_lit(scene);
}

static bool is_a_taker(const struct scene *scene, int looks)
{
	(void)looks;
	return state(scene) == 0 && takers(scene) != 0;
}

static bool has_looked_once(const struct scene *scene, int looks)
{
	(void)scene;
	return looks == 1;
}

static bool has_looked_twice(const struct scene *scene, int looks)
{
	(void)scene;
	return looks == 2;
}

static bool has_promised_two(const struct scene *scene, int looks)
{
	(void)looks;
	return state(scene) == 1 &&
	       weiri_load_relaxed(&scene->ready_fd.word) % WEIRI_READY_FD_VERSION / WEIRI_READY_FD_SPARE == 2;
}

/* What a look found is old when another thread has made the condition true, and ended. */
Test(ready_fd, an_old_look_makes_nothing_dark)
{
	struct scene scene = {.level = 0};
	struct stepped down = {.call = fall, .context = &scene};

	stepped_or_skip();
	scene = scene_at(1);
	start_until(&down, has_looked_once);
	rise(&scene);
	finish_lit(&down);
	end(&scene, 0);
}

/* The word has CHECK again, as when the thread looked. But another thread has set it. */
Test(ready_fd, an_old_look_makes_nothing_dark_when_another_thread_checks)
{
	struct scene scene = {.level = 0};
	struct stepped down = {.call = fall, .context = &scene}, next = {.call = fall, .context = &scene};

	stepped_or_skip();
	scene = scene_at(1);
	start_until(&down, has_looked_twice);
	rise(&scene);
	start_until(&next, has_looked_once);
	rise(&scene);
	while (state(&scene) == WEIRI_READY_FD_LIT)
		cr_assert(stepped_next(&next), "it does not check");
	finish_lit(&down);
	finish_lit(&next);
	end(&scene, 0);
}

/* Its add is not made yet, or not the one that the word counts on. */
Test(ready_fd, a_late_taker_leaves_what_a_later_light_has_added)
{
	struct scene scene = {.level = 0};
	struct stepped up = {.call = rise, .context = &scene}, down = {.call = fall, .context = &scene};

	stepped_or_skip();
	scene = scene_at(0);
	start_until(&up, has_promised);
	start_until(&down, is_a_taker);
	rise(&scene);
	finish_lit(&down);
	finish_lit(&up);
	end(&scene, 0);
}

Test(ready_fd, a_light_that_became_dark_meanwhile_confirms_no_other)
{
	struct scene scene = {.level = 0};
	struct stepped up = {.call = rise, .context = &scene}, down = {.call = fall, .context = &scene};
	struct stepped again = {.call = rise, .context = &scene};

	stepped_or_skip();
	scene = scene_at(0);
	start_until(&up, has_added);
	start_until(&down, is_a_taker);
	start_until(&again, has_promised_two);
	stepped_finish(&up);
	rise(&scene);
	finish_lit(&down);
	finish_lit(&again);
	end(&scene, 0);
}

/* The add may be made after the take that found none, and before the change that makes it spare. */
Test(ready_fd, a_taker_that_found_nothing_looks_once_more)
{
	struct scene scene = {.level = 0};
	struct stepped up = {.call = rise, .context = &scene}, down = {.call = fall, .context = &scene};
	int stands = 1;

	stepped_or_skip();
	for (size_t steps = 0; stands; steps += stepped_stride(3)) {
		scene = scene_at(0);
		start_until(&up, has_promised);
		start_until(&down, is_a_taker);
		for (size_t i = 0; i < steps && stands; i++)
			stands = stepped_next(&down);
		stepped_finish(&up);
		stepped_finish(&down);
		end(&scene, steps);
	}
}

/* -- the bounds -------------------------------------------------------------------------------- */

static void set_counts(struct scene *scene, uint64_t spare, uint64_t takers_now)
{
	weiri_store_relaxed(&scene->ready_fd.word, spare * WEIRI_READY_FD_SPARE + takers_now * WEIRI_READY_FD_TAKER);
}

Test(ready_fd, beyond_the_most_stopped_threads_nothing_overflows)
{
	const uint64_t most_spare = WEIRI_READY_FD_VERSION / WEIRI_READY_FD_SPARE - 1;
	const uint64_t most_takers = WEIRI_READY_FD_SPARE / WEIRI_READY_FD_TAKER - 1;
	struct scene scene = scene_at(0);

	set_counts(&scene, most_spare, 0);
	rise(&scene);
	cr_expect(!is_lit(&scene), "there is no room to count one more");
	set_counts(&scene, 0, most_takers);
	rise(&scene);
	cr_expect(is_lit(&scene));
	fall(&scene);
	cr_expect(is_lit(&scene), "there is no room for one more taker");
	weiri_ready_fd_fini(&scene.ready_fd);
}
