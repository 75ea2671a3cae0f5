# SPDX-License-Identifier: GPL-2.0
"""paqm-lab: runs real kernel code, real senders and real receivers in virtual time."""
