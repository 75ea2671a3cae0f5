/* SPDX-License-Identifier: GPL-2.0 */
/* Candidates of ICE (RFC 8445): libnice's, and those that offers have. */
#ifndef PAQM_CALL_CANDIDATES_H
#define PAQM_CALL_CANDIDATES_H

#include <nice/agent.h>

#include "streamer/call/offer.h"

#define COMPONENT 1 /* of a stream: RTP, and RTCP with it */

enum candidate_kind candidate_kind(const NiceCandidate *c);
/* Our own of a stream, and its words; of many some, with those that servers have told among them.
 */
void candidates_tell(NiceAgent *agent, guint stream, struct offer_ice *out);
/* Those of this end that are neither in @offered nor in @later; the latter has them then, as many
 * as fit.
 */
void candidates_more(NiceAgent *agent, guint stream, const struct offer_ice *offered,
		     struct offer_ice *later, struct offer_ice *more);
/* More of the peer's, besides those. */
void candidates_add(NiceAgent *agent, guint stream, const struct offer_ice *more);
/* Those of the peer are to be tried. */
void candidates_try(NiceAgent *agent, guint stream, const struct offer_ice *theirs);

#endif /* PAQM_CALL_CANDIDATES_H */
