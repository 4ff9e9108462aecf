/*
 * section.h - what the rest of the layer sees of nodes that run in a critical section (op_section.c): their entrance and their exit.
 */
#ifndef WEIRI_FLOW_SECTION_H
#define WEIRI_FLOW_SECTION_H

#include <weir/critical_section.h>

#include "flow/node.h"

/* The node that enters for `node`: of one in a body, and of an exit; NULL: it is in no section. */
weir_node *weiri_section_entrance(const weir_node *node);
/* Of an entrance; NULL: it was never finished. From then on it cannot be. */
weir_node *weiri_section_exit(const weir_node *entrance);
weir_critical_section *weiri_section_of(const weir_node *entrance);

#endif
