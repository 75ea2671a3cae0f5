// SPDX-License-Identifier: GPL-2.0
/* Splitting, joining, concealing; see interlace.h. */
#include "streamer/media/interlace.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define GREY 128

struct step {
	int row, col;
};

static const struct step around[] = {
	{-1, -1}, {-1, 0}, {-1, 1}, {1, -1}, {1, 0}, {1, 1}, {0, -1}, {0, 1},
};

static const struct step cross[] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};

static const struct {
	const char *name;
	int phases;
	const struct step *near;
	int n_near;
} modes[] = {
	[INTERLACE_NONE] = {NULL, 1, NULL, 0},
	[INTERLACE_ROWS] = {"rows", 2, around, 6}, /* those of its own row are missing, too */
	[INTERLACE_CHECKERBOARD] = {"checkerboard", 2, cross, 4},
	[INTERLACE_QUARTERS] = {"quarters", 4, around, 8},
};

enum interlace_mode interlace_find(const char *name)
{
	for (int m = INTERLACE_ROWS; m <= INTERLACE_QUARTERS; m++)
		if (!strcmp(name, modes[m].name))
			return m;
	return INTERLACE_NONE;
}

int interlace_phases(enum interlace_mode mode)
{
	return modes[mode].phases;
}

void interlace_size(enum interlace_mode mode, int width, int height, int *w, int *h)
{
	*w = mode == INTERLACE_CHECKERBOARD || mode == INTERLACE_QUARTERS ? width / 2 : width;
	*h = mode == INTERLACE_ROWS || mode == INTERLACE_QUARTERS ? height / 2 : height;
}

static int phase_of(enum interlace_mode mode, int row, int col)
{
	switch (mode) {
	case INTERLACE_ROWS:
		return row & 1;
	case INTERLACE_CHECKERBOARD:
		return (row + col) & 1;
	case INTERLACE_QUARTERS:
		return (row & 1) * 2 + (col & 1);
	case INTERLACE_NONE:
		break;
	}
	return 0;
}

/* Where a row of a sub-picture lies: in which row, from which column on, how far apart. */
static int place(enum interlace_mode mode, int phase, int row, int *first, int *apart)
{
	*first = 0;
	*apart = 1;
	switch (mode) {
	case INTERLACE_ROWS:
		return 2 * row + phase;
	case INTERLACE_CHECKERBOARD:
		*first = (row + phase) & 1;
		*apart = 2;
		return row;
	case INTERLACE_QUARTERS:
		*first = phase & 1;
		*apart = 2;
		return 2 * row + (phase >> 1);
	case INTERLACE_NONE:
		break;
	}
	return row;
}

static uint8_t *at(const struct plane *p, int row, int col)
{
	return p->data + (ptrdiff_t)row * p->stride + col;
}

void interlace_split(enum interlace_mode mode, int phase, const struct plane *whole,
		     struct plane *part)
{
	for (int m = 0; m < part->height; m++) {
		int first, apart, row = place(mode, phase, m, &first, &apart);
		const uint8_t *from = at(whole, row, first);
		uint8_t *to = at(part, m, 0);

		for (int n = 0; n < part->width; n++)
			to[n] = from[n * apart];
	}
}

void interlace_join(enum interlace_mode mode, int phase, const struct plane *part,
		    struct plane *whole)
{
	for (int m = 0; m < part->height; m++) {
		int first, apart, row = place(mode, phase, m, &first, &apart);
		const uint8_t *from = at(part, m, 0);
		uint8_t *to = at(whole, row, first);

		for (int n = 0; n < part->width; n++)
			to[n * apart] = from[n];
	}
}

static uint8_t interpolate(enum interlace_mode mode, unsigned int have, const struct plane *p,
			   int row, int col, uint8_t otherwise)
{
	int sum = 0, n = 0;

	for (int k = 0; k < modes[mode].n_near; k++) {
		int r = row + modes[mode].near[k].row, c = col + modes[mode].near[k].col;

		if (r < 0 || c < 0 || r >= p->height || c >= p->width ||
		    !(have >> phase_of(mode, r, c) & 1))
			continue;
		sum += *at(p, r, c);
		n++;
	}
	return n ? (uint8_t)((2 * sum + n) / (2 * n)) : otherwise;
}

void interlace_conceal(enum interlace_mode mode, unsigned int have, struct plane *whole,
		       const struct plane *before)
{
	unsigned int all = (1U << modes[mode].phases) - 1;

	if ((have & all) == all)
		return;
	for (int row = 0; row < whole->height; row++)
		for (int col = 0; col < whole->width; col++)
			if (!(have >> phase_of(mode, row, col) & 1))
				*at(whole, row, col) =
					interpolate(mode, have, whole, row, col,
						    before ? *at(before, row, col) : GREY);
}
