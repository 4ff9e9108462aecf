/*
 * eventfd.h - what a checked program needs for the descriptors of eventfd.c.
 */
#ifndef WEIR_MODEL_EVENTFD_H
#define WEIR_MODEL_EVENTFD_H

unsigned weiri_model_eventfd_count(int fd);
/* Sleeps until the descriptor is readable. */
void weiri_model_poll(int fd);

#endif
