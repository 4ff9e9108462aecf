/*
 * txn.h - transactions: reads and writes of many variables that take effect at one instant, or not at all.
 *
 * Use it when what is written depends on what was read and the set of variables is found on the way: transfers, graphs, tables
 * that point to each other. When the set is known beforehand, weir_var_snapshot and weir_var_commit do with less; one variable:
 * weir_var_update. Not for long computations beside many writers: whoever commits first wins, and the others begin again.
 *
 * | call                      | threads           | progress                       | blocks on                     | allocates | signal-safe |
 * |---------------------------|-------------------|--------------------------------|-------------------------------|-----------|-------------|
 * | weir_txn_begin            | any               | allocator                      | allocator                     | yes       | no          |
 * | weir_txn_read             | one at a time (1) | lock-free (2)                  | nothing                       | when it grows | no      |
 * | weir_txn_version          | one at a time (1) | wait-free                      | nothing                       | no        | no          |
 * | weir_txn_assign           | one at a time (1) | wait-free but for its allocation | nothing                     | when it grows | no      |
 * | weir_txn_commit           | one at a time (1) | wait-free when nothing was assigned, else lock-free after its allocation | the retire budget, up to the deadline | yes | no |
 * | weir_txn_abort            | one at a time (1) | wait-free (3)                  | nothing                       | no        | no          |
 * | weir_txn_run              | any               | lock-free + fn; one may starve (4) | the retire budget, up to the deadline | yes | no      |
 *
 * (1) It may move from thread to thread, if one hands it to the next. (2) Starts again only when another thread's write went in
 * meanwhile. An aborted transaction of another thread makes nobody start again. (3) But for tensors whose last reference it
 * drops. (4) Some transaction commits, not each: back-off makes it likely that each does soon, and the deadline bounds it.
 *
 * What is promised
 *   Opacity: all that a transaction reads, also one that is going to be aborted, was the newest at one instant since it began.
 *     So code between begin and commit never meets a state that never was (Guerraoui and Kapalka, PPoPP 2008).
 *   Without an assign: a commit succeeds, and that instant is the transaction's place in the order of all.
 *   With one: strict serializability. At the instant of the commit every variable read is still at the version read. Write skew
 *     cannot happen. Variables that were read and not assigned keep their version numbers.
 * A transaction sees its own assigns. Nobody else sees one before the commit.
 *
 * Source: lazy snapshots extended on demand (Riegel, Felber, Fetzer, DISC 2006) for the reads, weir_var_commit with marks for
 * the read set; lib/var/txn.c. @since 0.1
 */
#ifndef WEIR_TXN_H
#define WEIR_TXN_H

#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>
#include <weir/tensor.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

typedef struct weir_txn weir_txn;

/* The most variables that one transaction can read and assign. */
enum { WEIR_TXN_MAX_VARIABLES = WEIR_COMMIT_MAX_PARTS };

/*
 * A transaction, to be ended by weir_txn_commit or weir_txn_abort. Until then no variable that it has used may be destroyed.
 * allocator may be NULL. WEIR_INVALID_ARGUMENT (out NULL), WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_txn_begin(const weir_allocator *allocator, weir_txn **out, weir_error *error);

/*
 * *value is what the variable holds in this transaction: what it assigned itself, or the version of its instant. Borrowed: good
 * until the transaction ends, or assigns this variable again; retain it to keep it longer.
 * WEIR_ABORTED: a variable read before has moved on, so that there is no such instant any more; *error names it, and every
 * later call says the same: end the transaction and begin again. WEIR_FAILED_PRECONDITION: the variable is not initialized;
 * that counts as read. WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED (memory; more than WEIR_TXN_MAX_VARIABLES; the
 * transaction stays as it was). @since 0.1
 */
WEIR_API enum weir_status weir_txn_read(weir_txn *txn, weir_var *var, weir_tensor **value, weir_error *error);
/*
 * The number of the version of var that the transaction has read; 0 when it has not, or when there was no value. Wait-free. If
 * the transaction assigns var and commits, it publishes the next number. @since 0.1
 */
WEIR_API uint64_t weir_txn_version(const weir_txn *txn, const weir_var *var);
/*
 * The variable gets `value` with the commit; the transaction takes its own reference. A variable that is assigned without
 * having been read may change meanwhile, and is overwritten. WEIR_INVALID_ARGUMENT (NULL, dtype or shape does not fit),
 * WEIR_ABORTED and WEIR_RESOURCE_EXHAUSTED as weir_txn_read. @since 0.1
 */
WEIR_API enum weir_status weir_txn_assign(weir_txn *txn, weir_var *var, weir_tensor *value, weir_error *error);

/*
 * Publishes all that was assigned at one instant, if every variable read is still at the version read. Ends and frees the
 * transaction, whatever it says. WEIR_ABORTED: nothing was published; *error names a variable that moved.
 * WEIR_RESOURCE_EXHAUSTED: memory, or the retired bytes were over the budget until deadline_ns; nothing was published.
 * WEIR_INVALID_ARGUMENT (NULL). @since 0.1
 */
WEIR_API enum weir_status weir_txn_commit(weir_txn *txn, uint64_t deadline_ns, weir_error *error);
/* Ends and frees the transaction; nothing was published. Accepts NULL. @since 0.1 */
WEIR_API void weir_txn_abort(weir_txn *txn);

/*
 * The body of a transaction. It runs once per attempt, outside of any critical section, so it must do nothing that cannot be
 * done again. It neither commits nor aborts `txn`. WEIR_OK: commit. WEIR_ABORTED, from a read or of its own accord: try again.
 * Any other status ends the transaction with it, and nothing is published.
 */
typedef enum weir_status weir_txn_fn(void *context, weir_txn *txn, weir_error *error);
/*
 * Runs fn until its transaction commits. Between attempts it backs off, for a random time that doubles, a tenth of a
 * millisecond at most. WEIR_DEADLINE_EXCEEDED: an attempt was aborted and deadline_ns has passed; *error has the last reason.
 * There is one attempt in any case. WEIR_INVALID_ARGUMENT (fn NULL), fn's status, and those of begin and commit. allocator may
 * be NULL. @since 0.1
 */
WEIR_API enum weir_status weir_txn_run(const weir_allocator *allocator, weir_txn_fn *fn, void *context,
                                       uint64_t deadline_ns, weir_error *error);

WEIR_END_DECLS

#endif
