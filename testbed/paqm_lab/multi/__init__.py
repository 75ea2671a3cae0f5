# SPDX-License-Identifier: GPL-2.0
"""Several routers: parking lot, GFC-2, route changes, failing routers, lost feedback."""
