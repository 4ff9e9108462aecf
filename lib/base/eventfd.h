/*
 * eventfd.h - an eventfd(2) that counts: a poller sees it readable while the count is above zero.
 *
 * It belongs to the process that made it. The child of a fork shares the count with its parent but not the memory that says how it
 * should stand, so in the child adding and taking do nothing.
 */
#ifndef WEIRI_EVENTFD_H
#define WEIRI_EVENTFD_H

#include <stdint.h>

struct weiri_eventfd {
	int fd;         /* -1: none */
	uint32_t forks; /* of this process when it was made */
};

/* Not blocking, closed on exec; the count is 0. fd -1: the system refused. */
struct weiri_eventfd weiri_eventfd_open(void);
void weiri_eventfd_close(struct weiri_eventfd event);
/* 0 in the child of a fork that came later. */
int weiri_eventfd_is_ours(const struct weiri_eventfd *event);
/* One more; one less, unless it is 0. No more than a system call; errno is left alone. */
void weiri_eventfd_add(struct weiri_eventfd event);
void weiri_eventfd_take(struct weiri_eventfd event);

/* In the child of a fork, before it has a second thread. */
void weiri_eventfd_after_fork(void);

#endif
