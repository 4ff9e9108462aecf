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
};

static bool above_0(void *context)
{
	struct scene *scene = context;

	return weiri_load_relaxed(&scene->level) > 0;
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

static uint64_t takers(struct scene *scene)
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
	for (size_t at = 0; stands; at += stepped_stride(3)) {
		int both = 1;

		for (size_t other = 0; both; other += stepped_stride(3)) {
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
