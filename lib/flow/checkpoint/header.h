/*
 * header.h - reading and writing the header of a safetensors file.
 *
 * Why not a JSON library. The grammar of the format is small: one object of objects with three
 * fields. A general reader would store numbers as doubles (cJSON does), so that offsets and dims
 * above 2^53 change silently. Of two equal names it would take the last. It would build a tree many
 * times the size of a hostile header, with an allocator of the whole process. And each check below
 * would still have to be written. So this is a strict reader: it makes one pass without recursion
 * and decodes names in place. It uses no memory except that of the text, which the table of the
 * tensors replaces (packed.h).
 */
#ifndef WEIRI_CHECKPOINT_HEADER_H
#define WEIRI_CHECKPOINT_HEADER_H

#include <stddef.h>
#include <stdint.h>
#include <weir/flow/checkpoint.h>

/* A dtype of the format. */
struct weiri_saved_dtype {
	const char *name;
	size_t size;           /* bytes */
	enum weir_dtype dtype; /* 0: not a dtype of Weir */
};

/* All dtypes. */
extern const struct weiri_saved_dtype weiri_saved_dtypes[];
/* Returns NULL if the name is unknown, or the elements are not whole bytes. */
const struct weiri_saved_dtype *weiri_saved_dtype_named(const char *name);
/* Returns NULL if the format has no such dtype. */
const struct weiri_saved_dtype *weiri_saved_dtype_of(enum weir_dtype dtype);

/*
 * A tensor of a file. `begin` and `end` are offsets in the data behind the header. Their difference
 * is the number of bytes that dtype and shape require.
 */
struct weiri_saved_tensor {
	const char *name;
	const struct weiri_saved_dtype *dtype;
	weir_shape shape;
	uint64_t begin;
	uint64_t end;
};

/* A tensor in the table, with its search key. */
struct weiri_saved_key {
	uint64_t hash; /* of its name */
	const char *record;
};

struct weiri_saved_header {
	struct weiri_saved_key *keys; /* sorted by hash, then by name, without duplicates; in the memory of the text */
	size_t count;
};

/*
 * Reads a header of `size` bytes at `text`, which is allocated memory. The text is overwritten:
 * *header lies in the same memory and needs no release of its own. `data_size`, below 2^63, is the
 * number of bytes that the file has behind its header. `file` is for messages. Fails with
 * WEIR_DATA_LOSS if the header is not valid, or does not describe data_size bytes.
 */
enum weir_status weiri_saved_header_read(char *text, size_t size, uint64_t data_size, const char *file,
                                         struct weiri_saved_header *header, weir_error *error);
/* Returns the tensor at position i of the table. */
struct weiri_saved_tensor weiri_saved_header_at(const struct weiri_saved_header *header, size_t i);
/* Returns the position of the tensor with this name, or header->count if there is none. */
size_t weiri_saved_header_find(const struct weiri_saved_header *header, const char *name);

/*
 * Writes the length, which takes 8 bytes, and the header of `count` tensors, which are in the order
 * of their data. Writes at most `room` bytes to `out`. Returns the number of bytes that the whole
 * takes, a multiple of 64.
 */
size_t weiri_saved_header_write(const struct weiri_saved_tensor tensors[], size_t count, char *out, size_t room);

/* Returns true if a tensor may have this name: UTF-8, not empty, and not "__metadata__". */
bool weiri_saved_name_ok(const char *name);

#endif
