/*
 * keyed.h - histories of structures whose operations name keys: maps of tuples, joins by key,
 * names.
 *
 * An operation has a part for each key and component that it touches:
 * - object: the key, or the number of the name.
 * - before: the component, from 0 on; 0 for a name.
 * - after: for a take from a join, the index of the tuple; else HISTORY_NONE.
 * - value: the value put or taken, HISTORY_NONE if there was none; values are unique.
 *
 * `result` is one of enum history_answer. `argument` is HISTORY_NONE, unless the list of kinds
 * below gives it a meaning. The list also says in which cases an operation has an answer other than
 * HISTORY_DONE.
 *
 * The models judge whole histories (history_check_general), or, with `alone`, the operations of one
 * key (history_check_each). With `alone` they accept every answer that depends on other keys:
 * whether there was room, which key was the smallest, how many keys there were.
 */
#ifndef HISTORY_KEYED_H
#define HISTORY_KEYED_H

#include "history/history.h"

enum history_answer {
	HISTORY_DONE = 0,
	HISTORY_NOT_NOW = 1, /* it would have to wait */
	/* impossible: the name is taken, or the component is already there or was taken */
	HISTORY_REFUSED = 2,
	HISTORY_CLOSED = 3
};

/* Records the operation. */
void history_note_keyed(struct history_log *log, enum history_kind kind, uint64_t argument,
                        const struct history_part parts[], size_t count, enum history_answer answer, uint64_t called,
                        uint64_t returned);

enum { HISTORY_MOST_COMPONENTS = 4 };

/*
 * Tuples put and taken by key, whole or in parts. A key is complete when it has all components. It
 * is removed when its last component is taken.
 * - HISTORY_MAP_PUT. REFUSED: the key is complete, or has one of these components. NOT_NOW: no
 *   room.
 * - HISTORY_MAP_GET. NOT_NOW: the key is not complete. REFUSED: one of these components was taken.
 * - HISTORY_MAP_PEEK: as HISTORY_MAP_GET, but the components stay.
 * - HISTORY_MAP_GET_ANY: a get from the smallest complete key. It has parts only if it was DONE.
 *   argument: the components requested, a bit for each.
 * - HISTORY_MAP_CLEAR: no parts.
 * - HISTORY_MAP_LOOK: no parts; argument: complete keys << 32 | incomplete ones << 16 | components
 *   stored.
 */
struct history_map {
	uint64_t components; /* of a complete key, 1 .. HISTORY_MOST_COMPONENTS */
	uint64_t capacity;   /* complete keys at which no put succeeds; 0: no bound */
	uint64_t limit;      /* components stored; 0: no bound */
	int alone;
};
extern const struct history_model history_model_map;

/*
 * Components joined by key. Complete tuples leave in the order of their indices. The index of a
 * tuple is the number of the insert that brought its key first.
 * - HISTORY_JOIN_INSERT: one component for each of several keys, all or none. REFUSED: one of the
 *   keys has the component already. CLOSED.
 * - HISTORY_JOIN_TAKE: the parts are all components of the first row, then of the second, and so
 *   on. argument: rows wanted, plus HISTORY_JOIN_SMALL if a closed join may give fewer. NOT_NOW.
 *   CLOSED: that many rows will never be complete.
 * - HISTORY_JOIN_CLOSE: no parts; argument: HISTORY_JOIN_DRAINS (no new keys),
 *   HISTORY_JOIN_CANCELLED (incomplete keys are dropped).
 * - HISTORY_JOIN_LOOK: no parts; argument: ready tuples << 32 | incomplete keys.
 */
struct history_join {
	uint64_t components;
	int alone;
};
enum { HISTORY_JOIN_DRAINS = 1, HISTORY_JOIN_CANCELLED = 2 };
#define HISTORY_JOIN_SMALL (UINT64_C(1) << 32)
extern const struct history_model history_model_join;

/*
 * Objects by name; one part each. No context (NULL). Names are independent: history_check_each()
 * judges them exactly.
 * - HISTORY_NAME_ADD. REFUSED: the name is taken.
 * - HISTORY_NAME_FIND. value: the object. REFUSED: there is none.
 * - HISTORY_NAME_CREATE. value: the object that existed, or `argument`, the object that this call
 *   created.
 * - HISTORY_NAME_REMOVE. REFUSED: there is none.
 */
extern const struct history_model history_model_names;

/*
 * Units for shrinking (history.h), for all of these structures. Each operation that changed nothing
 * is a unit of its own. Operations that changed something are never removed, because later answers
 * may depend on them.
 */
void history_units_of_answers(const struct history *history, uint32_t unit[]);

#endif
