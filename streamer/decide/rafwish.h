/* SPDX-License-Identifier: GPL-2.0 */
/* What users wish of RAF, as options of both its sides. */
#ifndef PAQM_RAFWISH_H
#define PAQM_RAFWISH_H

#include "streamer/control/control.h"
#include "streamer/decide/raf.h"

enum { RAF_WIDTH, RAF_WIDE, RAF_QUALITY, RAF_PACE, RAF_N_LAYERS, RAF_KNOWN, RAF_WISHES };

static const struct ctl_option raf_wishes[] = {
	[RAF_WIDTH] = {"width", "of pictures, wished", 64, 1920, 480},
	[RAF_WIDE] = {"wide", "1: 16:9, 0: 4:3", 0, 1, 0},
	[RAF_QUALITY] = {"quality", "bits per pixel, wished", 0.1, 0.25, 0.2},
	[RAF_PACE] = {"fps", "pictures per second, wished", 10, 30, 15},
	[RAF_N_LAYERS] = {"layers", "of 56, 128, 256, 512 and 768 kbit/s, that there are", 1,
			  RAF_LAYERS, RAF_LAYERS},
	[RAF_KNOWN] = {"avail", "bit/s that are free; 0: packet pairs are measured", 0, 1e9, 0},
	{0},
};

_Static_assert((int)RAF_WISHES <= CTL_OPTIONS, "all fit");

static inline struct raf_user raf_wish(const double *option)
{
	bool wide = option[RAF_WIDE] > 0;
	int step = wide ? 16 : 4; /* sizes go in steps of the aspect ratio */

	return (struct raf_user){.width = (int)option[RAF_WIDTH] / step * step,
				 .wide = step,
				 .high = wide ? 9 : 3,
				 .millibits = (int)(option[RAF_QUALITY] * 1000 + 0.5),
				 .fps = (int)option[RAF_PACE]};
}

static inline int raf_wish_layers(const double *option)
{
	return (int)option[RAF_N_LAYERS];
}

#endif /* PAQM_RAFWISH_H */
