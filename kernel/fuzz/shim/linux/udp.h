/* SPDX-License-Identifier: GPL-2.0 */
/* The structures as user space knows them, and what kernel code adds. */
#include_next <linux/udp.h>
#include "../shim.h"
