# SPDX-License-Identifier: GPL-2.0
"""Entry point of `python -m paqm_lab`."""

import sys

from paqm_lab.cli import main

sys.exit(main())
