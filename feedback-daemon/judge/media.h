/* SPDX-License-Identifier: GPL-2.0 */
/* Packets that this host sends: digests of them prove messages. */
#ifndef PAQMD_MEDIA_H
#define PAQMD_MEDIA_H

#include "feedback-daemon/judge/state.h"

/* An outgoing IP packet of which @caplen bytes were captured at @now_ns. */
void engine_media(struct engine *e, const uint8_t *ip, uint32_t caplen, uint64_t now_ns);

/* Digest of what proves a packet, bound to the flow. Return: false if it proves nothing. */
bool media_digest(const struct engine *e, const struct flow *f, const uint8_t *payload,
		  uint32_t len, uint64_t *result);

/* Has the flow sent from @addr within the life of a digest? */
bool media_left_from(const struct engine *e, const struct flow *f, const struct addr *addr,
		     uint64_t now_ns);

/* Is the payload of the flow's RTP stream, if it has named one? */
bool media_ssrc_agrees(const struct flow *f, const uint8_t *payload, uint32_t len);

#endif /* PAQMD_MEDIA_H */
