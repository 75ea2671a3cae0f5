// SPDX-License-Identifier: GPL-2.0
/* 2D interlacing: split and join are inverse, concealment by the published neighbours. */
#include <stdio.h>
#include <string.h>

#include "streamer/media/interlace.h"

#define W 16
#define H 12

static int failed;

static void check(int got, int want, const char *what, int k)
{
	if (got == want)
		return;
	failed++;
	printf("FAIL %s (%d): %d, want %d\n", what, k, got, want);
}

static void fill(uint8_t *data)
{
	for (int r = 0; r < H; r++)
		for (int c = 0; c < W; c++)
			data[r * W + c] = (uint8_t)(7 * r * r + 3 * c * c + r * c);
}

static void test_identity(enum interlace_mode mode)
{
	uint8_t a[W * H], b[W * H], part[W * H];
	struct plane whole = {a, W, H, W}, back = {b, W, H, W}, sub = {.data = part};

	fill(a);
	memset(b, 0, sizeof(b));
	interlace_size(mode, W, H, &sub.width, &sub.height);
	sub.stride = sub.width;
	check(sub.width * sub.height * interlace_phases(mode), W * H, "pixels", mode);
	for (int k = 0; k < interlace_phases(mode); k++) {
		interlace_split(mode, k, &whole, &sub);
		interlace_join(mode, k, &sub, &back);
	}
	check(memcmp(a, b, sizeof(a)), 0, "identity", mode);
	interlace_conceal(mode, 0xf, &back, NULL);
	check(memcmp(a, b, sizeof(a)), 0, "nothing to conceal", mode);
	/* everything is missing: the picture before */
	memset(b, 9, sizeof(b));
	interlace_conceal(mode, 0, &back, &whole);
	check(memcmp(a, b, sizeof(a)), 0, "the picture before", mode);
	interlace_conceal(mode, 0, &back, NULL);
	check(b[0], 128, "grey", mode);
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

int main(void)
{
	for (enum interlace_mode m = INTERLACE_ROWS; m <= INTERLACE_QUARTERS; m++)
		test_identity(m);
	check(concealed(INTERLACE_ROWS, 1), 90, "rows, odd ones lost", 0);
	check(concealed(INTERLACE_CHECKERBOARD, 1), 86, "checkerboard, odd one lost", 0);
	check(concealed(INTERLACE_QUARTERS, 0xf & ~(1 << 2)), 89, "quarters, its own lost", 0);
	check(concealed(INTERLACE_QUARTERS, 3), 90, "quarters, its row's two lost", 0);
	check(concealed(INTERLACE_QUARTERS, 0xf), 81, "quarters, none lost", 0);
	check((int)interlace_find("quarters"), INTERLACE_QUARTERS, "name", 0);
	check((int)interlace_find("none"), INTERLACE_NONE, "no name", 0);
	if (!failed)
		printf("all is well\n");
	return failed != 0;
}
