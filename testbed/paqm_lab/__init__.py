# SPDX-License-Identifier: GPL-2.0
"""paqm-lab: runs real kernel code, real senders and real receivers in virtual time."""

import os

# Guests have users besides root, such as that of a daemon which gives up its privileges. What the
# umask of who runs the lab hides from others, a guest's image and files would hide from those.
os.umask(0o022)
