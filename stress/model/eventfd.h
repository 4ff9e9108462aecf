/*
 * eventfd.h - what a checked program needs for the descriptors of eventfd.c.
 */
#ifndef WEIR_MODEL_EVENTFD_H
#define WEIR_MODEL_EVENTFD_H

/* 1 once a thread has decremented a count that was 0. */
extern int weiri_model_eventfd_fault;

unsigned weiri_model_eventfd_count(int fd);
/* Sleeps until the descriptor is readable. */
void weiri_model_poll(int fd);

#endif
