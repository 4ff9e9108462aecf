/*
 * packed.h - the tensors of a header, kept in the memory that its text had.
 *
 * A record is a tensor's name, ended by a zero byte; its dtype and its rank, a byte each; its dims and its two offsets, 7 bits to a
 * byte. No part of it is longer than what it was read from: a number takes no more bytes than it had digits. So the record of each
 * tensor fits where its text began, before the next is read, and a header needs no memory beside its text.
 *
 * Room for the index. The shortest text of a tensor, `"":{"dtype":"U8","shape":[],"data_offsets":[0,0]},`, has 50 bytes (the last one
 * has no comma, but '}' behind it), its record has 5, and a longer text has a record that is longer by no more. So there are 45 bytes
 * left for each tensor, and one for the '{' before all; a key takes 16, and at most 7 bytes are lost to its alignment.
 */
#ifndef WEIRI_CHECKPOINT_PACKED_H
#define WEIRI_CHECKPOINT_PACKED_H

#include "checkpoint/header.h"

/* Writes the record, and returns where it ends. The name may lie behind `to` in the same memory, and only it is read from there. */
char *weiri_pack(char *to, const struct weiri_saved_tensor *tensor);
/* Reads a record, and returns where it ends. The name is not copied. */
const char *weiri_unpack(const char *record, struct weiri_saved_tensor *tensor);

/* Where an index of `count` keys begins whose records end at `end`. */
struct weiri_saved_key *weiri_packed_keys(char *end);

#endif
