/*
 * coordinator.h - what the dataflow layer asks of a coordinator beside its public calls.
 *
 * The group is the object whose coordinators follow one another, such as a monitored session. Its
 * threads can ask whether they belong to it at times when they must not read which coordinator is
 * the present one.
 */
#ifndef WEIRI_RUN_COORDINATOR_H
#define WEIRI_RUN_COORDINATOR_H

#include <weir/coordinator.h>

#include "base/compiler.h"

/*
 * The threads that the coordinator starts from now on have a mark {WEIRI_MARK_GROUP, group} as long
 * as they run. Called before the first of them starts.
 */
WEIRI_SHARED void weiri_coordinator_set_group(weir_coordinator *coordinator, const void *group);

#endif
