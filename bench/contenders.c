/*
 * contenders.c - the list of contenders: ours first. A rival whose package is missing is listed as
 * absent.
 */
#include <stddef.h>

#include "rivals/rivals.h"

/* First the bounded and lock-free queues, then the bounded ones, then those without a bound. */
const struct ring_contender *const bench_rings[] = {
	&weir_ltq16_contender,
	&weir_port_contender,
	&weir_ltq64_contender,
#if defined(__x86_64__) /* the only machines that have it */
	&weir_span16_contender,
#endif
	&weir_spsc_contender,
#ifdef WEIR_BENCH_SHARED
	&weir_shared_ring_contender,
#endif
#ifdef WEIR_BENCH_BOOST
	&boost_ring_contender,
#endif
#ifdef WEIR_BENCH_CK_FIFO
	&ck_fifo_ring_contender,
#endif
	&scq_ring_contender,
#ifdef WEIR_BENCH_CAS2
	&nblfq_ring_contender,
	&wcq_ring_contender,
#endif
	&ck_ring_contender,
	&bbq_ring_contender,
#ifdef WEIR_BENCH_DPDK
	&dpdk_mt_ring_contender,
	&dpdk_rts_ring_contender,
	&dpdk_hts_ring_contender,
#endif
#ifdef WEIR_BENCH_XENIUM
	&xenium_vyukov_ring_contender,
#endif
#ifdef WEIR_BENCH_LIBCDS
	&cds_vyukov_ring_contender,
#endif
#ifdef WEIR_BENCH_ATOMIC_QUEUE
	&atomic_queue_ring_contender,
	&atomic_queue2_ring_contender,
#endif
#ifdef WEIR_BENCH_RUST
	&crossbeam_array_ring_contender,
	&crossbeam_channel_ring_contender,
#endif
#ifdef WEIR_BENCH_TBB
	&tbb_ring_contender,
#endif
	&mutex_ring_contender,
#ifdef WEIR_BENCH_RUST
	&crossbeam_seg_ring_contender,
#endif
#ifdef WEIR_BENCH_TBB
	&tbb_unbounded_ring_contender,
#endif
#ifdef WEIR_BENCH_MOODYCAMEL
	&moodycamel_ring_contender,
#endif
#ifdef WEIR_BENCH_XENIUM
	&xenium_michael_scott_ring_contender,
	&xenium_ramalhete_ring_contender,
#endif
#ifdef WEIR_BENCH_LIBCDS
	&cds_ms_ring_contender,
	&cds_basket_ring_contender,
#endif
#ifdef WEIR_BENCH_URCU
	&urcu_wfcqueue_contender,
	&urcu_rculfqueue_contender,
#endif
#ifdef WEIR_BENCH_GLIB
	&glib_ring_contender,
#endif
	NULL,
};

const struct ring_contender *const bench_priorities[] = {
	&weir_priority_contender,
	&weir_multi_contender,
	&mutex_heap_contender,
#ifdef WEIR_BENCH_TBB
	&tbb_priority_contender,
#endif
#ifdef WEIR_BENCH_LIBCDS
	&cds_ms_priority_contender,
#endif
	NULL,
};

const struct queue_contender *const bench_queues[] = {
	&weir_queue_contender,
	&condition_queue_contender,
#ifdef WEIR_BENCH_TBB
	&tbb_queue_contender,
#endif
#ifdef WEIR_BENCH_MOODYCAMEL
	&moodycamel_queue_contender,
#endif
#ifdef WEIR_BENCH_RUST
	&crossbeam_channel_queue_contender,
#endif
#ifdef WEIR_BENCH_GO
	&go_queue_contender,
#endif
#ifdef WEIR_BENCH_GLIB
	&glib_queue_contender,
#endif
	NULL,
};

const struct queue_contender *const bench_shuffles[] = {
	&weir_shuffle_contender,
	&mutex_shuffle_contender,
	NULL,
};

const struct ring_contender *const bench_shuffle_tries[] = {
	&weir_shuffle_try_contender,
	&mutex_shuffle_try_contender,
	NULL,
};

