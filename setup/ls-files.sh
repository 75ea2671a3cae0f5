#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Lists the project's files as `git ls-files` does, with its options and patterns: those that git
# has or, in a source archive and where git may not read the clone, all that .gitignore leaves.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ]; then
	exec git ls-files "$@"
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git init -q --bare "$scratch"
git --git-dir="$scratch" --work-tree=. ls-files --others --exclude-standard "$@"
