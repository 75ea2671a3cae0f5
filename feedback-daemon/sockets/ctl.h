/* SPDX-License-Identifier: GPL-2.0 */
/* Server of the control socket: newline-delimited JSON for paqmctl. */
#ifndef PAQMD_CTL_H
#define PAQMD_CTL_H

#include "feedback-daemon/loop.h"
#include "feedback-daemon/sockets/request.h"
#include "feedback-daemon/host/sandbox.h"

#define CTL_PATH "/run/paqmd/control.sock" /* overridden by $PAQM_CONTROL */

/* What the control server asks the main program for. */
struct ctl_source {
	/* Fill in what other parts know. */
	void (*stats)(struct daemon *d, struct request_env *env);
	/* Read the configuration again. Return: true, or false with @why filled in. */
	bool (*reload)(struct daemon *d, char why[CONF_WHY]);
};

/* Listen at @path, as @user later on. Return: 0, or -1 after having logged why not. */
int ctl_open(struct daemon *d, const char *path, const struct sandbox_user *user,
	     const struct ctl_source *source);
void ctl_close(struct daemon *d);

/* Tell those who watch. */
void ctl_event_verdict(struct daemon *d, const struct verdict *v, uint64_t t_ns);
void ctl_event_packet(struct daemon *d, const struct verdict *v, const uint8_t *ip, uint32_t len,
		      uint64_t t_ns);
void ctl_event_flow(struct daemon *d, const char *event, const struct flow *f);

#endif /* PAQMD_CTL_H */
