/*
 * frame.c - see frame.h.
 */
#include "run/frame.h"

WEIRI_TLS struct weiri_frame *weiri_frames_mine;
