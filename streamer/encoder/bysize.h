/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Encoders without a bit rate, which the AVCS of M. Welzl and M. Muehlhaeuser (slides of 2001) made
 * follow one by the size of each picture: pure functions.
 *
 * JPEG: bytes = x - y ln(q), q a scale of the quantizers. A picture is coded at two of them to know
 * x and y, and a third time at the one that gives the bytes wanted. Here the two are near the one
 * of the picture before, since x and y hold for a stretch of the curve only.
 * Pictures as they are: one of a few sizes, at a constant pace.
 */
#ifndef PAQM_STREAMER_BYSIZE_H
#define PAQM_STREAMER_BYSIZE_H

#include <math.h>
#include <stdbool.h>

/* Of libjpeg: the scale of its tables, per cent, is 5000 / quality up to 50, then it falls by 2. */
#define JPEG_QUALITY_MIN 1
#define JPEG_QUALITY_MAX 99
#define JPEG_QUALITY_MIDDLE 50
#define JPEG_APART 5 /* the two of trial are this part of the quality away */
#define JPEG_STEP 2  /* times finer than the finer of them, no more */

/* Of the picture as it is, down to a sixteenth of its sides. */
#define RAW_SIZES 9
#define RAW_HEADER 54 /* of a BMP file */

struct bysize_line {
	double x, y;
};

/* What two pictures of @s1 and @s2 bytes, coded with @q1 and @q2, say; false: nothing. */
static inline bool bysize_fit(struct bysize_line *l, double q1, double s1, double q2, double s2)
{
	double y = (s1 - s2) / log(q2 / q1);

	if (!(y > 0))
		return false;
	*l = (struct bysize_line){s1 + y * log(q1), y};
	return true;
}

static inline double bysize_solve(const struct bysize_line *l, double bytes)
{
	return exp((l->x - bytes) / l->y);
}

static inline double jpeg_scale(int quality)
{
	return quality < JPEG_QUALITY_MIDDLE ? 5000.0 / quality : 200 - 2 * quality;
}

/* The finest quality whose scale is no finer than @scale. */
static inline int jpeg_quality(double scale)
{
	double quality = scale > 100 ? 5000 / scale : (200 - scale) / 2;

	if (!(quality > JPEG_QUALITY_MIN))
		return JPEG_QUALITY_MIN;
	return quality > JPEG_QUALITY_MAX ? JPEG_QUALITY_MAX : (int)(quality + 1e-9);
}

/* The two of trial around that of the picture before. */
static inline void jpeg_trials(int quality, int trial[2])
{
	int apart = quality / JPEG_APART > 1 ? quality / JPEG_APART : 1;

	trial[0] = quality + apart < JPEG_QUALITY_MAX ? quality + apart : JPEG_QUALITY_MAX;
	trial[1] = quality - apart > JPEG_QUALITY_MIN ? quality - apart : JPEG_QUALITY_MIN;
}

/*
 * The quality of a picture for @want bytes, after those of trial had @bytes. The line holds near
 * them: where quantizers are at their end sizes hardly differ, and it would lead from 5 to 200 kB.
 */
static inline int jpeg_next(const int trial[2], const double bytes[2], double want)
{
	double fine = jpeg_scale(trial[0]), coarse = jpeg_scale(trial[1]);
	struct bysize_line l;

	if (!bysize_fit(&l, fine, bytes[0], coarse, bytes[1]))
		return bytes[0] <= want ? trial[0] : trial[1];
	return jpeg_quality(fmax(bysize_solve(&l, want), fine / JPEG_STEP));
}

/* A side of size @number, even as 4:2:0 wants it. */
static inline int raw_side(int side, int number)
{
	static const double part[RAW_SIZES] = {1,      0.75,  0.5,     0.375, 0.25,
					       0.1875, 0.125, 0.09375, 0.0625};
	int got = (int)(side * part[number]) / 2 * 2;

	return got > 2 ? got : 2;
}

/* Bytes of a BMP file: three per pixel, rows filled up to four. */
static inline double raw_bytes(int width, int height)
{
	return RAW_HEADER + (double)((3 * width + 3) / 4 * 4) * height;
}

/* The largest size of a picture that has no more than @bytes, or the smallest. */
static inline int raw_size(int width, int height, double bytes)
{
	int number = 0;

	while (number < RAW_SIZES - 1 &&
	       raw_bytes(raw_side(width, number), raw_side(height, number)) > bytes)
		number++;
	return number;
}

#endif /* PAQM_STREAMER_BYSIZE_H */
