/* SPDX-License-Identifier: GPL-2.0 */
/* Names of devices and words of files may be any bytes; JSON is UTF-8. */
#ifndef PAQMD_UTF8_H
#define PAQMD_UTF8_H

#include <stdbool.h>
#include <stdint.h>

/* Whether all of @s is UTF-8: nothing too long, no surrogates, nothing beyond U+10FFFF. */
static inline bool utf8_is(const char *s)
{
	static const uint32_t least[] = {0x80, 0x800, 0x10000};
	const uint8_t *p = (const uint8_t *)s;

	while (*p) {
		uint32_t code = *p++;
		int more = code >= 0xf0 ? 3 : code >= 0xe0 ? 2 : 1; /* bytes that follow */

		if (code < 0x80)
			continue;
		if (code < 0xc0 || code >= 0xf8)
			return false;
		code &= 0x3fU >> more;
		for (int i = 0; i < more; i++, p++) {
			if ((*p & 0xc0) != 0x80)
				return false;
			code = code << 6 | (*p & 0x3f);
		}
		if (code < least[more - 1] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
			return false;
	}
	return true;
}

/* Makes @s UTF-8: if it is not, all bytes beyond ASCII become '?'. */
static inline void utf8_mend(char *s)
{
	if (utf8_is(s))
		return;
	for (; *s; s++)
		if (*s & 0x80)
			*s = '?';
}

#endif /* PAQMD_UTF8_H */
