/*
 * weir.h - the toolkit, libweir: rings, queues, variables, metrics, memory reclamation,
 * coordinator, pool. Programs that use a part include that part's header instead. The dataflow
 * layer, libweir-flow, is weir/flow.h.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <weir/alloc.h>
#include <weir/announce.h>
#include <weir/api.h>
#include <weir/cancel.h>
#include <weir/coordinator.h>
#include <weir/critical_section.h>
#include <weir/dataset.h>
#include <weir/dlpack.h>
#include <weir/dump.h>
#include <weir/log.h>
#include <weir/metrics.h>
#include <weir/mirrors.h>
#include <weir/multi_queue.h>
#include <weir/pending.h>
#include <weir/pool.h>
#include <weir/priority_queue.h>
#include <weir/queue.h>
#include <weir/queue_u64.h>
#include <weir/queue_runner.h>
#include <weir/read_section.h>
#include <weir/reclaim.h>
#include <weir/ring.h>
#include <weir/ring_list.h>
#include <weir/ring_port.h>
#include <weir/scatter.h>
#include <weir/select.h>
#include <weir/shm_latest.h>
#include <weir/shm_ring.h>
#include <weir/spsc.h>
#include <weir/stall.h>
#include <weir/status.h>
#include <weir/store.h>
#include <weir/tensor.h>
#include <weir/thread.h>
#include <weir/time.h>
#include <weir/transport.h>
#include <weir/txn.h>
#include <weir/value.h>
#include <weir/var.h>
#include <weir/var_cache.h>
#include <weir/version.h>
#include <weir/watch.h>

#endif
