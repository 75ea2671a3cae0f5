/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Carriers of feedback within the stream, GStreamer's side: the field in RTP packets, SRTP
 * by a key from a file. Used by both subcommands.
 */
#ifndef PAQM_CARRY_H
#define PAQM_CARRY_H

#include <gst/gst.h>

#include "core/paqm_inband.h"

#define CARRY_ELEMENT_BYTES 20 /* what an element adds to an RTP packet */
#define CARRY_MORE_BYTES 16    /* and a supplement to that */

/**
 * carry_insert() - put a field into an RTP packet, as header extension element
 * @buf: packet; taken. Elements with one-byte headers that it has stay
 * @field: what to put in
 * @more: its supplement; NULL: none
 *
 * Return: the packet with it, or as it was if it cannot take another element.
 */
GstBuffer *carry_insert(GstBuffer *buf, const struct paqm_field *field,
			const struct paqm_more *more);

/**
 * carry_key() - master key and salt of SRTP, 60 hexadecimal digits in a file
 *
 * Return: the 30 bytes, NULL with @error.
 */
GstBuffer *carry_key(const char *path, GError **error);

/**
 * carry_key_fits() - does a key go with choices that are repeatable?
 * @repeats: the option that makes them so; NULL: none
 * @anyway: --reuse-keystream: for tests that have nothing to hide
 *
 * SRTP's keystream follows from key, SSRC and packet number (RFC 3711 section 9.1): who hears two
 * streams that have all of them in common knows the difference of what is in them, and from there
 * both.
 */
gboolean carry_key_fits(const char *repeats, gboolean anyway, GError **error);

/* What srtpdec asks for: the key, and a rollover counter to begin with (rollover.h). */
GstCaps *carry_key_caps(GstBuffer *key, guint roc);

/* Let an element srtpenc or srtpdec use that key: AES-128 counter mode, HMAC-SHA1-80. */
void carry_use_key(GstElement *srtp, GstBuffer *key);

#endif /* PAQM_CARRY_H */
