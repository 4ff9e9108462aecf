/*
 * eventfd.h - an eventfd(2) that counts: a poller sees it readable while the count is above zero.
 *
 * It belongs to the process that made it. After a fork, parent and child share the count. But each
 * has its own copy of the memory by which the library decides when to add and to take. So in the
 * child, adding and taking do nothing.
 */
#ifndef WEIRI_EVENTFD_H
#define WEIRI_EVENTFD_H

#include <stdbool.h>
#include <stdint.h>

struct weiri_eventfd {
	int fd;         /* -1: none */
	uint32_t forks; /* the number of forks when it was made */
};

/*
 * Returns an eventfd with a count of 0, non-blocking and closed on exec. Its fd is -1 if the system
 * refused.
 */
struct weiri_eventfd weiri_eventfd_open(void);
void weiri_eventfd_close(struct weiri_eventfd event);
/* Returns true in the process that opened it, and false in the child of a later fork. */
bool weiri_eventfd_is_ours(const struct weiri_eventfd *event);
/*
 * weiri_eventfd_add() adds `count`. weiri_eventfd_take() subtracts one and returns true, or returns
 * false if the count is 0. Each makes at most one system call and preserves errno. In the child of a
 * fork both do nothing, and a take returns true.
 */
void weiri_eventfd_add(struct weiri_eventfd event, uint64_t count);
bool weiri_eventfd_take(struct weiri_eventfd event);
/* Returns true if the count is above 0, by a system call that preserves errno. */
bool weiri_eventfd_is_readable(struct weiri_eventfd event);

/* Called in the child of a fork, before it has a second thread. */
void weiri_eventfd_after_fork(void);

#endif
