/*
 * shm_frames.c - a camera process hands arrays to this one, without a copy; it is killed, and a new
 * one goes on.
 *
 * The ring carries the arrays. A second object holds the newest setting, which the camera follows.
 * Both live in memfds that the camera inherits. When a camera dies, nothing has to be repaired before
 * the ring goes on; the next camera that attaches takes over the dead one's seat and frames.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/shm_latest.h>
#include <weir/shm_ring.h>

enum { PIXELS = 64 * 1024, CAPACITY = 4, CAMERAS = 3, IMAGES = 50 };

struct image {
	uint64_t number, exposure;
	uint32_t pixels[PIXELS];
};

struct setting {
	uint64_t exposure;
};

/* Publishes images for ever, with the newest exposure. Each pixel is number * exposure. */
static int be_camera(int ring_file, int setting_file)
{
	struct setting setting = {1};
	weir_shm_latest *settings;
	weir_shm_ring *ring;

	if (weir_shm_ring_attach(ring_file, &ring, NULL) != WEIR_OK ||
	    weir_shm_latest_attach(setting_file, &settings, NULL) != WEIR_OK)
		return 1;
	for (uint64_t number = 1;; number++) {
		struct weir_shm_frame frame;
		struct image *image;

		(void)weir_shm_latest_try_read(settings, 0, &setting, sizeof(setting), NULL, NULL);
		if (weir_shm_ring_try_reserve(ring, &frame) != WEIR_OK)
			return 1;
		image = frame.data;
		image->number = number;
		image->exposure = setting.exposure;
		for (size_t i = 0; i < PIXELS; i++)
			image->pixels[i] = (uint32_t)(number * setting.exposure);
		if (weir_shm_ring_publish(ring, &frame, sizeof(*image), WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
			return 1;
	}
}

static pid_t start_camera(int ring_file, int setting_file)
{
	pid_t camera = fork();

	if (camera == 0)
		_exit(be_camera(ring_file, setting_file));
	return camera;
}

/* Returns 1 if the image is whole. */
static int look_at(const struct image *image)
{
	for (size_t i = 0; i < PIXELS; i++) {
		if (image->pixels[i] != (uint32_t)(image->number * image->exposure))
			return 0;
	}
	return 1;
}

/* Returns how many of IMAGES images came, and were whole. */
static int receive(weir_shm_ring *ring)
{
	int whole = 0;

	for (int i = 0; i < IMAGES; i++) {
		struct weir_shm_frame frame;
		weir_error error;

		if (weir_shm_ring_take(ring, &frame, weir_deadline_in(UINT64_C(60000000000)), NULL, &error) != WEIR_OK) {
			(void)fprintf(stderr, "%s\n", error.message);
			return whole;
		}
		whole += look_at(frame.data);
		(void)weir_shm_ring_release(ring, &frame);
	}
	return whole;
}

int main(void)
{
	struct weir_shm_ring_options options = {WEIR_SHM_RING_OPTIONS_INIT, .processes = 2, .frames_per_process = 2};
	int ring_file = memfd_create("images", MFD_ALLOW_SEALING);
	int setting_file = memfd_create("setting", MFD_ALLOW_SEALING), whole = 0;
	weir_shm_latest *settings;
	weir_shm_ring *ring;
	weir_error error;

	if (weir_shm_ring_create(ring_file, CAPACITY, sizeof(struct image), &options, &ring, &error) != WEIR_OK ||
	    weir_shm_latest_create(setting_file, sizeof(struct setting), NULL, &settings, &error) != WEIR_OK) {
		(void)fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	for (uint64_t i = 1; i <= CAMERAS; i++) {
		const struct setting setting = {i};
		pid_t camera;

		(void)weir_shm_latest_write(settings, &setting, sizeof(setting), NULL, NULL);
		camera = start_camera(ring_file, setting_file);
		whole += receive(ring);
		/* At any instruction: perhaps in the middle of an image, or of a publish. */
		(void)kill(camera, SIGKILL);
		(void)waitpid(camera, NULL, 0);
	}
	(void)printf("%d of %d images were whole\n", whole, CAMERAS * IMAGES);
	(void)weir_shm_ring_destroy(ring, NULL);
	(void)weir_shm_latest_destroy(settings, NULL);
	return whole == CAMERAS * IMAGES ? 0 : 1;
}
