/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One line per event that matters, to stderr; floods, and what nobody reads, are counted instead.
 * If stderr is the journal, each line begins with its priority as sd-daemon(3) has it, and the
 * clock and the name are left to the journal.
 */
#ifndef PAQMD_LOG_H
#define PAQMD_LOG_H

#include <stdbool.h>

/* Events that others can provoke share a limit per class. */
enum log_class { LOG_CLASS_RATE, LOG_CLASS_CLIENT, LOG_CLASS_MAX };

extern bool log_verbose;
extern const char *log_name; /* of the program; paqmd unless it is set */

/* Find out who reads stderr. Until then lines are for people. To be called before anything is
 * opened.
 */
void log_open(void);

/* Something does not work: what, why, what to do. Priority: error. */
__attribute__((format(printf, 1, 2))) void log_line(const char *fmt, ...);

/* Something happened as it should. Priority: info. */
__attribute__((format(printf, 1, 2))) void log_info(const char *fmt, ...);

/* Something may be wrong, or others do what they should not. Priority: warning. */
__attribute__((format(printf, 1, 2))) void log_warning(const char *fmt, ...);

/* What a peer has caused: at most 20 lines at once and 5 a second of each class. Priority: that of
 * the class, info for rates and warning for clients.
 */
__attribute__((format(printf, 2, 3))) void log_limited(enum log_class c, const char *fmt, ...);

#endif /* PAQMD_LOG_H */
