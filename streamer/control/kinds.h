/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every controller and the file that has its struct ctl_kind, the default first. No include guard:
 * whoever includes it defines CTL_KIND() before. meson.build reads the files' names here, too.
 */
CTL_KIND(auto, auto.c)
CTL_KIND(nada, nada.c)
CTL_KIND(tfrc, tfrc.c)
CTL_KIND(gcc, gcc.c)
CTL_KIND(erf, published.c)
CTL_KIND(ecf, published.c)
CTL_KIND(tcplike, tcplike.c)
CTL_KIND(rap, rap.c)
CTL_KIND(gaimd, gaimd.c)
CTL_KIND(tear, tear.c)
CTL_KIND(ldaplus, ldaplus.c)
CTL_KIND(layered, layered.c)
CTL_KIND(binary, layered.c)
CTL_KIND(naive, naive.c)
CTL_KIND(cadpc, cadpc.c)
CTL_KIND(adivis, adivis.c)
CTL_KIND(raf, raf.c)
CTL_KIND(levels, levels.c)
CTL_KIND(fixed, fixed.c)
#undef CTL_KIND
