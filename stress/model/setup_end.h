/*
 * setup_end.h - the end of a setup.
 */
#ifndef WEIR_MODEL_SETUP_END_H
#define WEIR_MODEL_SETUP_END_H

#include "reclaim/announce.h"
#include "reclaim/record.h"

/*
 * The thread of the setup has announced an era if it has read, or has made a variable. This announcement would hold
 * what the setup has made until a membarrier, which shows the sections of all threads. So no check would miss a section
 * that a collector cannot see. A setup calls this last.
 */
static inline void setup_ends(void)
{
	weiri_announce_nothing(weiri_record_get());
}

#endif