/* First the lower bound, then the readers that take a reference, then those that take none. */
const struct read_contender *const bench_readers[] = {
	&weir_read_contender,
	&weir_look_contender,
	&weir_inline_read_contender,
	&weir_cache_contender,
	&weir_read_section_contender,
	&weir_inline_cache_contender,
	&weir_inline_section_contender,
#ifdef WEIR_BENCH_SHARED
	&weir_shared_read_contender,
#endif
#ifdef WEIR_BENCH_WEIR_URCU
	&weir_urcu_read_contender,
#endif
	&acquire_read_contender,
	&handle_floor_contender,
	&hazard_fence_read_contender,
	&hazard_membarrier_read_contender,
#ifdef WEIR_BENCH_XENIUM
	&xenium_hp_contender,
	&xenium_he_contender,
	&xenium_lfrc_contender,
#endif
#ifdef WEIR_BENCH_SHARED_PTR
	&shared_ptr_read_contender,
#endif
#ifdef WEIR_BENCH_RUST
	&arc_swap_load_contender,
	&arc_swap_load_full_contender,
#endif
#ifdef WEIR_BENCH_URCU
	&urcu_count_read_contender,
	&urcu_qsbr_inlined_contender,
	&urcu_qsbr_called_contender,
	&urcu_bp_inlined_contender,
	&urcu_bp_called_contender,
	&urcu_memb_inlined_contender,
	&urcu_memb_called_contender,
	&urcu_mb_inlined_contender,
	&urcu_mb_called_contender,
#endif
	&ck_epoch_read_contender,
#ifdef WEIR_BENCH_XENIUM
	&xenium_qsbr_contender,
	&xenium_ebr_contender,
	&xenium_nebr_contender,
	&xenium_debra_contender,
	&xenium_stamp_it_contender,
#endif
#ifdef WEIR_BENCH_RUST
	&crossbeam_epoch_contender,
#endif
	&left_right_read_contender,
	&seqlock_read_contender,
	&mutex_read_contender,
	&rwlock_read_contender,
	NULL,
};

const struct update_contender *const bench_updates[] = {
	&weir_update_contender,         &weir_inline_update_contender,
	&weir_pointer_update_contender, &mutex_update_contender,
#ifdef WEIR_BENCH_SHARED_PTR
	&shared_ptr_update_contender,
#endif
#ifdef WEIR_BENCH_URCU
	&urcu_update_contender,
#endif
#ifdef WEIR_BENCH_RUST
	&arc_swap_update_contender,
#endif
	&left_right_update_contender,   NULL,
};

const struct train_contender *const bench_trains[] = {&weir_train_contender, &train_loop_contender, NULL};
const struct addition_contender *const bench_additions[] = {
	&weir_addition_contender, &weir_retry_contender, &mutex_copy_contender, &mutex_in_place_contender, NULL,
};

const struct snapshot_contender *const bench_transactions[] = {
	&weir_snapshot_contender,
	&weir_inline_snapshot_contender,
	&weir_txn_contender,
	&weir_inline_txn_contender,
	&mutex_snapshot_contender,
	&seqlock_snapshot_contender,
	NULL,
};

const struct publish_contender *const bench_publishers[] = {
	&weir_publish_contender,
#ifdef WEIR_BENCH_URCU
	&urcu_publish_contender,
	&urcu_budget_publish_contender,
#endif
	NULL,
};

const struct snapshot_contender *const bench_snapshots[] = {
	&weir_snapshot_contender,  &weir_inline_snapshot_contender, &weir_inline_section_snapshot_contender,
	&mutex_snapshot_contender, &snapshot_floor_contender,       NULL,
};

const struct names_contender *const bench_names[] = {
	&weir_names_contender,
	&mutex_names_contender,
	&rwlock_names_contender,
	NULL,
};

const struct section_contender *const bench_sections[] = {
	&weir_section_contender,
	&fair_section_contender,
	&mutex_section_contender,
	NULL,
};

const struct counter_contender *const bench_counters[] = {
	&weir_counter_contender,   &weir_histogram_contender,
	&atomic_counter_contender, &processor_counter_contender,
	&hashed_counter_contender,
#ifdef WEIR_BENCH_TBB
	&tbb_counter_contender,
#endif
	&mutex_counter_contender,  NULL,
};

const struct scatter_contender *const bench_scatters[] = {
	&weir_table_contender,    &weir_var_scatter_contender, &rwlock_scatter_contender,
	&mutex_scatter_contender, &sharded_scatter_contender,  NULL,
};

const struct data_contender *const bench_data[] = {
	&weir_data_contender,         &steps_data_contender,   &short_steps_data_contender,
	&reader_steps_data_contender, &threads_data_contender,
#ifdef WEIR_BENCH_TBB
	&tbb_data_contender,
#endif
	&alone_data_contender,        &copy_data_contender,    NULL,
};

const struct memory_contender *const bench_memories[] = {
	&weir_stopped_contender,
	&weir_held_contender,
#ifdef WEIR_BENCH_URCU
	&urcu_memory_contender,
#endif
	NULL,
};

const struct wake_contender *const bench_wakes[] = {
	&weir_wake_contender, &futex_wake_contender, &eventfd_wake_contender, &condition_wake_contender, NULL,
};

const struct loop_contender *const bench_loops[] = {
	&weir_loop_contender,
#ifdef WEIR_BENCH_GLIB
	&weir_glib_loop_contender,  &glib_loop_contender,
#endif
#ifdef WEIR_BENCH_LIBUV
	&weir_libuv_loop_contender, &libuv_loop_contender,
#endif
	&mutex_loop_contender,      NULL,
};

