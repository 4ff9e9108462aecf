/*
 * shm_latest.c - the public face of the newest value between processes: files, seats, the writer's
 * role, and copies.
 *
 * newest.c finds buffers and seats, doorbell.c waits, seats.c knows which process is gone,
 * mapping.c maps.
 */
#include <weir/shm_latest.h>

#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/try_token.h"
#include "shm/doorbell.h"
#include "shm/mapping.h"
#include "shm/newest.h"
#include "shm/seats.h"

static const char what[] = "shm_latest";

enum { DEFAULT_PROCESSES = 16, DEFAULT_READS = 2 };

struct weir_shm_latest {
	struct weiri_newest newest; /* newest.shared is NULL in the child of a fork, where all is 0 */
	struct weiri_bell bell;
	struct weiri_try_token writing; /* by a thread of this process */
	uint64_t identity;              /* of this process */
	struct weiri_mapping mapping;
};

_Static_assert((int)WEIR_SHM_LATEST_MAX_VALUE == (int)WEIRI_NEWEST_MAX_VALUE &&
                   (int)WEIR_SHM_LATEST_MAX_PROCESSES == (int)WEIRI_NEWEST_MAX_SEATS &&
                   (int)WEIR_SHM_LATEST_MAX_READS == (int)WEIRI_NEWEST_MAX_CLAIMS,
               "what the header promises");

static bool is_forked(const weir_shm_latest *latest)
{
	return WEIRI_UNLIKELY(latest->newest.shared == NULL);
}

/* -- create and attach ------------------------------------------------------------------------- */

static enum weir_status read_options(size_t value_size, const struct weir_shm_latest_options *options,
                                     struct weiri_mapping_head *head, weir_error *error)
{
	struct weir_shm_latest_options given;
	enum weir_status status;

	if (value_size == 0 || value_size > WEIR_SHM_LATEST_MAX_VALUE)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: value_size is %zu, must be 1 to %d", what, value_size,
		                  WEIR_SHM_LATEST_MAX_VALUE);
	status = weiri_options_read(what, options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags(what, given.flags, 0, error);
	if (status != WEIR_OK)
		return status;
	if (given.processes > WEIR_SHM_LATEST_MAX_PROCESSES || given.reads_per_process > WEIR_SHM_LATEST_MAX_READS)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "%s: %u processes with %u reads each, must be at most %d with %d", what,
		                  (unsigned)given.processes, (unsigned)given.reads_per_process, WEIR_SHM_LATEST_MAX_PROCESSES,
		                  WEIR_SHM_LATEST_MAX_READS);
	*head = (struct weiri_mapping_head){
		.kind = WEIRI_MAPPING_LATEST,
		.version = WEIRI_MAPPING_VERSION,
		.capacity = 1,
		.item_size = (uint32_t)value_size,
		.seats = given.processes != 0 ? given.processes : DEFAULT_PROCESSES,
		.hands = given.reads_per_process != 0 ? given.reads_per_process : DEFAULT_READS,
		.namespace = weiri_seats_namespace(),
	};
	return WEIR_OK;
}

static struct weiri_newest_geometry geometry_of(const struct weiri_mapping_head *head)
{
	return (struct weiri_newest_geometry){head->item_size, head->seats, head->hands};
}

/* Makes the handle in the private memory. */
static weir_shm_latest *open_mapping(const struct weiri_mapping *mapping, const struct weiri_newest_geometry *geometry,
                                     const struct weiri_newest_layout *layout, uint64_t identity)
{
	weir_shm_latest *latest = (weir_shm_latest *)(void *)mapping->base;

	latest->mapping = *mapping;
	latest->identity = identity;
	/* cppcheck-suppress AssignmentAddressToInteger ; the word is a pointer */
	latest->bell.word = (_Atomic(uint32_t) *)(void *)(mapping->shared + layout->bell);
	weiri_store_relaxed(&latest->bell.eventfd, -1); /* [relaxed] not published yet */
	weiri_newest_open(&latest->newest, geometry, layout, mapping->shared);
	return latest;
}

static enum weir_status sit_down(weir_shm_latest *latest, weir_error *error)
{
	const uint32_t count = latest->newest.geometry.seats;

	if (weiri_newest_sit(&latest->newest, latest->identity))
		return WEIR_OK;
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s: %u process%s attached, and no more can be", what,
	                  (unsigned)count, count == 1 ? " is" : "es are");
}

