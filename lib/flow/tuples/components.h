/*
 * components.h - the components of the tuples of a tensor queue: their dtypes, their names, and
 * their shapes, which are known in whole or in part.
 */
#ifndef WEIRI_QUEUE_COMPONENTS_H
#define WEIRI_QUEUE_COMPONENTS_H

#include <weir/flow/tensor_queue.h>

struct weiri_component {
	enum weir_dtype dtype;
	bool has_shape;
	bool known; /* true: there is a shape, and no dim is unknown */
	bool named; /* true: the creator of the queue gave the name */
	weir_shape shape;
	char name[WEIR_TENSOR_QUEUE_NAME_SIZE]; /* the number of the component if it is not named */
};

/* Returns WEIR_INVALID_ARGUMENT if no object can have these components. Messages call it `what`. */
enum weir_status weiri_components_check(const char *what, const struct weir_tensor_component components[], size_t count,
                                        weir_error *error);
/*
 * The same check for a tensor queue. Also checks that `options` is not NULL and has a valid size,
 * and copies the options to *given.
 */
enum weir_status weiri_components_check_queue(const struct weir_tensor_queue_options *options,
                                              struct weir_tensor_queue_options *given, weir_error *error);
void weiri_component_fill(struct weiri_component *component, const struct weir_tensor_component *from, size_t i);
/* Returns the component in the form of the public options. Its pointers lead into *component. */
struct weir_tensor_component weiri_component_public(const struct weiri_component *component);
/*
 * Returns WEIR_INVALID_ARGUMENT unless the tensor fits as component i. NULL never fits. The message
 * calls the object `what` "name".
 */
enum weir_status weiri_component_check(const struct weiri_component *component, size_t i, const weir_tensor *tensor,
                                       const char *what, const char *name, weir_error *error);
/* Finds the component to which the creator gave this name. Fails with WEIR_NOT_FOUND. */
enum weir_status weiri_components_place(const struct weiri_component components[], size_t count, const char *name,
                                        size_t *place);

#endif
