/*
 * map_staging.h - what tests ask of a map staging area beyond its public face.
 */
#ifndef WEIRI_QUEUE_MAP_STAGING_H
#define WEIRI_QUEUE_MAP_STAGING_H

#include <weir/map_staging.h>

/* Operations that wait. */
size_t weiri_map_staging_waiting(const weir_map_staging *map);

#endif