static enum weir_status know_self(uint64_t *identity, weir_error *error)
{
	*identity = weiri_seats_self();
	if (*identity == 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: /proc does not tell when this process started", what);
	return WEIR_OK;
}

/* Makes the handle, sits down, and publishes the head unless fd is -1. Unmaps on failure. */
static enum weir_status start(int fd, const struct weiri_mapping *mapping, const struct weiri_mapping_head *head,
                              uint64_t identity, weir_shm_latest **out, weir_error *error)
{
	const struct weiri_newest_geometry geometry = geometry_of(head);
	struct weiri_newest_layout layout;
	enum weir_status status;
	weir_shm_latest *latest;

	(void)weiri_newest_lay_out(&geometry, &layout); /* the caller has checked the geometry */
	latest = open_mapping(mapping, &geometry, &layout, identity);
	status = sit_down(latest, error);
	if (status == WEIR_OK && fd >= 0)
		status = weiri_mapping_publish(what, fd, head, error);
	if (status == WEIR_OK) {
		*out = latest;
	} else {
		weiri_mapping_close(mapping);
	}
	return status;
}

enum weir_status weir_shm_latest_create(int fd, size_t value_size, const struct weir_shm_latest_options *options,
                                        weir_shm_latest **out, weir_error *error)
{
	struct weiri_mapping_head head;
	struct weiri_newest_geometry geometry;
	struct weiri_newest_layout layout;
	struct weiri_mapping mapping;
	enum weir_status status;
	uint64_t identity;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: out is NULL", what);
	status = read_options(value_size, options, &head, error);
	if (status == WEIR_OK)
		status = know_self(&identity, error);
	if (status != WEIR_OK)
		return status;
	geometry = geometry_of(&head);
	if (!weiri_newest_lay_out(&geometry, &layout))
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s: the buffers do not fit into the address space", what);
	head.size = layout.size;
	status = weiri_mapping_create(what, fd, &head, sizeof(weir_shm_latest), &mapping, error);
	return status == WEIR_OK ? start(fd, &mapping, &head, identity, out, error) : status;
}

enum weir_status weir_shm_latest_attach(int fd, weir_shm_latest **out, weir_error *error)
{
	struct weiri_mapping_head head;
	struct weiri_newest_geometry geometry;
	struct weiri_newest_layout layout;
	struct weiri_mapping mapping;
	enum weir_status status;
	uint64_t identity;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: out is NULL", what);
	status = weiri_mapping_read(what, fd, WEIRI_MAPPING_LATEST, &head, error);
	if (status == WEIR_OK)
		status = know_self(&identity, error);
	if (status != WEIR_OK)
		return status;
	geometry = geometry_of(&head);
	if (!weiri_newest_lay_out(&geometry, &layout) || head.size != layout.size || head.capacity != 1)
		return weiri_fail(error, WEIR_DATA_LOSS, "%s: the head describes no value", what);
	status = weiri_mapping_open(what, fd, &head, sizeof(weir_shm_latest), &mapping, error);
	return status == WEIR_OK ? start(-1, &mapping, &head, identity, out, error) : status;
}

enum weir_status weir_shm_latest_destroy(weir_shm_latest *latest, weir_error *error)
{
	struct weiri_mapping mapping;
	uint64_t all;

	if (latest == NULL)
		return WEIR_OK;
	if (is_forked(latest))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: the handle belongs to the parent of this process",
		                  what);
	/* [acquire] pairs with the hook's last access (doorbell.c). */
	if (weiri_load_acquire(&latest->bell.tokens) != 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: a token that is being fired still wakes a waiter",
		                  what);
	all = UINT64_MAX >> (64 - latest->newest.geometry.claims);
	/* [acquire] pairs with the end of the last reads. */
	if (!weiri_try_token_take(&latest->writing))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: a write is under way", what);
	if (!weiri_cas_acquire(&latest->newest.idle, &all, UINT64_C(0))) {
		weiri_try_token_give(&latest->writing);
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: a read is under way", what);
	}
	weiri_newest_leave(&latest->newest, latest->identity);
	mapping = latest->mapping;
	weiri_mapping_close(&mapping);
	return WEIR_OK;
}

/* -- write ------------------------------------------------------------------------------------- */

static enum weir_status write_alone(weir_shm_latest *latest, const void *data, size_t size, uint64_t *version,
                                    weir_error *error)
{
	struct weiri_buffer *buffer;
	uint64_t published;
	uint32_t number;

	if (WEIRI_UNLIKELY(latest->newest.role == 0) && !weiri_newest_become_writer(&latest->newest))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: another process is the writer", what);
	buffer = weiri_newest_prepare(&latest->newest, &number);
	weiri_store_relaxed(&buffer->size, size); /* [relaxed] P1 publishes it */
	memcpy(buffer->value, data, size);
	published = weiri_newest_publish(&latest->newest, number);
	weiri_bell_ring(&latest->bell);
	if (version != NULL)
		*version = published;
	return WEIR_OK;
}

