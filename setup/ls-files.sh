#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Lists the project's files as `git ls-files` does, with its options and patterns: those that git
# has or, in a source archive and where git may not read the clone, all that .gitignore leaves.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
GIT_CEILING_DIRECTORIES=$(dirname "$(pwd -P)") # an archive is not the repository that it lies in
export GIT_CEILING_DIRECTORIES
if git rev-parse --git-dir >/dev/null 2>&1; then
	exec git ls-files "$@"
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git init -q --bare "$scratch"
git --git-dir="$scratch" --work-tree=. ls-files --others --exclude-standard "$@"
