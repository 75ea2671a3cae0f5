/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses in tables of sockets: the kernel shows words in the machine's own byte order. */
#ifndef PAQM_SHOWN_H
#define PAQM_SHOWN_H

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SHOWN(little, big) little
#else
#define SHOWN(little, big) big
#endif

#define SHOWN_MAPPED SHOWN("FFFF0000", "0000FFFF") /* the third word of ::ffff:0:0/96 */

#endif /* PAQM_SHOWN_H */
