/*
 * header.h - the header of a safetensors file, read and written.
 *
 * Why not a JSON library. The grammar that the format allows is small: one object of objects of three fields. A general reader would
 * hold numbers as doubles (cJSON does: offsets and dims above 2^53 change silently), take the last of two equal names, build a tree of
 * many times the size of a hostile header, by an allocator of the whole process, and would still leave each check below to be
 * written. So a strict reader: no recursion, one pass, names decoded in place, and no memory but that of the text, in which the table
 * of the tensors takes the text's place (packed.h).
 */
#ifndef WEIRI_CHECKPOINT_HEADER_H
#define WEIRI_CHECKPOINT_HEADER_H

#include <stddef.h>
#include <stdint.h>
#include <weir/checkpoint.h>

/* A dtype of the format. */
struct weiri_saved_dtype {
	const char *name;
	size_t size;           /* bytes */
	enum weir_dtype dtype; /* 0: Weir has no such dtype */
};

/* All of them. */
extern const struct weiri_saved_dtype weiri_saved_dtypes[];
/* NULL: unknown, or its elements are no whole bytes. */
const struct weiri_saved_dtype *weiri_saved_dtype_named(const char *name);
/* NULL: the format has no such dtype. */
const struct weiri_saved_dtype *weiri_saved_dtype_of(enum weir_dtype dtype);

/* A tensor of a file. begin and end are offsets in the data behind the header; end - begin is what dtype and shape take. */
struct weiri_saved_tensor {
	const char *name;
	const struct weiri_saved_dtype *dtype;
	weir_shape shape;
	uint64_t begin;
	uint64_t end;
};

/* A tensor in the table, and by what it is found. */
struct weiri_saved_key {
	uint64_t hash; /* of its name */
	const char *record;
};

struct weiri_saved_header {
	struct weiri_saved_key *keys; /* by hash, then by name, no name twice; in the memory of the text */
	size_t count;
};

/*
 * Reads `size` bytes at `text`, memory from an allocator, which it changes: *header is in it, and needs no end of its own. data_size,
 * below 2^63, is what the file has behind its header. `file` is for messages. WEIR_DATA_LOSS: no such header, or not of so much data.
 */
enum weir_status weiri_saved_header_read(char *text, size_t size, uint64_t data_size, const char *file,
                                         struct weiri_saved_header *header, weir_error *error);
/* Tensor number i of the table. */
struct weiri_saved_tensor weiri_saved_header_at(const struct weiri_saved_header *header, size_t i);
/* The number of the tensor of this name; header->count: there is none. */
size_t weiri_saved_header_find(const struct weiri_saved_header *header, const char *name);

/*
 * The 8 bytes of the length and the header of `count` tensors, in the order of their data. Writes at most `room` bytes to `out` and
 * returns how many there are, a multiple of 64.
 */
size_t weiri_saved_header_write(const struct weiri_saved_tensor tensors[], size_t count, char *out, size_t room);

/* What may be a tensor's name: UTF-8, not empty, not "__metadata__". */
int weiri_saved_name_ok(const char *name);

#endif
