/*
 * area_kit.h - shared by the tests of staging areas and map staging areas: calls on threads of
 * their own, and the outcomes of asynchronous operations.
 */
#ifndef AREA_KIT_H
#define AREA_KIT_H

#include "dump_kit.h"
#include "failing_allocator.h"
#include "tensor_queue_kit.h"

/* -- calls on threads of their own ------------------------------------------------------------- */

struct caller;

/* Makes a call of one component. *tensor then has the tensor that the call put or took. */
typedef enum weir_status area_call(struct caller *c, weir_tensor **tensor);

/* A call on the area named "test". */
struct caller {
	void *area;
	char what; /* '+' puts; the area_call gives the other letters a meaning */
	/* The key or index. A call on a map staging area leaves the key of the tuple here. */
	int64_t key;
	int32_t value; /* to put, or what came out */
	uint64_t deadline_ns;
	weir_cancel *token;
	enum weir_status status;
	weir_error error;
	area_call *call;
	pthread_t thread;
};

static inline void *caller_main(void *context)
{
	struct caller *c = context;
	weir_tensor *tensor = NULL;

	c->status = c->call(c, &tensor);
	if (c->what != '+' && c->status == WEIR_OK)
		c->value = value_of(tensor);
	weir_tensor_release(tensor);
	return NULL;
}

static inline void start(area_call *call, struct caller *c)
{
	c->call = call;
	cr_assert_eq(pthread_create(&c->thread, NULL, caller_main, c), 0);
}

/* Begins a call, and returns when `waiting` operations wait in the area. */
static inline void begin(area_call *call, struct caller *c, size_t waiting)
{
	c->deadline_ns = c->deadline_ns != 0 ? c->deadline_ns : WEIR_NO_DEADLINE;
	start(call, c);
	await(waiters_dumped("test") == waiting);
}

static inline enum weir_status join(struct caller *c)
{
	(void)pthread_join(c->thread, NULL);
	return c->status;
}

/*
 * `late` has a deadline. `cancelled` gets a token, which the test releases. Each call ends for its
 * reason, with the given message.
 */
static inline void expect_waits_end(area_call *call, struct caller *late, const char *late_says,
                                    struct caller *cancelled, const char *cancelled_says)
{
	weir_error cause = {WEIR_ABORTED, "the reason"};

	start(call, late);
	cr_assert_eq(join(late), WEIR_DEADLINE_EXCEEDED);
	cr_assert_str_eq(late->error.message, late_says);
	cr_assert_eq(weir_cancel_create(NULL, &cancelled->token, NULL), WEIR_OK);
	begin(call, cancelled, 1);
	cr_assert_eq(weir_cancel_fire(cancelled->token, &cause), 1);
	cr_assert_eq(join(cancelled), WEIR_CANCELLED);
	cr_assert_str_eq(cancelled->error.message, cancelled_says);
}

/* -- asynchronous operations ------------------------------------------------------------------- */

struct outcome {
	int calls;
	enum weir_status status;
	int64_t key;
	int32_t value;
	size_t count;
	char message[WEIR_ERROR_MESSAGE_SIZE];
};

/* Releases the tensors. */
static inline void note_outcome(struct outcome *outcome, enum weir_status status, const weir_error *error, int64_t key,
                                weir_tensor *tensors[], size_t count)
{
	outcome->calls++;
	outcome->status = status;
	outcome->key = key;
	outcome->count = count;
	if (error != NULL)
		(void)snprintf(outcome->message, sizeof(outcome->message), "%s", error->message);
	for (size_t i = 0; i < count; i++) {
		outcome->value = value_of(tensors[i]);
		weir_tensor_release(tensors[i]);
	}
}

/* -- allocations that fail --------------------------------------------------------------------- */

/* `use` gets an i32 scalar and makes every call. */
static inline void expect_survives_each_allocation(failing_scenario *use)
{
	weir_tensor *tensor = number(1);

	cr_assert_gt(fail_each_allocation(use, tensor), 10);
	weir_tensor_release(tensor);
	expect_no_tensor_left();
}

#endif
