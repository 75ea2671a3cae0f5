#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds the Debian packages of the last commit, outside the checkout, and runs lintian on them. Their version
# ends with that commit, in place of packages of earlier ones.
# Usage: packaging/build-deb.sh [OUTPUT_DIRECTORY]    (default: out/deb)
# Environment: DEB_BUILD_OPTIONS, DEB_BUILD_PROFILES as for dpkg-buildpackage.
set -euo pipefail

case "${1:-}" in
-h | --help)
	sed -n '3,6s/^# //p' "$0"
	exit
	;;
-*)
	echo "build-deb: there is no option $1; see --help" >&2
	exit 2
	;;
esac
top=$(dirname "$(dirname "$(readlink -f "$0")")")
. "$top/testbed/qemu/lib.sh"
say() { printf 'build-deb: %s\n' "$*" >&2; }
fail() {
	say "$@"
	exit 2
}
install_missing git:git
# An archive is not the repository that it lies in.
GIT_CEILING_DIRECTORIES=$(dirname "$top")
export GIT_CEILING_DIRECTORIES
commit=$(git -C "$top" rev-parse --verify HEAD 2>&1) ||
	fail "the packages are of the last commit, and git says: ${commit%%$'\n'*}"
# sudo is for the first time only: directories that it makes are those of its caller.
out=$(realpath -m "${1:-$top/out/deb}")
made=()
dir=$out
while [ ! -d "$dir" ]; do
	made+=("$dir")
	dir=$(dirname "$dir")
done
mkdir -p "$out"
if [ "$(id -u)" -eq 0 ] && [ -n "${SUDO_UID:-}" ] && [ "${#made[@]}" -gt 0 ]; then
	chown "$SUDO_UID:${SUDO_GID:-}" "${made[@]}"
fi
[ -w "$out" ] || fail "$out cannot be written, it is $(stat -c %U "$out")'s: name another directory"
install_missing dpkg-buildpackage:dpkg-dev xz:xz-utils lintian:lintian
if ! wanting=$(dpkg-checkbuilddeps "$top/packaging/debian/control" 2>&1); then
	need_root "installing ${wanting#*dependencies: }"
	say "installing ${wanting#*dependencies: }"
	mkdir -p "$(cache_dir)"
	log=$(cache_dir)/build-dep.log
	get=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
	want=("${get[@]}" --no-install-recommends build-dep "$top/packaging")
	# lists of weeks ago name files that the mirror has no more
	"${want[@]}" >"$log" 2>&1 || { "${get[@]}" update >>"$log" 2>&1 && "${want[@]}" >>"$log" 2>&1; } ||
		fail "apt-get failed, see $log"
fi
if ! git -C "$top" diff --quiet HEAD; then
	echo "build-deb: there are changes that are not committed; the packages will not have them" >&2
fi

work=$(mktemp -d -t paqm-deb.XXXXXX)
trap 'rm -rf "$work"' EXIT
# debian/rules is; some hosts mount /tmp noexec
install -m 755 /dev/null "$work/executed"
"$work/executed" 2>/dev/null ||
	fail "nothing can be executed in $(dirname "$work"): name another place by TMPDIR"
full=$(dpkg-parsechangelog -l "$top/packaging/debian/changelog" -S Version)
version=${full%-*}
tree="$work/paqm-$version"
git -C "$top" archive --format=tar --prefix="paqm-$version/" HEAD >"$work/orig.tar"
tar -C "$work" -xf "$work/orig.tar"
xz -T1 <"$work/orig.tar" >"$work/paqm_$version.orig.tar.xz"
rm "$work/orig.tar"

project=$(sed -nE "s/^ *version: '([^']+)'.*/\1/p" "$tree/meson.build" | head -n 1)
if [ "$project" != "$version" ]; then
	echo "build-deb: packaging/debian/changelog says $version, meson.build $project: make them equal" >&2
	exit 1
fi
cp -r "$tree/packaging/debian" "$tree/debian"
# A version of its own, and a later one for each commit: apt takes two packages of one version for the same,
# and would leave the older one installed.
last() { TZ=UTC git -C "$top" -c log.showSignature=false log -1 --abbrev=8 "$@"; }
built=$full+git$(last --format=%cdg%h --date=format-local:%Y%m%d%H%M%S)
{
	printf 'paqm (%s) unstable; urgency=medium\n\n  * Commit %s.\n\n' "$built" "$commit"
	printf ' -- %s  %s\n\n' "$(sed -n 's/^Maintainer: //p' "$tree/debian/control")" \
		"$(last --format=%cD)"
	cat "$top/packaging/debian/changelog"
} >"$tree/debian/changelog"

(cd "$tree" && dpkg-buildpackage -us -uc)
for file in "$work"/*_*.*; do # what out has of earlier commits would be installed by the same words
	name=${file##*/}
	rm -f "$out/${name%%_*}_"*"${name#*"$built"}"
done
cp -f "$work"/*.deb "$work"/*.dsc "$work"/*.tar.* "$work"/*.changes "$work"/*.buildinfo "$out/"
echo "build-deb: packages are in $out"
# the one tag is about an upload to Debian's own archive
lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$work"/*.changes ||
	fail "the packages are good to install, but not as Debian wants them: see lintian's words above"
