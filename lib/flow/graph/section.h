/*
 * section.h - the interface to nodes that run in a critical section (op_section.c): their entrance
 * and exit.
 */
#ifndef WEIRI_FLOW_SECTION_H
#define WEIRI_FLOW_SECTION_H

#include <weir/critical_section.h>

#include "graph/node.h"

/* Returns the entrance for a node of a body or for an exit; NULL for any other node. */
weir_node *weiri_section_entrance(const weir_node *node);
/*
 * Returns the exit of an entrance; NULL if the section was not finished. After this call it can no
 * longer be finished.
 */
weir_node *weiri_section_exit(const weir_node *entrance);
weir_critical_section *weiri_section_of(const weir_node *entrance);
/* The kind of the resource that is a section, which its entrance writes. */
extern const char weiri_section_kind[];

#endif
