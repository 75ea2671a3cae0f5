/* SPDX-License-Identifier: GPL-2.0 */
/* What paqmd answers, as text for people. */
#ifndef PAQMCTL_PRINT_H
#define PAQMCTL_PRINT_H

#include <jansson.h>

static inline const char *str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "-";
}

static inline long long integer(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

/* An answer to "show", or to a part of it. */
void print_show(const json_t *o);

/* A line of "watch". */
void print_event(const json_t *e);

#endif /* PAQMCTL_PRINT_H */
