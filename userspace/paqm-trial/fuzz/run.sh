#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Data folders with broken bytes, for so long: the report must stand all of them. What it falls over is
# said with the seed that makes it again (PAQM_SEED).
# Usage: run.sh report SECONDS
set -u
here=$(dirname "$(readlink -f "$0")")
export PAQM_SEED=${PAQM_SEED:-$RANDOM$RANDOM} PAQM_SECONDS=${2:?usage: run.sh report SECONDS}
"$here/../tests/test_trial.py" Hostile.test_mutations 2>&1 | tail -n 30
exit "${PIPESTATUS[0]}"
