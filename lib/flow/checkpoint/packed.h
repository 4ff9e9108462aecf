/*
 * packed.h - the tensors of a header, stored in the memory of its text.
 *
 * A record consists of a tensor's name, terminated by a zero byte; its dtype and its rank, a byte
 * each; and its dims and its two offsets, 7 bits to a byte. No part of a record is longer than the
 * text from which it was read: a number takes no more bytes than it had digits. So each record fits
 * into the text that has been read before the next tensor, and a header needs no memory besides its
 * text.
 *
 * Room for the index. The shortest text of a tensor,
 * `"":{"dtype":"U8","shape":[],"data_offsets":[0,0]},`, has 50 bytes. (That of the last tensor has
 * '}' in place of the comma.) Its record has 5 bytes. If the text is longer, the record is longer
 * by no more than that. So at least 45 bytes are left for each tensor, and one byte for the '{' at
 * the beginning. A key takes 16 bytes, and at most 7 bytes are lost to the alignment of the index.
 */
#ifndef WEIRI_CHECKPOINT_PACKED_H
#define WEIRI_CHECKPOINT_PACKED_H

#include "checkpoint/header.h"

/*
 * Writes the record at `to` and returns its end. The tensor's name may lie behind `to` in the same
 * memory. Its other members may not.
 */
char *weiri_pack(char *to, const struct weiri_saved_tensor *tensor);
/* Reads a record and returns its end. The name is not copied. */
const char *weiri_unpack(const char *record, struct weiri_saved_tensor *tensor);

/* Returns the place of the index behind records that end at `end`. */
struct weiri_saved_key *weiri_packed_keys(char *end);

#endif
