/*
 * flow.h - the dataflow layer, libweir-flow: tensor queues, staging areas, keyed joins, tables,
 * checkpoints, graphs, sessions and monitored sessions; and the toolkit below it, weir/weir.h.
 * Programs that use a part include that part's header instead.
 */
#ifndef WEIR_FLOW_H
#define WEIR_FLOW_H

#include <weir/flow/callable.h>
#include <weir/flow/checkpoint.h>
#include <weir/flow/dataset.h>
#include <weir/flow/keyed_join.h>
#include <weir/flow/function.h>
#include <weir/flow/gradient.h>
#include <weir/flow/graph.h>
#include <weir/flow/kernel.h>
#include <weir/flow/map_staging.h>
#include <weir/flow/monitored.h>
#include <weir/flow/op.h>
#include <weir/flow/op_array.h>
#include <weir/flow/op_math.h>
#include <weir/flow/optimizer.h>
#include <weir/flow/replicas.h>
#include <weir/flow/session.h>
#include <weir/flow/staging.h>
#include <weir/flow/table.h>
#include <weir/flow/tensor_queue.h>
#include <weir/flow/tensor_select.h>
#include <weir/flow/trace.h>
#include <weir/weir.h>

#endif
