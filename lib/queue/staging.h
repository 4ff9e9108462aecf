/*
 * staging.h - what tests ask of a staging area beyond its public face.
 */
#ifndef WEIRI_QUEUE_STAGING_H
#define WEIRI_QUEUE_STAGING_H

#include <weir/staging.h>

/* Operations that wait. */
size_t weiri_staging_waiting(const weir_staging *staging);

#endif
