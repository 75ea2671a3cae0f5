/* SPDX-License-Identifier: GPL-2.0 */
/* Coarser and smaller copies of planes of 8-bit samples. */
#ifndef PAQM_PIXELS_H
#define PAQM_PIXELS_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a picture in 4:2:0. */
size_t pixels_size(int w, int h);
/* Copy a plane with every block of so many pixels square replaced by its mean. */
void pixels_flatten(uint8_t *dst, const uint8_t *src, int stride, int width, int height, int block);
/* Copy a plane in another, lesser size: each pixel the mean of those it stands for. */
void pixels_shrink(uint8_t *dst, int width, int height, const uint8_t *src, int stride,
		   int src_width, int src_height);

#endif /* PAQM_PIXELS_H */
