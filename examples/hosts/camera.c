/*
 * camera.c - the foreign thread of the tests, and memory that tells when it was given back.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir/reclaim.h>

#include "camera.h"

enum { AT_ONCE = 50 };

struct camera {
	pthread_t thread;
	weir_queue *queue;
	int count, done;
	weir_error cause;
};

static atomic_int alive, released_by;

static void give_back(void *context, void *data)
{
	(void)context;
	free(data);
	atomic_store_explicit(&released_by, camera_this_thread(), memory_order_relaxed);
	atomic_fetch_sub_explicit(&alive, 1, memory_order_release); /* with released_by, for camera_frames_alive() */
}

static weir_tensor *make_frame(double pixel)
{
	const weir_shape shape = {1, {CAMERA_PIXELS}};
	double *pixels = malloc(CAMERA_PIXELS * sizeof(*pixels));
	weir_tensor *frame;

	if (pixels == NULL)
		return NULL;
	for (int i = 0; i < CAMERA_PIXELS; i++)
		pixels[i] = pixel;
	if (weir_tensor_wrap(WEIR_F64, &shape, pixels, give_back, NULL, NULL, &frame) != WEIR_OK) {
		free(pixels);
		return NULL;
	}
	atomic_fetch_add_explicit(&alive, 1, memory_order_relaxed);
	return frame;
}

static void *film(void *context)
{
	camera *self = context;

	for (; self->done < self->count; self->done++) {
		weir_tensor *frame = make_frame(self->done);

		if (frame == NULL || weir_queue_enqueue(self->queue, frame, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK) {
			weir_tensor_release(frame);
			break;
		}
	}
	(void)weir_queue_close(self->queue, WEIR_CLOSE_DRAIN, &self->cause);
	return NULL;
}

camera *camera_start(weir_queue *queue, int count, const char *cause)
{
	camera *self = malloc(sizeof(*self));

	if (self == NULL)
		return NULL;
	*self = (camera){.queue = queue, .count = count, .cause.code = WEIR_UNAVAILABLE};
	(void)snprintf(self->cause.message, sizeof(self->cause.message), "%s", cause);
	if (pthread_create(&self->thread, NULL, film, self) == 0)
		return self;
	free(self);
	return NULL;
}

int camera_stop(camera *self)
{
	int done;

	(void)pthread_join(self->thread, NULL);
	done = self->done;
	free(self);
	return done;
}

bool camera_show(weir_var *var, double pixel)
{
	weir_tensor *frame = make_frame(pixel);
	bool shown = frame != NULL && weir_var_assign(var, frame, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK;

	weir_tensor_release(frame);
	return shown;
}

int camera_frames_alive(void)
{
	(void)weir_reclaim_flush(0);
	return atomic_load_explicit(&alive, memory_order_acquire);
}

int camera_released_by(void)
{
	return atomic_load_explicit(&released_by, memory_order_relaxed);
}

int camera_this_thread(void)
{
	return (int)gettid();
}

static void *look_once(void *context)
{
	bool whole = false;
	weir_read now;

	if (weir_var_read(context, &now) == WEIR_OK) {
		const double *pixels = weir_tensor_data(now.tensor);

		whole = pixels[0] == pixels[CAMERA_PIXELS - 1];
		weir_read_release(&now);
	}
	return whole ? context : NULL;
}

int camera_short_threads(weir_var *var, int count)
{
	pthread_t threads[AT_ONCE] = {0};
	int whole = 0;

	for (int started = 0; started < count;) {
		int now = 0;

		while (now < AT_ONCE && started + now < count && pthread_create(&threads[now], NULL, look_once, var) == 0)
			now++;
		for (int i = 0; i < now; i++) {
			void *seen;

			(void)pthread_join(threads[i], &seen);
			whole += seen != NULL;
		}
		if (now == 0)
			break;
		started += now;
	}
	return whole;
}