enum weir_status weir_shm_latest_write(weir_shm_latest *latest, const void *data, size_t size, uint64_t *version,
                                       weir_error *error)
{
	enum weir_status status;

	if (latest == NULL || data == NULL || size == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: an argument is NULL, or size is 0", what);
	if (is_forked(latest))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: the handle belongs to the parent of this process",
		                  what);
	if (size > latest->newest.geometry.value_size)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: size is %zu, must be at most %u", what, size,
		                  (unsigned)latest->newest.geometry.value_size);
	if (!weiri_try_token_take(&latest->writing))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: another thread writes now", what);
	status = write_alone(latest, data, size, version, error);
	weiri_try_token_give(&latest->writing);
	return status;
}

/* -- read -------------------------------------------------------------------------------------- */

enum weir_status weir_shm_latest_try_read(weir_shm_latest *latest, uint64_t newer_than, void *buffer, size_t room,
                                          size_t *size, uint64_t *version)
{
	const struct weiri_buffer *found;
	uint64_t found_size;
	int claim;

	if (WEIRI_UNLIKELY(latest == NULL || buffer == NULL))
		return WEIR_INVALID_ARGUMENT;
	if (is_forked(latest))
		return WEIR_FAILED_PRECONDITION;
	if (WEIRI_UNLIKELY(room < latest->newest.geometry.value_size))
		return WEIR_INVALID_ARGUMENT;
	if (weiri_newest_version(&latest->newest) <= newer_than)
		return WEIR_WOULD_BLOCK;
	found = weiri_newest_claim(&latest->newest, &claim);
	if (WEIRI_UNLIKELY(found == NULL)) /* versions do not go back */
		return claim < 0 ? WEIR_RESOURCE_EXHAUSTED : WEIR_DATA_LOSS;
	/* [relaxed] P1. Read once and clamped: a malicious writer could change it meanwhile. */
	found_size = weiri_load_relaxed(&found->size);
	found_size = found_size < latest->newest.geometry.value_size ? found_size : latest->newest.geometry.value_size;
	memcpy(buffer, found->value, (size_t)found_size);
	if (size != NULL)
		*size = (size_t)found_size;
	if (version != NULL)
		*version = weiri_load_relaxed(&found->version); /* [relaxed] P1 */
	weiri_newest_let_go(&latest->newest, claim);
	return WEIR_OK;
}

/* The arguments of a read that waits. */
struct reading {
	weir_shm_latest *latest;
	uint64_t newer_than;
	void *buffer;
	size_t room, *size;
	uint64_t *version;
};

static enum weir_status attempt_read(void *context)
{
	const struct reading *r = context;

	return weir_shm_latest_try_read(r->latest, r->newer_than, r->buffer, r->room, r->size, r->version);
}

/* The message of a status that an attempt returned. */
static enum weir_status explain(enum weir_status status, weir_error *error)
{
	switch (status) {
	case WEIR_RESOURCE_EXHAUSTED: return weiri_fail(error, status, "%s: too many reads of this process", what);
	case WEIR_INVALID_ARGUMENT: return weiri_fail(error, status, "%s: an argument is NULL, or too little room", what);
	case WEIR_FAILED_PRECONDITION:
		return weiri_fail(error, status, "%s: the handle belongs to the parent of this process", what);
	case WEIR_DATA_LOSS: return weiri_fail(error, status, "%s: the shared memory is damaged", what);
	default: return status;
	}
}

enum weir_status weir_shm_latest_read(weir_shm_latest *latest, uint64_t newer_than, void *buffer, size_t room,
                                      size_t *size, uint64_t *version, uint64_t deadline_ns, weir_cancel *cancel,
                                      weir_error *error)
{
	struct reading reading = {latest, newer_than, buffer, room, size, version};
	const struct weiri_bell_wait wait = {what, attempt_read, explain, &reading, deadline_ns, cancel};

	if (latest == NULL)
		return explain(WEIR_INVALID_ARGUMENT, error);
	return weiri_bell_wait(&latest->bell, &wait, error);
}

/* -- the rest ---------------------------------------------------------------------------------- */

uint64_t weir_shm_latest_version(const weir_shm_latest *latest)
{
	return latest != NULL && !is_forked(latest) ? weiri_newest_version(&latest->newest) : 0;
}

size_t weir_shm_latest_value_size(const weir_shm_latest *latest)
{
	return latest != NULL ? latest->newest.geometry.value_size : 0;
}

enum weir_status weir_shm_latest_set_bell(weir_shm_latest *latest, int fd)
{
	if (latest == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (is_forked(latest))
		return WEIR_FAILED_PRECONDITION;
	return weiri_bell_set_eventfd(&latest->bell, fd);
}

enum weir_status weir_shm_latest_ask_bell(weir_shm_latest *latest)
{
	if (latest == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (is_forked(latest))
		return WEIR_FAILED_PRECONDITION;
	(void)weiri_bell_ask(&latest->bell, WEIRI_BELL_POLLER);
	return WEIR_OK;
}
