/*
 * txn.h - transactions: reads and writes of many variables at one instant, or not at all.
 *
 * Use it if the values written depend on the values read, and the set of variables is found on the
 * way: transfers, graphs, tables that point to each other. If the set is known beforehand,
 * weir_var_snapshot() and weir_var_commit() do less; for one variable, use weir_var_update(). Avoid
 * long computations while there are many writers: the first to commit wins, and the others begin
 * again.
 *
 * | call           | threads           | progress          | blocks on  | allocates | signal-safe |
 * |----------------|-------------------|-------------------|------------|-----------|-------------|
 * | weir_txn_begin | any               | allocator         | allocator  | yes       | no          |
 * | weir_txn_read  | one at a time (1) | lock-free (2)     | nothing    | to grow   | no          |
 * | weir_txn_version | one at a time (1) | wait-free       | nothing    | no        | no          |
 * | weir_txn_assign | one at a time (1) | wait-free (5)    | nothing    | to grow   | no          |
 * | weir_txn_commit | one at a time (1) | lock-free (5) (6) | budget (7) | yes      | no          |
 * | weir_txn_abort | one at a time (1) | wait-free (3)     | nothing    | no        | no          |
 * | weir_txn_run   | any               | lock-free + fn (4) | budget (7) | yes      | no          |
 *
 * (1) One thread may hand it to another.
 * (2) A read starts again only if a write of another thread succeeded meanwhile; an aborted
 *     transaction of another thread causes no restart.
 * (3) Except for tensors whose last reference it drops.
 * (4) Some write succeeds, a transaction or another, but a single transaction may starve, since others
 *     do not give way to it as to weir_var_update(). Back-off makes that unlikely beside transactions
 *     that take as long, and the deadline bounds it.
 * (5) After its allocation.
 * (6) Wait-free if nothing was assigned.
 * (7) While the retired bytes exceed the budget (weir/reclaim.h), up to the deadline.
 *
 * Promises.
 * - Opacity: all values that a transaction reads, even one that will abort, were the newest at one
 *   instant since it began. So code between begin and commit never sees an inconsistent state
 *   (Guerraoui and Kapalka, PPoPP 2008).
 * - Without an assign, the commit succeeds, and that instant is the transaction's place in the
 *   order of all operations.
 * - With an assign: strict serializability. At the instant of the commit every variable read still
 *   has the version read, so write skew cannot happen. Variables that were read and not assigned
 *   keep their version numbers.
 * - A transaction sees its own assigns. No other thread sees them before the commit.
 *
 * Sources: lazy snapshots extended on demand (Riegel, Felber, Fetzer, DISC 2006) for the reads;
 * weir_var_commit() with marks for the read set: lib/weir/var/txn.c.
 * @since 0.1
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
enum weir_txn_limits { WEIR_TXN_MAX_VARIABLES = 1024 /* WEIR_COMMIT_MAX_PARTS */ };

/*
 * Begins a transaction, which weir_txn_commit() or weir_txn_abort() ends. Until then no variable
 * that it has used may be destroyed. allocator may be NULL. Errors: WEIR_INVALID_ARGUMENT (out
 * NULL), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_txn_begin(const weir_allocator *allocator, weir_txn **out,
                                         weir_error *error);

/*
 * Reads a variable: *value is what the transaction assigned to it, or its version at the
 * transaction's instant. The tensor is borrowed. It is valid until the transaction ends or assigns
 * this variable again; retain it to keep it longer.
 *
 * Errors: WEIR_ABORTED if a variable read before has moved, so that there is no such instant any
 * longer. *error names it, and every later call returns the same: end the transaction and begin
 * again. WEIR_FAILED_PRECONDITION if the variable is not initialized; that counts as read.
 * WEIR_INVALID_ARGUMENT (NULL). WEIR_RESOURCE_EXHAUSTED if there is no memory, or for more than
 * WEIR_TXN_MAX_VARIABLES; the transaction is then unchanged.
 * @since 0.1
 */
WEIR_API enum weir_status weir_txn_read(weir_txn *txn, weir_var *var, weir_tensor **value,
                                        weir_error *error);

/*
 * The number of the version of var that the transaction has read; 0 if it has not read var, or if
 * var had no value. If the transaction assigns var and commits, it publishes the next number.
 * Wait-free.
 * @since 0.1
 */
WEIR_API uint64_t weir_txn_version(const weir_txn *txn, const weir_var *var);

/*
 * Assigns `value` to the variable when the transaction commits. The transaction takes its own
 * reference. A variable that is assigned and was not read may change meanwhile, and is overwritten.
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, or the dtype or shape does not fit.
 * WEIR_ABORTED and WEIR_RESOURCE_EXHAUSTED as weir_txn_read().
 * @since 0.1
 */
WEIR_API enum weir_status weir_txn_assign(weir_txn *txn, weir_var *var, weir_tensor *value,
                                          weir_error *error);

/*
 * Publishes everything assigned at one instant, if every variable read still has the version read.
 * Ends and frees the transaction, whatever the status.
 *
 * Errors, after which nothing was published: WEIR_ABORTED; *error names a variable that moved.
 * WEIR_RESOURCE_EXHAUSTED if there is no memory, or the retired bytes exceeded the budget until
 * deadline_ns. WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_txn_commit(weir_txn *txn, uint64_t deadline_ns, weir_error *error);
/* Ends and frees the transaction; nothing was published. Accepts NULL. @since 0.1 */
WEIR_API void weir_txn_abort(weir_txn *txn);

/*
 * The body of a transaction. It runs once per attempt, outside of any section, so it must do
 * nothing that cannot be repeated. It neither commits nor aborts `txn`. WEIR_OK requests a commit.
 * WEIR_ABORTED, from a read or of its own, requests another attempt. Any other status ends the
 * transaction with that status, and nothing is published. `error` is never NULL; it may explain a
 * status other than WEIR_OK.
 */
typedef enum weir_status weir_txn_fn(void *context, weir_txn *txn, weir_error *error);

/*
 * Runs fn until its transaction commits. Between attempts it backs off for a random time that
 * doubles, up to a tenth of a millisecond. There is at least one attempt. allocator may be NULL.
 *
 * Errors: WEIR_DEADLINE_EXCEEDED if an attempt was aborted and deadline_ns has passed; *error has
 * the last reason. WEIR_INVALID_ARGUMENT (fn NULL). The status of fn, and those of begin and
 * commit.
 * @since 0.1
 */
WEIR_API enum weir_status weir_txn_run(const weir_allocator *allocator, weir_txn_fn *fn,
                                       void *context, uint64_t deadline_ns, weir_error *error);

WEIR_END_DECLS

#endif
