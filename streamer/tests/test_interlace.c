// SPDX-License-Identifier: GPL-2.0
/* 2D interlacing: split and join are inverse, concealment by the published neighbours. */
#include <string.h>

#include "core/tests/check.h"
#include "streamer/media/interlace.h"

#define W 16
#define H 12

static void fill(uint8_t *data)
{
	for (int r = 0; r < H; r++)
		for (int c = 0; c < W; c++)
			data[r * W + c] = (uint8_t)(7 * r * r + 3 * c * c + r * c);
}

static void identity(enum interlace_mode mode)
{
	uint8_t a[W * H], b[W * H], part[W * H];
	struct plane whole = {a, W, H, W}, back = {b, W, H, W}, sub = {.data = part};

	fill(a);
	memset(b, 0, sizeof(b));
	interlace_size(mode, W, H, &sub.width, &sub.height);
	sub.stride = sub.width;
	same("pixels", sub.width * sub.height * interlace_phases(mode), W * H);
	for (int k = 0; k < interlace_phases(mode); k++) {
		interlace_split(mode, k, &whole, &sub);
		interlace_join(mode, k, &sub, &back);
	}
	same("identity", memcmp(a, b, sizeof(a)), 0);
	interlace_conceal(mode, 0xf, &back, NULL);
	same("nothing to conceal", memcmp(a, b, sizeof(a)), 0);
	/* everything is missing: the picture before */
	memset(b, 9, sizeof(b));
	interlace_conceal(mode, 0, &back, &whole);
	same("the picture before", memcmp(a, b, sizeof(a)), 0);
	interlace_conceal(mode, 0, &back, NULL);
	same("grey", b[0], 128);
}

/* Pixel (3, 2), whose true value is 81, when sub-pictures are missing. */
static int concealed(enum interlace_mode mode, unsigned int have)
{
	uint8_t a[W * H], b[W * H];
	struct plane p = {a, W, H, W}, sub = {.data = b};

	fill(a);
	/* what is missing must not count: spoil it */
	interlace_size(mode, W, H, &sub.width, &sub.height);
	sub.stride = sub.width;
	memset(b, 255, sizeof(b));
	for (int k = 0; k < interlace_phases(mode); k++)
		if (!(have >> k & 1))
			interlace_join(mode, k, &sub, &p);
	interlace_conceal(mode, have, &p, NULL);
	return a[3 * W + 2];
}

TEST(test_modes)
{
	for (enum interlace_mode m = INTERLACE_ROWS; m <= INTERLACE_QUARTERS; m++)
		identity(m);
}

TEST(test_concealed)
{
	same("rows, odd ones lost", concealed(INTERLACE_ROWS, 1), 90);
	same("checkerboard, odd one lost", concealed(INTERLACE_CHECKERBOARD, 1), 86);
	same("quarters, its own lost", concealed(INTERLACE_QUARTERS, 0xf & ~(1 << 2)), 89);
	same("quarters, its row's two lost", concealed(INTERLACE_QUARTERS, 3), 90);
	same("quarters, none lost", concealed(INTERLACE_QUARTERS, 0xf), 81);
	same("name", interlace_find("quarters"), INTERLACE_QUARTERS);
	same("no name", interlace_find("none"), INTERLACE_NONE);
}

CHECK_MAIN
