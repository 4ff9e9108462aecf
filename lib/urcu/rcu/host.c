/*
 * host.c - a flavour of liburcu as a host: attaching, grace periods, detaching.
 *
 * Algorithm. reclaim/host.h: begin an era, wait for a grace period of the flavour, advance the host
 * to that era. weir_urcu_synchronize() waits itself. weir_urcu_try_start() takes a free flight, which is
 * a callback for call_rcu() with the era that it stands for; the thread that runs the callback
 * advances the host and frees the flight. Flights may land in any order: the host only advances.
 * With WEIR_URCU_CALL_RCU, each collection starts a flight of each such host. A collection finds
 * the hosts in places that are never freed. A place counts the threads that use its host, and a
 * detach waits until there are none.
 *
 * liburcu is used through the table of the flavour alone: one library serves all flavours, and links
 * none.
 *
 * Invariants
 *   L1  a flight that is under way is with call_rcu() once: it is taken by a CAS, and freed by its
 *       callback
 *   L2  a place's host is not freed while `users` counts a thread that has found it there
 * Pairs
 *   P1  land(flight) -> take(flight): the callback has finished with it
 *   P2  show(place) -> find(place): the host
 *   P3  leave(place) -> detach: the last use of the host
 *   P4  start(flight) -> land(flight): the host, as the starting thread knows it. call_rcu() carries
 *       this too, but not where a checker sees it
 *   P5  leave_place(place) -> take_place(place): the host that was taken away comes before the next one
 *   S   users and host of a place: seq_cst. A user counts itself and then reads the host; a detach
 *       takes the host away and then reads the count. One of them sees the other.
 * Progress: a peek is wait-free (peek.c). Starting a flight takes WEIR_URCU_STARTED steps, apart
 *   from call_rcu(). A thread that is stopped between taking a flight and call_rcu() uses up this
 *   flight. If that happens to all, grace periods are started no more, and the budget refuses
 *   writers; weir_urcu_synchronize() goes on working.
 * Checked: stress/model/check_urcu.c, tests/test_urcu.c; reclaim/host.h by stress/model/check_host.c.
 */
#include <weir/urcu.h>

#include <sched.h>
#include <stdalign.h>
#include <unistd.h>
#include <urcu/call-rcu.h>
#include <urcu/flavor.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "reclaim/host.h"

struct flight {
	struct rcu_head head; /* first, see land() */
	_Atomic(uint32_t) under_way;
	_Atomic(uint64_t) era;
	weir_urcu *host;
};

struct weir_urcu {
	/* Constant. */
	const struct rcu_flavor_struct *flavour;
	struct weiri_record *record;
	struct place *place; /* NULL: without WEIR_URCU_CALL_RCU */
	pid_t process;       /* that attached it */
	weir_allocator allocator;
	struct flight flights[WEIR_URCU_STARTED];
};

struct place {
	_Atomic(weir_urcu *) host;
	_Atomic(uint32_t) users;
	_Atomic(uint32_t) taken;
};

static struct place places[WEIR_URCU_FLAVOURS];

/* -- flights ----------------------------------------------------------------------------------- */

/* Called after the grace period, on the thread of call_rcu(). */
static void land(struct rcu_head *head)
{
	struct flight *flight = WEIRI_CONTAINER_OF(head, struct flight, head);

	uint64_t era = weiri_load_acquire(&flight->era); /* [P4 acquire] pairs with start(). */

	weiri_host_advance(flight->host->record, era);
	/* [P1 release] pairs with take_flight(). */
	weiri_store_release(&flight->under_way, 0u);
}

static struct flight *take_flight(weir_urcu *host)
{
	for (size_t i = 0; i < WEIR_URCU_STARTED; i++) {
		uint32_t none = 0;

		/* [relaxed] a first look. [P1 acquire] pairs with land(). */
		if (weiri_load_relaxed(&host->flights[i].under_way) == 0 &&
		    weiri_cas_acquire(&host->flights[i].under_way, &none, 1u))
			return &host->flights[i];
	}
	return NULL;
}

static bool start(weir_urcu *host)
{
	struct flight *flight = take_flight(host);

	if (flight == NULL)
		return false;
	weiri_store_release(&flight->era, weiri_era_begin()); /* [P4 release] pairs with land(). */
	host->flavour->update_call_rcu(&flight->head, land);
	return true;
}

static bool any_under_way(weir_urcu *host)
{
	for (size_t i = 0; i < WEIR_URCU_STARTED; i++) {
		/* [P1 acquire] pairs with land(): the host may be freed. */
		if (weiri_load_acquire(&host->flights[i].under_way) != 0)
			return true;
	}
	return false;
}

enum weir_status weir_urcu_try_start(weir_urcu *host)
{
	if (host == NULL)
		return WEIR_INVALID_ARGUMENT;
	return start(host) ? WEIR_OK : WEIR_WOULD_BLOCK;
}

void weir_urcu_synchronize(weir_urcu *host)
{
	uint64_t era;

	if (host == NULL)
		return;
	era = weiri_era_begin();
	host->flavour->update_synchronize_rcu();
	weiri_host_advance(host->record, era);
}

/* -- places ------------------------------------------------------------------------------------ */

