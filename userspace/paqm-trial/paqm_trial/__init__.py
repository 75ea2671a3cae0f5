# SPDX-License-Identifier: GPL-2.0
"""The trial kit: see cli.py for what there is to say, store.py for how data lie on disk."""
