// SPDX-License-Identifier: GPL-2.0
/* Coarser and smaller copies of planes; see pixels.h. */
#include "streamer/encoder/pixels.h"

#include <string.h>

void pixels_flatten(uint8_t *dst, const uint8_t *src, int stride, int width, int height, int block)
{
	for (int y = 0; y < height; y += block) {
		int h = height - y < block ? height - y : block;

		for (int x = 0; x < width; x += block) {
			int w = width - x < block ? width - x : block;
			unsigned int sum = 0;

			for (int j = 0; j < h; j++)
				for (int i = 0; i < w; i++)
					sum += src[(y + j) * stride + x + i];
			for (int j = 0; j < h; j++)
				memset(dst + (size_t)(y + j) * width + x, (int)(sum / (w * h)), w);
		}
	}
}

size_t pixels_size(int w, int h)
{
	return (size_t)w * h + 2 * (size_t)((w + 1) / 2) * ((h + 1) / 2);
}

void pixels_shrink(uint8_t *dst, int width, int height, const uint8_t *src, int stride,
		   int src_width, int src_height)
{
	for (int y = 0; y < height; y++) {
		int top = y * src_height / height, bottom = (y + 1) * src_height / height;

		for (int x = 0; x < width; x++) {
			int left = x * src_width / width, right = (x + 1) * src_width / width;
			unsigned int n = (unsigned int)((bottom - top) * (right - left));
			unsigned int sum = n / 2;

			for (int j = top; j < bottom; j++)
				for (int i = left; i < right; i++)
					sum += src[j * stride + i];
			*dst++ = (uint8_t)(sum / n);
		}
	}
}
