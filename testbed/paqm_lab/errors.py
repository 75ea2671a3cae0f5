# SPDX-License-Identifier: GPL-2.0
"""The one exception that the user is meant to read: shown as a single line, exit status 2."""


class LabError(Exception):
    """Something the user can mend; the message says what is wrong, where, and what to do."""
