/*
 * urcu.h - variables for programs that live in liburcu's world: reads inside the program's own
 * rcu_read_lock() sections, without a handle.
 *
 * Use it if your readers already run in sections of a flavour of liburcu (memb, mb, qsbr, bp). In
 * every other program use handles (weir/var.h), caches (weir/var_cache.h), or a section of Weir:
 * they need no grace period, and a stopped thread does not stop their reclamation. This header
 * belongs to a library of its own, libweir-urcu (pkg-config: weir-urcu). It serves all flavours, and
 * gets the one in use as liburcu's table of functions.
 *
 *     #define URCU_API_MAP
 *     #include <urcu/urcu-memb.h>
 *     #include <weir/urcu.h>
 *
 *     status = weir_urcu_attach(&rcu_flavor, NULL, &host, &error);
 *
 *     rcu_read_lock();
 *     read = weir_urcu_peek(config);
 *     use(read->tensor);
 *     rcu_read_unlock();
 *
 *     weir_urcu_synchronize(host);        in a thread of your choice, now and then
 *
 * | call                  | threads   | progress  | blocks on        | allocates  | signal-safe |
 * |-----------------------|-----------|-----------|------------------|------------|-------------|
 * | weir_urcu_attach      | one       | allocator | allocator        | yes        | no          |
 * | weir_urcu_peek        | any       | wait-free | nothing          | no         | yes (1)     |
 * | weir_urcu_synchronize | any       | blocking  | RCU readers      | no         | no          |
 * | weir_urcu_try_start   | any (2)   | as call_rcu() | nothing (3)  | no         | no          |
 * | weir_urcu_detach      | one, last | blocking  | RCU readers (4)  | no         | no          |
 *
 * (1) If the section is.
 * (2) A thread that may call call_rcu(): registered and, with qsbr, online.
 * (3) What call_rcu() of the flavour waits for: its first call creates a thread if the program has
 *     created none with create_call_rcu_data() and set it.
 * (4) And on threads that are inside weir_urcu_try_start(), or a call of Weir that starts a grace period.
 *
 * What it costs. While a flavour is attached, nothing that is replaced in the process is freed
 * before a grace period of the flavour that began afterwards: of all variables, stores and areas,
 * also of those that no section reads. So a reader that is stopped in its section, or a qsbr thread
 * that reports no quiescent state, stops all freeing, as with liburcu alone. Three things are
 * different here:
 *   * The budget (weir/reclaim.h) cuts it off. Writers whose retired bytes exceed it wait up to
 *     their deadlines, and then get WEIR_RESOURCE_EXHAUSTED. The heap does not grow further.
 *   * weir_stalls_visit() and the stall hook (weir/stall.h) report it as WEIR_STALL_HOST, with the
 *     time for which what is kept has waited.
 *   * No write waits for a grace period while the budget lasts. Handles, caches and sections of Weir
 *     keep their bounds.
 *
 * Grace periods. Weir starts no thread and never calls synchronize_rcu() inside a write: a writer
 * has a deadline, and synchronize_rcu() has none. The program chooses who waits:
 *   * weir_urcu_synchronize(), in a thread that may block: one of its own, or a writer between two
 *     writes. Until it is called, nothing is freed.
 *   * weir_urcu_try_start() never waits. The thread of call_rcu() waits, if the program has one.
 *   * WEIR_URCU_CALL_RCU: each collection does what weir_urcu_try_start() does. Then every thread that
 *     writes, flushes or destroys objects of Weir must be one that may call call_rcu().
 * When a grace period has ended, writers that wait for memory are woken, and the next collection
 * frees what it can; weir_reclaim_flush() collects at once.
 *
 * Do not wait in a section. A write inside an RCU section may wait for memory that its own section
 * keeps; give it the deadline 0. An online thread of qsbr is in a section all the time: it gives
 * writes the deadline 0, and when one is refused reports a quiescent state and tries again; or it is
 * offline (rcu_thread_offline()) while it calls Weir, where WEIR_URCU_CALL_RCU is not used.
 * weir_urcu_synchronize() in a section of the calling thread never returns, as synchronize_rcu().
 *
 * Ordering. A peek is linearizable, as weir_var_read(). A program under ThreadSanitizer must show it
 * the order of an unlock before the grace period, which an uninstrumented liburcu hides
 * (tests/test_urcu.c has a flavour that does).
 *
 * Fork. The child has the attached flavours. It must do for liburcu what that asks for, such as
 * call_rcu_after_fork_child(). A grace period that another thread of the parent was just starting
 * counts as under way for ever in the child: weir_urcu_detach() is refused there, and all else works.
 *
 * In weir_reclaim_get_stats() each attached flavour counts as one thread.
 * @since 0.1
 */
