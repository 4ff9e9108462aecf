/*
 * scenarios.h - the scenarios that main.c lists.
 */
#ifndef STRESS_SCENARIOS_H
#define STRESS_SCENARIOS_H

/* LTQ16 and SPAN16 are not available on every machine. */
int stress_has_ltq16(void);
void scenario_ring_ltq16(void);
void scenario_ring_span16(void);
void scenario_ring_ltq64(void);
void scenario_ring_stopped(void);

void scenario_metrics(void);
void scenario_table(void);

void scenario_named_store(void);
void scenario_named_store_stopped(void);

void scenario_value(void);
/* Only where liburcu is. */
void scenario_urcu(void);
void scenario_variable_read(void);
void scenario_variable_counter(void);
void scenario_variable_stopped(void);
void scenario_variable_handles(void);
void scenario_combine(void);
void scenario_combine_stopped(void);
void scenario_watch(void);
void scenario_dataset(void);
void scenario_critical_section(void);
void scenario_snapshot_torn(void);
void scenario_commit_conflict(void);

void scenario_allocation_failures(void);
void scenario_destroy_in_use(void);

void scenario_memory_bound(void);
void scenario_memory_resident(void);
void scenario_thread_churn(void);
void scenario_signal_read(void);
void scenario_fork(void);

void scenario_queue_fifo(void);
void scenario_queue_shuffle(void);
void scenario_queue_priority(void);
void scenario_queue_cancel(void);
void scenario_queue_close(void);
void scenario_queue_dump(void);
void scenario_queue_batch(void);
void scenario_queue_deadline(void);
void scenario_queue_select(void);
void scenario_queue_stopped(void);
void scenario_priority_stopped(void);

void scenario_history_ring(void);
void scenario_history_queue_fifo(void);
void scenario_history_shuffle(void);
void scenario_history_priority(void);
void scenario_history_map_staging(void);
void scenario_history_keyed_join(void);
void scenario_history_store(void);
void scenario_history_variable(void);
void scenario_history_snapshot(void);
void scenario_history_commit(void);
void scenario_history_txn(void);

void scenario_spsc(void);
void scenario_shm_killed(void);
void scenario_tensor_queue(void);
void scenario_keyed_join(void);
void scenario_keyed_join_stopped(void);
void scenario_staging_stopped(void);
void scenario_history_staging(void);
void scenario_map_staging(void);
void scenario_map_staging_stopped(void);
void scenario_dataflow(void);
void scenario_pool(void);
void scenario_ranks(void);
void scenario_coordinator(void);

void scenario_soak(void);

void scenario_selftest_hang(void);
void scenario_selftest_wrong(void);
void scenario_selftest_crash(void);

#endif
