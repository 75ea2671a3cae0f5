/* SPDX-License-Identifier: GPL-2.0 */
/* One line per event that matters, to stderr; floods are counted instead. */
#ifndef PAQMD_LOG_H
#define PAQMD_LOG_H

#include <stdbool.h>

/* Events that others can provoke share a limit per class. */
enum log_class { LOG_CLASS_REFUSED, LOG_CLASS_RATE, LOG_CLASS_CLIENT, LOG_CLASS_MAX };

extern bool log_verbose;

__attribute__((format(printf, 1, 2))) void log_line(const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void log_limited(enum log_class c, const char *fmt, ...);

#endif /* PAQMD_LOG_H */
