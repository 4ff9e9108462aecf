/*
 * components.h - what the tuples of a tensor queue consist of: dtypes, shapes that are known in
 * whole or in part, names.
 */
#ifndef WEIRI_QUEUE_COMPONENTS_H
#define WEIRI_QUEUE_COMPONENTS_H

#include <weir/flow/tensor_queue.h>

struct weiri_component {
	enum weir_dtype dtype;
	int has_shape;
	int known; /* has_shape, and no dim is unknown */
	int named; /* by its creator */
	weir_shape shape;
	char name[WEIR_TENSOR_QUEUE_NAME_SIZE]; /* or its number */
};

/* WEIR_INVALID_ARGUMENT if the components of a `what` make no sense. */
enum weir_status weiri_components_check(const char *what, const struct weir_tensor_component components[], size_t count,
                                        weir_error *error);
/* The same for a queue, whose options must not be NULL and must have the right size. */
enum weir_status weiri_components_check_queue(const struct weir_tensor_queue_options *options,
                                              struct weir_tensor_queue_options *given, weir_error *error);
void weiri_component_fill(struct weiri_component *component, const struct weir_tensor_component *from, size_t i);
/* The component in the form of the public options; the pointers lead into *component. */
struct weir_tensor_component weiri_component_public(const struct weiri_component *component);
/*
 * WEIR_INVALID_ARGUMENT unless the tensor fits as component i of the `what` of that name. NULL fits
 * nowhere.
 */
enum weir_status weiri_component_check(const struct weiri_component *component, size_t i, const weir_tensor *tensor,
                                       const char *what, const char *name, weir_error *error);
/* Finds the component that its creator gave this name. WEIR_NOT_FOUND. */
enum weir_status weiri_components_place(const struct weiri_component components[], size_t count, const char *name,
                                        size_t *place);

#endif
