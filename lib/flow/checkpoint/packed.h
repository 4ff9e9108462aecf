/*
 * packed.h - the tensors of a header, stored in the memory of its text.
 *
 * A record is a tensor's name, terminated by a zero byte; its dtype and its rank, a byte each; its
 * dims and its two offsets, 7 bits to a byte. No part of it is longer than the text from which it
 * was read: a number takes no more bytes than it had digits. So the record of each tensor fits
 * where its text began, before the next tensor is read, and a header needs no memory besides its
 * text.
 *
 * Room for the index. The shortest text of a tensor,
 * `"":{"dtype":"U8","shape":[],"data_offsets":[0,0]},`, has 50 bytes (the last one has no comma,
 * but is followed by '}'). Its record has 5 bytes, and with a longer text the record grows by no
 * more than the text. So 45 bytes are left for each tensor, and one for the '{' at the beginning. A
 * key takes 16, and at most 7 bytes are lost to its alignment.
 */
#ifndef WEIRI_CHECKPOINT_PACKED_H
#define WEIRI_CHECKPOINT_PACKED_H

#include "checkpoint/header.h"

/*
 * Writes the record and returns its end. The name may lie behind `to` in the same memory; nothing
 * else is read from there.
 */
char *weiri_pack(char *to, const struct weiri_saved_tensor *tensor);
/* Reads a record and returns its end. The name is not copied. */
const char *weiri_unpack(const char *record, struct weiri_saved_tensor *tensor);

/* The place of the index, if the records end at `end`. */
struct weiri_saved_key *weiri_packed_keys(char *end);

#endif
