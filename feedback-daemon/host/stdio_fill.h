/* SPDX-License-Identifier: GPL-2.0 */
/* Descriptors that whoever starts a program has closed. */
#ifndef PAQMD_STDIO_FILL_H
#define PAQMD_STDIO_FILL_H

#include <fcntl.h>
#include <unistd.h>

/* What is opened next would be standard output or error, and be printed into. Only to be read from,
 * so that printing fails as before.
 */
static inline void stdio_fill(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_NOCTTY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

#endif /* PAQMD_STDIO_FILL_H */
