/*
 * rivals.h - the tables of all adapters.
 */
#ifndef WEIR_BENCH_RIVALS_H
#define WEIR_BENCH_RIVALS_H

#include "../bench.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct ring_contender weir_ltq16_contender, weir_ltq64_contender, weir_span16_contender,
	weir_spsc_contender, atomic_queue_ring_contender, atomic_queue2_ring_contender, bbq_ring_contender,
	boost_ring_contender, cds_basket_ring_contender, cds_ms_ring_contender, cds_vyukov_ring_contender,
	ck_fifo_ring_contender, ck_ring_contender, dpdk_hts_ring_contender, crossbeam_array_ring_contender,
	crossbeam_channel_ring_contender, crossbeam_seg_ring_contender, dpdk_mt_ring_contender, dpdk_rts_ring_contender,
	glib_ring_contender, moodycamel_ring_contender, mutex_ring_contender, nblfq_ring_contender, scq_ring_contender,
	tbb_ring_contender, tbb_unbounded_ring_contender, urcu_rculfqueue_contender, urcu_wfcqueue_contender,
	wcq_ring_contender, xenium_michael_scott_ring_contender, xenium_ramalhete_ring_contender,
	xenium_vyukov_ring_contender;
extern const struct ring_contender weir_priority_contender, weir_multi_contender, mutex_heap_contender,
	tbb_priority_contender, cds_ms_priority_contender;
extern const struct queue_contender weir_queue_contender, condition_queue_contender, crossbeam_channel_queue_contender,
	glib_queue_contender, go_queue_contender, moodycamel_queue_contender, tbb_queue_contender;
extern const struct queue_contender weir_shuffle_contender, mutex_shuffle_contender;
extern const struct ring_contender weir_shuffle_try_contender, mutex_shuffle_try_contender;
extern const struct read_contender weir_read_contender, weir_look_contender, weir_cache_contender,
	weir_urcu_read_contender, weir_read_section_contender, acquire_read_contender, arc_swap_load_contender,
	arc_swap_load_full_contender, crossbeam_epoch_contender, ck_epoch_read_contender, hazard_fence_read_contender,
	hazard_membarrier_read_contender, left_right_read_contender, mutex_read_contender, rwlock_read_contender,
	seqlock_read_contender, shared_ptr_read_contender, urcu_bp_called_contender, urcu_bp_inlined_contender,
	urcu_count_read_contender, urcu_mb_called_contender, urcu_mb_inlined_contender, urcu_memb_called_contender,
	urcu_memb_inlined_contender, urcu_qsbr_called_contender, urcu_qsbr_inlined_contender, xenium_debra_contender,
	xenium_ebr_contender, xenium_he_contender, xenium_hp_contender, xenium_lfrc_contender, xenium_nebr_contender,
	xenium_qsbr_contender, xenium_stamp_it_contender;
extern const struct update_contender weir_update_contender, weir_inline_update_contender, weir_pointer_update_contender,
	mutex_update_contender, shared_ptr_update_contender, urcu_update_contender, arc_swap_update_contender,
	left_right_update_contender;
extern const struct train_contender weir_train_contender, train_loop_contender;
extern const struct addition_contender weir_addition_contender, weir_retry_contender, mutex_copy_contender,
	mutex_in_place_contender;
extern const struct publish_contender weir_publish_contender, urcu_publish_contender, urcu_budget_publish_contender;
extern const struct names_contender weir_names_contender, mutex_names_contender, rwlock_names_contender;
extern const struct section_contender weir_section_contender, fair_section_contender, mutex_section_contender;
extern const struct snapshot_contender weir_snapshot_contender, weir_txn_contender, mutex_snapshot_contender,
	seqlock_snapshot_contender, weir_inline_snapshot_contender, weir_inline_txn_contender;
extern const struct scatter_contender weir_table_contender, weir_var_scatter_contender, rwlock_scatter_contender;
extern const struct scatter_contender mutex_scatter_contender, sharded_scatter_contender;
extern const struct counter_contender weir_counter_contender, weir_histogram_contender, atomic_counter_contender,
	processor_counter_contender, hashed_counter_contender, tbb_counter_contender, mutex_counter_contender;
extern const struct data_contender weir_data_contender, threads_data_contender, tbb_data_contender;
extern const struct data_contender alone_data_contender, copy_data_contender;
extern const struct memory_contender weir_stopped_contender, weir_held_contender, urcu_memory_contender;
extern const struct wake_contender weir_wake_contender, futex_wake_contender, eventfd_wake_contender,
	condition_wake_contender;
extern const struct loop_contender weir_loop_contender, weir_glib_loop_contender, mutex_loop_contender,
	glib_loop_contender, weir_libuv_loop_contender, libuv_loop_contender, weir_watch_contender, mutex_watch_contender;
extern const struct carrier_contender weir_carrier_contender, weir_frame_carrier_contender, dpdk_carrier_contender,
	boost_carrier_contender, mutex_carrier_contender, pipe_carrier_contender, socket_carrier_contender,
	python_carrier_contender;
extern const struct dataflow_contender weir_chain_contender, weir_chain_deadline_contender, weir_chain_traced_contender,
	weir_chain_kernel_contender, weir_wide_contender, weir_wide_deadline_contender, weir_wide_traced_contender,
	weir_wide_kernel_contender, weir_one_contender, weir_one_session_contender, weir_kernel_contender,
	weir_kernel_deadline_contender, weir_kernel_measured_contender, weir_adds_contender, weir_node_queue_contender,
	weir_build_contender, weir_group_contender, weir_calls_contender, weir_loop_flow_contender, weir_rows_contender,
	weir_steps_contender, weir_steps_session_contender, weir_buffers_contender, weir_direct_queue_contender,
	loop_buffers_contender, loop_steps_contender, loop_counted_steps_contender, tbb_chain_contender,
	tbb_light_chain_contender, tbb_wide_contender, tbb_light_wide_contender, tbb_one_contender, tbb_light_one_contender,
	tbb_kernel_contender, tbb_light_kernel_contender, tbb_adds_contender, tbb_light_adds_contender,
	tbb_buffers_contender, tbb_build_contender, tbb_group_contender, starpu_chain_contender, starpu_wide_contender,
	starpu_one_contender, starpu_kernel_contender, starpu_adds_contender, starpu_buffers_contender,
	gomp_chain_contender, gomp_wide_contender, gomp_one_contender, gomp_kernel_contender, gomp_adds_contender,
	gomp_buffers_contender;

/* The value of an update_contender. */
struct shared_value {
	uint64_t words[8];
};

#ifdef __cplusplus
}
#endif

#endif