const struct loop_contender *const bench_watches[] = {&weir_watch_contender, &mutex_watch_contender, NULL};

const struct carrier_contender *const bench_carriers[] = {
	&weir_carrier_contender,  &weir_frame_carrier_contender,
#ifdef WEIR_BENCH_DPDK
	&dpdk_carrier_contender,
#endif
#ifdef WEIR_BENCH_BOOST
	&boost_carrier_contender,
#endif
	&mutex_carrier_contender, &pipe_carrier_contender,       &socket_carrier_contender, &python_carrier_contender, NULL,
};

const struct dataflow_contender *const bench_dataflows[] = {
	&weir_chain_contender,
	&weir_chain_deadline_contender,
	&weir_chain_traced_contender,
	&weir_chain_kernel_contender,
	&weir_wide_contender,
	&weir_wide_deadline_contender,
	&weir_wide_traced_contender,
	&weir_wide_kernel_contender,
	&weir_one_contender,
	&weir_one_session_contender,
	&weir_kernel_contender,
	&weir_kernel_deadline_contender,
	&weir_kernel_measured_contender,
	&weir_adds_contender,
	&weir_node_queue_contender,
	&weir_build_contender,
	&weir_group_contender,
	&weir_calls_contender,
	&weir_loop_flow_contender,
	&weir_rows_contender,
	&weir_steps_contender,
	&weir_steps_session_contender,
	&weir_buffers_contender,
	&weir_direct_queue_contender,
	&loop_buffers_contender,
	&loop_steps_contender,
	&loop_counted_steps_contender,
#ifdef WEIR_BENCH_TBB
	&tbb_chain_contender,
	&tbb_light_chain_contender,
	&tbb_wide_contender,
	&tbb_light_wide_contender,
	&tbb_one_contender,
	&tbb_light_one_contender,
	&tbb_kernel_contender,
	&tbb_light_kernel_contender,
	&tbb_adds_contender,
	&tbb_light_adds_contender,
	&tbb_buffers_contender,
	&tbb_build_contender,
	&tbb_group_contender,
#endif
#ifdef WEIR_BENCH_OPENMP
	&gomp_chain_contender,
	&gomp_wide_contender,
	&gomp_one_contender,
	&gomp_kernel_contender,
	&gomp_adds_contender,
	&gomp_buffers_contender,
#endif
#ifdef WEIR_BENCH_STARPU
	&starpu_chain_contender,
	&starpu_wide_contender,
	&starpu_one_contender,
	&starpu_kernel_contender,
	&starpu_adds_contender,
	&starpu_buffers_contender,
#endif
	NULL,
};

const char *const bench_absent[] = {
#ifndef WEIR_BENCH_OPENMP
	"OpenMP tasks (libgomp)",
#endif
#ifndef WEIR_BENCH_ATOMIC_QUEUE
	"atomic_queue (libatomic-queue-dev)",
#endif
#ifndef WEIR_BENCH_BOOST
	"boost::lockfree, boost::interprocess (libboost-dev)",
#endif
#ifndef WEIR_BENCH_CK_FIFO
	"ck_fifo (needs a machine on which Concurrency Kit swaps two words)",
#endif
#ifndef WEIR_BENCH_DPDK
	"DPDK (libdpdk-dev)",
#endif
#ifndef WEIR_BENCH_GLIB
	"GLib (libglib2.0-dev)",
#endif
#ifndef WEIR_BENCH_LIBCDS
	"libcds (libcds-dev)",
#endif
#ifndef WEIR_BENCH_LIBUV
	"libuv (libuv1-dev)",
#endif
#ifndef WEIR_BENCH_MOODYCAMEL
	"moodycamel (libconcurrentqueue-dev)",
#endif
#ifndef WEIR_BENCH_GO
	"Go channels (golang-go)",
#endif
#ifndef WEIR_BENCH_CAS2
	"NBLFQ (x86-64 only)",
#endif
#ifndef WEIR_BENCH_RUST
	"arc-swap, crossbeam (rustc, cargo, "
	"librust-{arc-swap,crossbeam-channel,crossbeam-epoch,crossbeam-queue}-dev)",
#endif
#ifndef WEIR_BENCH_SHARED_PTR
	"std::atomic<std::shared_ptr> (a C++20 library)",
#endif
#ifndef WEIR_BENCH_STARPU
	"StarPU (libstarpu-dev)",
#endif
#ifndef WEIR_BENCH_TBB
	"TBB (libtbb-dev)",
#endif
#ifndef WEIR_BENCH_URCU
	"liburcu (liburcu-dev)",
#endif
#ifndef WEIR_BENCH_XENIUM
	"xenium (libxenium-dev)",
#endif
	NULL,
};
