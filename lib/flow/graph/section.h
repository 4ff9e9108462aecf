/*
 * section.h - the interface to nodes that run in a critical section (op_section.c): their entrance
 * and exit.
 */
#ifndef WEIRI_FLOW_SECTION_H
#define WEIRI_FLOW_SECTION_H

#include <weir/critical_section.h>

#include "graph/node.h"

/* The entrance for `node`, which is in a body or is an exit; NULL: it is in no section. */
weir_node *weiri_section_entrance(const weir_node *node);
/* The exit of an entrance; NULL: the section was never finished, and from now on cannot be. */
weir_node *weiri_section_exit(const weir_node *entrance);
weir_critical_section *weiri_section_of(const weir_node *entrance);

#endif