#ifndef WEIR_URCU_H
#define WEIR_URCU_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

/* Of liburcu, <urcu/flavor.h>: each of its flavour headers maps `rcu_flavor` to its own table. */
struct rcu_flavor_struct;

typedef struct weir_urcu weir_urcu;

enum weir_urcu_flags {
	/* Collections start grace periods with call_rcu(); see "Grace periods". */
	WEIR_URCU_CALL_RCU = 1
};

/*
 * How many grace periods may have been started with weir_urcu_try_start() or WEIR_URCU_CALL_RCU and
 * not ended; and how many flavours may be attached with that flag at one time.
 */
enum weir_urcu_limits { WEIR_URCU_STARTED = 8, WEIR_URCU_FLAVOURS = 8 };

struct weir_urcu_options {
	size_t struct_size; /* WEIR_URCU_OPTIONS_INIT sets it */
	uint32_t flags;     /* enum weir_urcu_flags */
	/* NULL: the default allocator. It gets its memory back when the flavour is detached. */
	const weir_allocator *allocator;
};
#define WEIR_URCU_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_urcu_options)

/*
 * Attaches a flavour, such as &rcu_flavor of the program's flavour header; it must stay loaded. From
 * the return on, sections of the flavour may peek. The flavour's sections that are open now may not
 * peek before they end, unless they synchronize with this call otherwise. options may be NULL.
 *
 * Errors: WEIR_INVALID_ARGUMENT if flavour or out is NULL, a flag is unknown, struct_size is wrong,
 * or the table has no function that is needed. WEIR_RESOURCE_EXHAUSTED if there is no memory, or
 * WEIR_URCU_FLAVOURS flavours are attached with WEIR_URCU_CALL_RCU.
 * @since 0.1
 */
WEIR_API enum weir_status weir_urcu_attach(const struct rcu_flavor_struct *flavour,
                                           const struct weir_urcu_options *options, weir_urcu **out,
                                           weir_error *error);

/*
 * Waits for a grace period, and detaches the flavour. The program has made sure that no section
 * peeks any more that begins during the call or later. The calling thread is not in a section of
 * the flavour. Accepts NULL.
 *
 * Errors: WEIR_FAILED_PRECONDITION, after which nothing has happened, only if a fork has taken place since
 * the attach, this process is the child, and a grace period that weir_urcu_try_start() or a collection
 * started has not ended. If it is the child's own, or call_rcu() had it before the fork, it has ended after
 * an rcu_barrier() of the flavour; otherwise the flavour stays attached.
 * @since 0.1
 */
WEIR_API enum weir_status weir_urcu_detach(weir_urcu *host, weir_error *error);

/*
 * Returns the newest version of the variable. It is not a handle: there is nothing to release. It is
 * valid until the calling thread ends its section of an attached flavour (qsbr: until its next
 * quiescent state). Retain a tensor, or take a handle, to keep it longer. Returns NULL if `var` is
 * NULL or not initialized. The variable must not be destroyed before the section ends, unless that
 * is done after a grace period.
 * @since 0.1
 */
WEIR_API const weir_read *weir_urcu_peek(weir_var *var);

/*
 * Waits for a grace period with synchronize_rcu() of the flavour. Afterwards what was replaced
 * before the call may be freed. What a commit, or a sum of large tensors, needed for itself (some 100
 * bytes), and no collection has met yet, needs one more grace period after that collection. The calling
 * thread is not in a section of the flavour. Accepts NULL.
 * @since 0.1
 */
WEIR_API void weir_urcu_synchronize(weir_urcu *host);

/*
 * Starts a grace period with call_rcu() of the flavour. When it ends, what was replaced before the
 * call may be freed. Never waits for readers.
 *
 * Errors: WEIR_WOULD_BLOCK if WEIR_URCU_STARTED are under way; then one of them covers most of what
 * was replaced. WEIR_INVALID_ARGUMENT if host is NULL.
 * @since 0.1
 */
WEIR_API enum weir_status weir_urcu_try_start(weir_urcu *host);

WEIR_END_DECLS

#endif
