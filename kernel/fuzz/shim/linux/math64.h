/* SPDX-License-Identifier: GPL-2.0 */
/* Stands for the kernel's header: all of it is in one place. */
#include "../shim.h"
