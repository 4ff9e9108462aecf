/*
 * rust.c - the tables of the rivals in rust/: crossbeam's queues and epochs, and arc-swap.
 */
#include "rivals.h"

/* rust/src/queues.rs */
void *rust_array_create(size_t capacity);
void rust_array_destroy(void *self);
int rust_array_enqueue(void *self, uint64_t value);
int rust_array_dequeue(void *self, uint64_t *value);
uint64_t rust_array_pairs(void *self, uint64_t count);
void *rust_seg_create(size_t capacity);
void rust_seg_destroy(void *self);
int rust_seg_enqueue(void *self, uint64_t value);
int rust_seg_dequeue(void *self, uint64_t *value);
uint64_t rust_seg_pairs(void *self, uint64_t count);
void *rust_channel_create(size_t capacity);
void rust_channel_destroy(void *self);
int rust_channel_enqueue(void *self, uint64_t value);
int rust_channel_dequeue(void *self, uint64_t *value);
uint64_t rust_channel_pairs(void *self, uint64_t count);
void rust_channel_send(void *self, uint64_t value);
int rust_channel_receive(void *self, uint64_t *value);

/* rust/src/reads.rs */
void *rust_arc_swap_load_create(size_t bytes);
void *rust_arc_swap_load_full_create(size_t bytes);
void *rust_epoch_create(size_t bytes);
void rust_shared_destroy(void *self);
uint64_t rust_shared_read_many(void *self, uint64_t count);
uint64_t rust_shared_scan_many(void *self, uint64_t count);
void rust_shared_replace(void *self, uint64_t value);
void *rust_rcu_create(void);
void rust_rcu_destroy(void *self);
void rust_rcu_update_many(void *self, uint64_t count);
uint64_t rust_rcu_value(void *self);

const struct ring_contender crossbeam_array_ring_contender = {
	.about = {.name = "crossbeam ArrayQueue", .version = WEIR_BENCH_CROSSBEAM_QUEUE_VERSION},
	.create = rust_array_create,
	.destroy = rust_array_destroy,
	.enqueue = rust_array_enqueue,
	.dequeue = rust_array_dequeue,
	.pairs = rust_array_pairs,
};

const struct ring_contender crossbeam_seg_ring_contender = {
	.about = {.name = "crossbeam SegQueue", .version = WEIR_BENCH_CROSSBEAM_QUEUE_VERSION},
	.unbounded = 1,
	.create = rust_seg_create,
	.destroy = rust_seg_destroy,
	.enqueue = rust_seg_enqueue,
	.dequeue = rust_seg_dequeue,
	.pairs = rust_seg_pairs,
};

const struct ring_contender crossbeam_channel_ring_contender = {
	.about = {.name = "crossbeam channel", .version = WEIR_BENCH_CROSSBEAM_CHANNEL_VERSION},
	.create = rust_channel_create,
	.destroy = rust_channel_destroy,
	.enqueue = rust_channel_enqueue,
	.dequeue = rust_channel_dequeue,
	.pairs = rust_channel_pairs,
};

const struct queue_contender crossbeam_channel_queue_contender = {
	.about = {.name = "crossbeam channel", .version = WEIR_BENCH_CROSSBEAM_CHANNEL_VERSION},
	.create = rust_channel_create,
	.destroy = rust_channel_destroy,
	.enqueue = rust_channel_send,
	.dequeue = rust_channel_receive,
};

const struct read_contender arc_swap_load_contender = {
	.about = {.name = "arc-swap load", .version = WEIR_BENCH_ARC_SWAP_VERSION, .lock_free = 1},
	.create = rust_arc_swap_load_create,
	.destroy = rust_shared_destroy,
	.read_many = rust_shared_read_many,
	.scan_many = rust_shared_scan_many,
	.write = rust_shared_replace,
};

const struct read_contender arc_swap_load_full_contender = {
	.about = {.name = "arc-swap load_full", .version = WEIR_BENCH_ARC_SWAP_VERSION, .lock_free = 1},
	.create = rust_arc_swap_load_full_create,
	.destroy = rust_shared_destroy,
	.read_many = rust_shared_read_many,
	.scan_many = rust_shared_scan_many,
	.write = rust_shared_replace,
};

const struct read_contender crossbeam_epoch_contender = {
	.about = {.name = "crossbeam-epoch",
              .version = WEIR_BENCH_CROSSBEAM_EPOCH_VERSION,
              .lacks = "takes no reference; a stopped reader keeps all memory",
              .lock_free = 1},
	.create = rust_epoch_create,
	.destroy = rust_shared_destroy,
	.read_many = rust_shared_read_many,
	.scan_many = rust_shared_scan_many,
	.write = rust_shared_replace,
};

const struct update_contender arc_swap_update_contender = {
	.about = {.name = "arc-swap rcu", .version = WEIR_BENCH_ARC_SWAP_VERSION, .lock_free = 1},
	.create = rust_rcu_create,
	.destroy = rust_rcu_destroy,
	.update_many = rust_rcu_update_many,
	.value = rust_rcu_value,
};
