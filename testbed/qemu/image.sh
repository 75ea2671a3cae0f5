#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Makes the disk of a stock Debian system for the package tests: the distribution's own kernel, dkms
# and iproute2, systemd, ifupdown, NetworkManager and pppd; the kernel's headers lie in a local package
# directory. Kept in the user's cache; prints the directory with disk.img, vmlinuz and initrd.
# Usage: testbed/qemu/image.sh bookworm|trixie        (as root)
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
. "$here/lib.sh"
suite=${1:?usage: image.sh bookworm|trixie}
packages=systemd-sysv,udev,dbus,initramfs-tools,linux-image-amd64,dkms,kmod,iproute2,ifupdown
packages+=,network-manager,ppp,pppoe,ethtool,jq,python3,procps
packages+=,libjansson4,libpcap0.8,libseccomp2,libbpf1

need_root "building a disk image"
install_missing mmdebstrap:mmdebstrap mkfs.ext4:e2fsprogs
[ -r /usr/share/keyrings/debian-archive-keyring.gpg ] ||
	fail "debian-archive-keyring is missing: run setup/setup.sh"
key=$(cat "$0" "$here"/guest/paqm-test.service | sha256sum | cut -c 1-12)
home="$(cache_dir)/qemu/$suite-$key"
if [ -e "$home/built" ]; then
	echo "$home"
	exit 0
fi
need_space "$(cache_dir)" 6000

site=$(archive)
rm -rf "$home"
mkdir -p "$home"
work=$(mktemp -d "$home/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
say "$suite: fetching and unpacking the system (log: $home/build.log)"
cat >"$work/setup.sh" <<'HOOK'
set -eu
root=$1
chroot "$root" apt-get -q -y -o APT::Keep-Downloaded-Packages=true --download-only \
	--no-install-recommends install linux-headers-amd64
mkdir -p "$root/srv/headers"
mv "$root"/var/cache/apt/archives/linux-*.deb "$root/srv/headers/"
for rest in "$root"/var/cache/apt/archives/*.deb; do
	[ ! -e "$rest" ] || mv "$rest" "$root/srv/headers/"
done
(cd "$root/srv/headers" && chroot "$root" sh -c 'cd /srv/headers && dpkg-scanpackages . 2>/dev/null >Packages')
rm -rf "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/* "$root"/var/lib/apt/lists/*
echo 'deb [trusted=yes] file:/srv/headers ./' >"$root/etc/apt/sources.list"
chroot "$root" apt-get -q update
# Nothing but the drivers that the disk needs: an initrd with all takes a minute to unpack here.
printf '%s\n' virtio_pci virtio_blk ext4 >>"$root/etc/initramfs-tools/modules"
echo 'MODULES=list' >"$root/etc/initramfs-tools/conf.d/small"
chroot "$root" update-initramfs -u -k all
echo paqm-router >"$root/etc/hostname"
echo '127.0.0.1 localhost paqm-router' >"$root/etc/hosts"
printf '/dev/vda / ext4 noatime 0 1\n' >"$root/etc/fstab"
rm -f "$root"/etc/systemd/system/multi-user.target.wants/NetworkManager.service
for unit in apt-daily.timer apt-daily-upgrade.timer fstrim.timer e2scrub_all.timer dpkg-db-backup.timer \
	NetworkManager-wait-online.service systemd-timesyncd.service wpa_supplicant.service getty@tty1.service \
	serial-getty@ttyS0.service serial-getty@ttyS1.service; do
	ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s /etc/systemd/system/paqm-test.service "$root/etc/systemd/system/multi-user.target.wants/"
HOOK
nice -n 10 mmdebstrap --quiet --variant=minbase --mode=root --include="$packages" \
	--keyring=/usr/share/keyrings/debian-archive-keyring.gpg --components=main \
	--aptopt='APT::Install-Recommends "false"' \
	--customize-hook="copy-in $here/guest/paqm-test.service /etc/systemd/system" \
	--customize-hook="sh $work/setup.sh \"\$1\"" \
	"$suite" "$work/root" "$site" >"$home/build.log" 2>&1 ||
	fail "mmdebstrap failed: $(tail -n 3 "$home/build.log" | tr '\n' ' ')"
cp "$work"/root/boot/vmlinuz-* "$home/vmlinuz"
cp "$work"/root/boot/initrd.img-* "$home/initrd"
ls "$work/root/lib/modules" >"$home/kernel-version"
truncate -s 4G "$home/disk.img"
mkfs.ext4 -q -F -O ^has_journal -d "$work/root" "$home/disk.img" >>"$home/build.log" 2>&1 ||
	fail "mkfs.ext4 failed: $(tail -n 1 "$home/build.log")"
touch "$home/built"
say "$suite: kernel $(cat "$home/kernel-version"), image $(du -m "$home/disk.img" | cut -f 1) MB"
echo "$home"
