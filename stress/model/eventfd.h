/*
 * eventfd.h - what a program that is checked asks of the descriptors of eventfd.c.
 */
#ifndef WEIR_MODEL_EVENTFD_H
#define WEIR_MODEL_EVENTFD_H

/* 1 once a count was taken from that was 0. */
extern int weiri_model_eventfd_fault;

unsigned weiri_model_eventfd_count(int fd);
/* Sleeps until it is readable. */
void weiri_model_poll(int fd);

#endif