/* Called after each collection. */
static void start_everywhere(void)
{
	for (size_t i = 0; i < WEIR_URCU_FLAVOURS; i++) {
		weir_urcu *host;

		/* [relaxed] a first look, so that only a thread that may find a host is counted. */
		if (weiri_load_relaxed(&places[i].host) == NULL)
			continue;
		(void)weiri_fetch_add_seq_cst(&places[i].users, 1u); /* [S] L2 */
		host = weiri_load_seq_cst(&places[i].host);          /* [S, P2] */
		if (host != NULL)
			(void)start(host);
		(void)weiri_fetch_sub_release(&places[i].users, 1u); /* [P3 release] */
	}
}

static struct place *take_place(void)
{
	for (size_t i = 0; i < WEIR_URCU_FLAVOURS; i++) {
		uint32_t none = 0;

		/* [P5 acquire] pairs with leave_place(). */
		if (weiri_cas_acquire(&places[i].taken, &none, 1u))
			return &places[i];
	}
	return NULL;
}

/* Returns when no thread uses the host by its place. */
static void leave_place(struct place *place)
{
	weiri_store_seq_cst(&place->host, NULL); /* [S] L2 */
	/* [S] as above; [P3 acquire] pairs with start_everywhere(). */
	while (weiri_load_seq_cst(&place->users) != 0)
		(void)sched_yield();
	weiri_store_release(&place->taken, 0u); /* [P5 release] pairs with take_place(). */
}

/* -- attaching and detaching ------------------------------------------------------------------- */

static bool is_complete(const struct rcu_flavor_struct *flavour)
{
	return flavour->update_call_rcu != NULL && flavour->update_synchronize_rcu != NULL && flavour->barrier != NULL;
}

static enum weir_status read_options(const struct rcu_flavor_struct *flavour, const struct weir_urcu_options *options,
                                     struct weir_urcu_options *given, weir_error *error)
{
	enum weir_status status;

	if (flavour == NULL || !is_complete(flavour))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "urcu: the flavour %s",
		                  flavour == NULL ? "is NULL" : "lacks synchronize_rcu, call_rcu or rcu_barrier");
	status = weiri_options_read("urcu", options, given, sizeof(*given), error);
	return status == WEIR_OK ? weiri_options_flags("urcu", given->flags, WEIR_URCU_CALL_RCU, error) : status;
}

static weir_urcu *create(const struct rcu_flavor_struct *flavour, const weir_allocator *allocator)
{
	weir_urcu *host = weiri_allocate_zeroed(allocator, sizeof(*host), alignof(weir_urcu));

	if (host == NULL)
		return NULL;
	host->flavour = flavour;
	host->process = getpid();
	host->allocator = *allocator;
	for (size_t i = 0; i < WEIR_URCU_STARTED; i++)
		host->flights[i].host = host;
	host->record = weiri_host_open();
	if (host->record == NULL) {
		weiri_release(allocator, host, sizeof(*host), alignof(weir_urcu));
		return NULL;
	}
	return host;
}

static void destroy(weir_urcu *host)
{
	weir_allocator allocator = host->allocator;

	weiri_host_close(host->record);
	weiri_release(&allocator, host, sizeof(*host), alignof(weir_urcu));
}

enum weir_status weir_urcu_attach(const struct rcu_flavor_struct *flavour, const struct weir_urcu_options *options,
                                  weir_urcu **out, weir_error *error)
{
	struct weir_urcu_options given;
	enum weir_status status;
	weir_allocator allocator;
	weir_urcu *host;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "urcu: out is NULL");
	status = read_options(flavour, options, &given, error);
	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(given.allocator);
	host = create(flavour, &allocator);
	if (host == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "urcu: no memory");
	if ((given.flags & WEIR_URCU_CALL_RCU) != 0) {
		host->place = take_place();
		if (host->place == NULL) {
			destroy(host);
			return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "urcu: %d flavours are attached with call_rcu",
			                  (int)WEIR_URCU_FLAVOURS);
		}
		weiri_store_release(&host->place->host, host); /* [P2 release] pairs with start_everywhere(). */
		weiri_host_set_wanted(start_everywhere);
	}
	*out = host;
	return WEIR_OK;
}

/*
 * Returns true if the host waits, perhaps for ever, for a thread that the child of a fork lacks: one that had
 * taken a flight and not yet called call_rcu(), or that was at the host's place.
 */
static bool waits_for_parent(weir_urcu *host)
{
	/* [relaxed] Threads of the parent left what they left before the fork. Those of the child end by themselves. */
	return host->process != getpid() &&
	       (any_under_way(host) || (host->place != NULL && weiri_load_relaxed(&host->place->users) != 0));
}

enum weir_status weir_urcu_detach(weir_urcu *host, weir_error *error)
{
	if (host == NULL)
		return WEIR_OK;
	if (waits_for_parent(host))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "urcu: a grace period has been started and has not ended, and in the child of a fork it may "
		                  "never");
	if (host->place != NULL)
		leave_place(host->place);
	host->flavour->update_synchronize_rcu();
	/* A thread may have taken a flight and not called call_rcu() yet. */
	while (any_under_way(host)) {
		host->flavour->barrier();
		(void)sched_yield();
	}
	destroy(host);
	return WEIR_OK;
}
