/*
 * camera.h - what the tests of all hosts need from outside their runtimes: a thread that no runtime
 * knows, and memory that tells when, and by which thread, it was given back. It is no part of the glue.
 */
#ifndef CAMERA_H
#define CAMERA_H

#include <weir/queue.h>
#include <weir/var.h>

enum { CAMERA_PIXELS = 4 };

typedef struct camera camera;

/*
 * Starts a thread that enqueues `count` frames, waits for room, and closes the queue with the cause.
 * Each pixel of frame i is i. The items are tensors of CAMERA_PIXELS f64. Returns NULL if it cannot.
 */
camera *camera_start(weir_queue *queue, int count, const char *cause);
/* Waits for the thread, and returns how many frames went in. */
int camera_stop(camera *camera);

/* Assigns a frame, and returns whether that went well. */
bool camera_show(weir_var *var, double pixel);
/* The frames whose memory was not given back yet. Collects first. */
int camera_frames_alive(void);
/* The thread (gettid) that gave the last frame back, and the calling thread. */
int camera_released_by(void);
int camera_this_thread(void);

/* Starts threads that read the variable once and end. Returns how many found whole frames. */
int camera_short_threads(weir_var *var, int count);

#endif
