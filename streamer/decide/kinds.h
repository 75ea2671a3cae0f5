/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The controllers that decide at the receiver, each with the file of that side. Their names are
 * those of their other sides (control/kinds.h). No include guard: whoever includes it defines
 * DEC_KIND() before. meson.build reads the files' names here, too.
 */
DEC_KIND(raf, raf.c)
DEC_KIND(layered, layered.c)
DEC_KIND(binary, layered.c)
DEC_KIND(levels, levels.c)
#undef DEC_KIND
