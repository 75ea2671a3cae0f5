/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys that people press on the terminal. That may have another job in its foreground: what is
 * typed then is not for us, and to read it would stop all.
 */
#ifndef PAQM_CALL_KEYS_H
#define PAQM_CALL_KEYS_H

#include <glib.h>

struct keys {
	int fd;
	void (*press)(char key, gpointer data);
	gpointer data;
};

/* Calls k->press in the main loop; @k stays the caller's, and must live as long as that. */
void keys_watch(struct keys *k);

#endif /* PAQM_CALL_KEYS_H */
