/*
 * main.c - weir-stress: the table of scenarios.
 */
#include "command.h"
#include "scenarios.h"

static const struct stress_scenario scenarios[] = {
	{"ring_ltq16", "no loss, duplicate or reordering; exact capacity; closing is final", scenario_ring_ltq16},
	{"ring_ltq64", "the same, slots of one word", scenario_ring_ltq64},
	{"ring_stopped", "a thread stopped anywhere stops nobody else", scenario_ring_stopped},
	{"mpsc_ltq16", "the same of rings for one consumer", scenario_mpsc_ltq16},
	{"mpsc_ltq64", "the same, slots of one word", scenario_mpsc_ltq64},
	{"spsc", "rings of one producer and one consumer lose, double and reorder nothing", scenario_spsc},
	{"named_store", "one object at a time has a name, and lives as long as a reference", scenario_named_store},
	{"named_store_stopped", "a thread stopped anywhere stops nobody else", scenario_named_store_stopped},
	{"variable_read", "handles stay valid; versions never go back", scenario_variable_read},
	{"variable_counter", "no increment is lost; each gets its own version", scenario_variable_counter},
	{"variable_stopped", "a thread stopped anywhere stops no reader, writer or commit", scenario_variable_stopped},
	{"variable_handles", "handles beyond the slots, passed on, outliving thread and variable",
     scenario_variable_handles},
	{"snapshot_torn", "snapshots are of one instant and agree with real time", scenario_snapshot_torn},
	{"commit_conflict", "conflicting commits keep a total", scenario_commit_conflict},
	{"queue_fifo", "queues lose, double and reorder nothing, and hold what they say", scenario_queue_fifo},
	{"queue_shuffle", "the same of shuffle queues; the minimum stays behind", scenario_queue_shuffle},
	{"queue_priority", "the same of queues by priority, in all calls", scenario_queue_priority},
	{"queue_batch", "batches that give up put back what they hold, in order", scenario_queue_batch},
	{"queue_close", "closes at any moment: each item is delivered or dropped once, each call ends once",
     scenario_queue_close},
	{"queue_cancel", "tokens fired at any moment: the same", scenario_queue_cancel},
	{"queue_deadline", "deadlines at any moment: the same", scenario_queue_deadline},
	{"queue_select", "selects over several queues: an item goes in and comes out by one case, or by none",
     scenario_queue_select},
	{"queue_stopped", "a thread stopped anywhere holds up the call that it carries on, and no other",
     scenario_queue_stopped},
	{"priority_stopped", "a thread stopped anywhere in a priority queue stops nobody else", scenario_priority_stopped},
	{"tensor_queue", "a tuple's components stay together; each tuple comes out once", scenario_tensor_queue},
	{"barrier", "each key that is completed comes out once, whole; inserts are whole or not there", scenario_barrier},
	{"barrier_stopped", "a thread stopped anywhere in a barrier stops nobody else", scenario_barrier_stopped},
	{"staging_stopped", "a thread stopped anywhere in a staging area stops nobody else", scenario_staging_stopped},
	{"history_staging", "recorded histories of staging areas are linearizable", scenario_history_staging},
	{"pool", "tasks run as often as they were submitted", scenario_pool},
	{"coordinator", "stops asked for at once: one cause is kept, all threads end", scenario_coordinator},
	{"history_ring", "recorded histories of rings are linearizable", scenario_history_ring},
	{"history_mpsc", "the same of rings for one consumer", scenario_history_mpsc},
	{"history_queue_fifo", "the same of queues, beside calls that wait", scenario_history_queue_fifo},
	{"history_shuffle", "the same of shuffle queues: a pool with bounds", scenario_history_shuffle},
	{"history_priority", "the same of priority queues: smallest key first, equal keys in order",
     scenario_history_priority},
	{"history_variable", "the same of variables, by their versions", scenario_history_variable},
	{"history_snapshot", "the same of snapshots beside commits: strictly serializable", scenario_history_snapshot},
	{"history_commit", "the same of commits that conflict", scenario_history_commit},
	{"allocation_failures", "a call that found no memory has done nothing, and nothing leaks",
     scenario_allocation_failures},
	{"destroy_in_use", "destroying what is in use is refused, or safe", scenario_destroy_in_use},
	{"memory_bound", "memory keeps its bound beside a stalled reader and hoarded handles", scenario_memory_bound},
	{"thread_churn", "short-lived threads: records are used again, nothing is lost", scenario_thread_churn},
	{"signal_read", "signal handlers that interrupt anything read whole values", scenario_signal_read},
	{"fork", "the child of a process whose threads are anywhere goes on", scenario_fork},
	{"soak", "everything at once: queues, ring, variables; closes, tokens, deadlines, churn, stops, signals, refusals",
     scenario_soak},
	{"selftest_hang", NULL, scenario_selftest_hang},
	{"selftest_wrong", NULL, scenario_selftest_wrong},
	{"selftest_crash", NULL, scenario_selftest_crash},
};

int main(int argc, char *argv[])
{
	return stress_command(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
