// SPDX-License-Identifier: GPL-2.0
/* Batches of segmentation offload; see batch.h. */
#include "feedback-daemon/capture/batch.h"

#include <stdbool.h>
#include <string.h>

#define RTP 12

/* Is there, at @at, the RTP packet that comes @n after the first one? */
static bool follows(const uint8_t *payload, uint32_t at, uint32_t n)
{
	const uint8_t *p = payload + at;

	return p[0] >> 6 == 2 && !memcmp(p + 8, payload + 8, 4) &&
	       paqm_get16(p + 2) == (uint16_t)(paqm_get16(payload + 2) + n);
}

uint32_t batch_segment(const uint8_t *payload, uint32_t len)
{
	uint32_t size, n;

	if (len < 2 * RTP || payload[0] >> 6 != 2)
		return len;
	for (size = PAQM_PROOF_OTHER; size <= len - RTP; size++) {
		if (!follows(payload, size, 1))
			continue;
		for (n = 2; n * size <= len - RTP && follows(payload, n * size, n); n++)
			;
		/* one that is shorter than an RTP header is none */
		if (n * size > len - RTP && len <= n * size && n <= BATCH_SEGMENTS)
			return size;
	}
	return len;
}

uint32_t batch_packet(uint8_t ip[PAQM_QUOTE_MAX], const uint8_t *head, uint32_t head_len,
		      const uint8_t *payload, uint32_t payload_len)
{
	uint32_t len = payload_len < PAQM_PROOF_MAX ? payload_len : PAQM_PROOF_MAX;

	memcpy(ip, head, head_len);
	memcpy(ip + head_len, payload, len);
	return head_len + len;
}

void batch_split(const uint8_t *ip, uint32_t len,
		 void (*emit)(void *data, const uint8_t *head, uint32_t head_len,
			      const uint8_t *payload, uint32_t payload_len),
		 void *data)
{
	uint8_t head[BATCH_HEAD];
	uint32_t at, size, hlen;
	struct paqm_quote q;

	if (len < 20 || paqm_quote_decode(ip, len, ip[0] >> 4, &q) ||
	    (q.version != 4 && q.version != 6)) {
		emit(data, ip, len < BATCH_HEAD ? len : BATCH_HEAD, ip, 0);
		return;
	}
	hlen = q.ip_hlen + 8;
	memcpy(head, ip, hlen);
	size = batch_segment(q.payload, q.payload_len);
	for (at = 0; at < q.payload_len; at += size) {
		uint32_t left = q.payload_len - at, take = left < size ? left : size;

		paqm_put16(head + q.ip_hlen + 4, (uint16_t)(8 + take));
		if (q.version == 4)
			paqm_put16(head + 2, (uint16_t)(hlen + take));
		else
			paqm_put16(head + 4, (uint16_t)(8 + take));
		emit(data, head, hlen, q.payload + at, take);
	}
}
