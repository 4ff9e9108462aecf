/*
 * runner.h - queue runners that run nodes of a graph.
 */
#ifndef WEIRI_SESSION_RUNNER_H
#define WEIRI_SESSION_RUNNER_H

#include <stdbool.h>
#include <weir/flow/session.h>

/*
 * As weir_queue_runner_from_nodes(). `call` names the call in messages. Unless `cancels`, a stop
 * leaves the queue as it is.
 */
enum weir_status weiri_node_runner_create(const char *call, weir_session *session, weir_node *const nodes[],
                                          size_t count, size_t threads, weir_tensor_queue *queue,
                                          const struct weir_queue_runner_options *given, bool cancels,
                                          weir_queue_runner **out, weir_error *error);

#endif
