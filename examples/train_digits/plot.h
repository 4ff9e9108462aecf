/*
 * plot.h - the learning curve as a picture.
 */
#ifndef TRAIN_DIGITS_PLOT_H
#define TRAIN_DIGITS_PLOT_H

#include "job.h"

/* Draws an SVG with gnuplot. WEIR_NOT_FOUND: there is no gnuplot. WEIR_INTERNAL: it failed. */
enum weir_status plot_curve(const struct curve_point points[], size_t count, const char *path, weir_error *error);

#endif
