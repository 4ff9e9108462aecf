/*
 * eventfd.h - an eventfd(2) that counts: a poller sees it readable while the count is above zero.
 *
 * It belongs to the process that made it. The child of a fork shares the count with its parent, but
 * not the memory that determines the count. So in the child adding and taking do nothing.
 */
#ifndef WEIRI_EVENTFD_H
#define WEIRI_EVENTFD_H

#include <stdint.h>

struct weiri_eventfd {
	int fd;         /* -1: none */
	uint32_t forks; /* the number of forks when it was made */
};

/* Non-blocking, closed on exec; the count is 0. fd -1: the system refused. */
struct weiri_eventfd weiri_eventfd_open(void);
void weiri_eventfd_close(struct weiri_eventfd event);
/* 0 in the child of a later fork. */
int weiri_eventfd_is_ours(const struct weiri_eventfd *event);
/* Adds one; subtracts one, unless the count is 0. At most one system call; errno is preserved. */
void weiri_eventfd_add(struct weiri_eventfd event);
void weiri_eventfd_take(struct weiri_eventfd event);

/* Called in the child of a fork, before it has a second thread. */
void weiri_eventfd_after_fork(void);

#endif
