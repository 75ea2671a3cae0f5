/* SPDX-License-Identifier: GPL-2.0 */
/*
 * 2D-interlaced coding (A. Lie, dr.ing. thesis, NTNU 2008, appendix B): a picture is split into
 * sub-pictures of the same instant, each coded and sent as a stream of its own; what is lost leaves
 * neighbours of every missing pixel, from which it is interpolated.
 *
 * Pure functions on planes of 8 bit; chroma is split with the same pattern as luma.
 */
#ifndef PAQM_INTERLACE_H
#define PAQM_INTERLACE_H

#include <stdint.h>

#define INTERLACE_PHASES 4 /* at most */

enum interlace_mode {
	INTERLACE_NONE,
	INTERLACE_ROWS,		/* even and odd rows */
	INTERLACE_CHECKERBOARD, /* even and odd sums of row and column */
	INTERLACE_QUARTERS,	/* rows and columns, both even and odd */
};

struct plane {
	uint8_t *data;
	int width, height, stride;
};

/* By its name on the command line; INTERLACE_NONE if there is none. */
enum interlace_mode interlace_find(const char *name);

/* Sub-pictures of a picture. */
int interlace_phases(enum interlace_mode mode);

/* What width and height have to be multiples of, for 4:2:0 whose parts are 4:2:0 too. */
#define INTERLACE_GRAIN 4

/* Size of a sub-picture's plane. */
void interlace_size(enum interlace_mode mode, int width, int height, int *w, int *h);

/* Sub-picture @phase of @whole into @part, whose size fits. */
void interlace_split(enum interlace_mode mode, int phase, const struct plane *whole,
		     struct plane *part);

/* And back. */
void interlace_join(enum interlace_mode mode, int phase, const struct plane *part,
		    struct plane *whole);

/**
 * interlace_conceal() - fill in what is missing
 * @have: bit k: sub-picture k is there
 * @whole: the picture, with whatever at the missing places
 * @before: the picture before it; NULL: there is none
 *
 * A pixel becomes the mean of its nearest neighbours that are there: three above and three below,
 * or four, or eight, by mode. Without any it is that of the picture before.
 */
void interlace_conceal(enum interlace_mode mode, unsigned int have, struct plane *whole,
		       const struct plane *before);

#endif /* PAQM_INTERLACE_H */
