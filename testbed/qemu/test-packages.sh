#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Proves on stock Debian systems, with the distribution's kernel under QEMU, that the packages
# install, build, work on virtio and e1000 devices and under the service manager, and leave nothing
# behind. Those of the sender's side are tied to the libraries of the release that they were built
# on: they are installed in a chroot with that release. Prints `ok NAME` and
# `not ok NAME` for each system, then `N passed, N failed`. Slow without hardware virtualisation,
# which is not used unless PAQM_QEMU_ACCEL=kvm. Logs and consoles are kept in OUTPUT.
# Usage: testbed/qemu/test-packages.sh [--debs DIRECTORY] [--out OUTPUT] [bookworm|trixie]...
#	--debs	packages to test (default: build those of the last commit)
set -u
here=$(dirname "$(readlink -f "$0")")
top=$(dirname "$(dirname "$here")")
. "$here/lib.sh"
debs=
out="$top/out/packages"
suites=()
while [ $# -gt 0 ]; do
	case $1 in
	--debs | --out)
		[ $# -ge 2 ] || fail "$1 needs a directory"
		[ "$1" = --debs ] && debs=$2 || out=$2
		shift
		;;
	bookworm | trixie) suites+=("$1") ;;
	-h | --help)
		sed -n '3,12s/^# \{0,1\}//p' "$0"
		exit
		;;
	*) fail "what is \"$1\"? see the head of $0" ;;
	esac
	shift
done
[ "${#suites[@]}" -gt 0 ] || suites=(bookworm trixie)

need_root "making disk images"
install_missing qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils
mkdir -p "$out" || fail "cannot create $out"
out=$(readlink -f "$out")
if [ -z "$debs" ]; then
	debs="$out/deb"
	rm -rf "$debs"
	say "building the packages (log: $out/deb.log)"
	install_missing dh:debhelper dh_dkms:dh-dkms lintian:lintian clang:clang bpftool:bpftool \
		/usr/include/bpf/libbpf.h:libbpf-dev \
		/usr/share/bash-completion/bash_completion:bash-completion
	DEB_BUILD_OPTIONS="nocheck parallel=1 ${DEB_BUILD_OPTIONS:-}" \
		"$top/packaging/build-deb.sh" "$debs" >"$out/deb.log" 2>&1 ||
		fail "the packages cannot be built: $(tail -n 3 "$out/deb.log" | tr '\n' ' ')"
fi
for name in sch-paqm-dkms tc-paqm paqmd paqmtop libpaqmclient0 libpaqmclient-dev \
	paqm-wireshark webext-paqm paqm-streamer paqm-meet gstreamer1.0-paqm paqm-trace paqm-trial; do
	compgen -G "$debs/${name}_*.deb" >/dev/null || fail "there is no package $name in $debs"
done

# Whatever ends this script ends the guest and its helpers too.
jobs=()
roots=()
finish() {
	[ "${#jobs[@]}" -eq 0 ] || kill "${jobs[@]}" 2>/dev/null
	jobs=()
	rm -rf "${scratch:-}" "${roots[@]}"
}
trap finish EXIT
trap 'exit 130' INT TERM

# boot SUITE IMAGE_DIRECTORY PAYLOAD: results go to the output as they come
boot() {
	local suite=$1 image=$2 payload=$3 dir="$out/$1"
	mkdir -p "$dir"
	rm -f "$dir/console.log"
	: >"$dir/result.log"
	qemu-img create -q -f qcow2 -F raw -b "$image/disk.img" "$dir/disk.qcow2" || return
	run_machine "$suite" "$image" "$payload" "$dir"
	if grep -q '^# restarts' "$dir/result.log"; then
		run_machine "$suite" "$image" "$payload" "$dir"
	fi
	rm -f "$dir/disk.qcow2"
}

# run_machine SUITE IMAGE_DIRECTORY PAYLOAD DIRECTORY: until it is turned off
run_machine() {
	local suite=$1 image=$2 payload=$3 dir=$4 nets=() qemu i driver
	for i in 0 1 2 3; do # two and two connected, as by a cable
		driver=virtio-net-pci
		[ $i -lt 2 ] || driver=e1000
		nets+=(-netdev "hubport,id=n$i,hubid=$((i / 2))" -device "$driver,netdev=n$i,romfile=")
	done
	# no_timer_check, tsc=reliable: on a busy machine the kernel's tests of its timer and its clock
	# fail, and the clock that it takes then is slow to read; e2scrub_reap looks for volumes of LVM
	# for minutes
	timeout "${PAQM_QEMU_TIMEOUT:-7200}" nice -n 10 qemu-system-x86_64 \
		-accel "${PAQM_QEMU_ACCEL:-tcg,thread=multi}" \
		-m 1G -smp 2 -nographic -nodefaults \
		-no-reboot -kernel "$image/vmlinuz" -initrd "$image/initrd" -append "root=/dev/vda rw \
console=ttyS0 net.ifnames=0 no_timer_check tsc=reliable panic=-1 systemd.mask=e2scrub_reap.service" \
		-drive "file=$dir/disk.qcow2,if=virtio,cache=unsafe" \
		-drive "file=$payload,format=raw,if=virtio,readonly=on" \
		-chardev "file,id=console,path=$dir/console.log,append=on" -serial chardev:console \
		-chardev "file,id=result,path=$dir/result.log,append=on" -serial chardev:result "${nets[@]}" \
		2>"$dir/qemu.log" &
	qemu=$!
	jobs=("$qemu")
	tail -c +$(($(stat -c %s "$dir/result.log") + 1)) -f --pid="$qemu" "$dir/result.log" |
		sed -u "s/\\r\$//; s/^ok /ok $suite: /; s/^not ok /not ok $suite: /; \
			s/^\([0-9]* passed, [0-9]* failed\)/# $suite: \1/" &
	wait
	jobs=()
}

# sender_packages SUITE FILES: in a chroot; results go to the output
sender_packages() {
	local suite=$1 files=$2 dir="$out/$1-sender" root step
	mkdir -p "$dir"
	root=$(mktemp -d -t paqm-chroot.XXXXXX)
	roots+=("$root")
	install_missing mmdebstrap:mmdebstrap
	"$top/feedback-daemon/wireshark/make_pcap.py" "$top/docs/vectors" "$files/messages.pcap"
	cp "$top/feedback-daemon/tests/completion.sh" "$files/"
	cat >"$files/hook" <<-HOOK
		set -eu
		cp -r "$files" "\$1/srv/paqm"
		chroot "\$1" /srv/paqm/streamer.sh install >"$dir/install.log" 2>&1
	HOOK
	nice -n 10 mmdebstrap --quiet --variant=minbase --mode=root --components=main \
		--include=ffmpeg,gcc,gstreamer1.0-libav,gstreamer1.0-plugins-bad,gstreamer1.0-tools \
		--include=iproute2,libc6-dev,pkg-config,tshark --aptopt='APT::Install-Recommends "false"' \
		--customize-hook="sh $files/hook \"\$1\"" "$suite" "$root" "$(archive)" >"$dir/build.log" 2>&1 ||
		tail -n 3 "$dir/build.log" >&2
	cp "$dir/install.log" "$dir/result.log"
	for step in test purge; do
		unshare -n -p -f --kill-child --mount-proc="$root/proc" chroot "$root" /srv/paqm/streamer.sh $step
	done >>"$dir/result.log" 2>"$dir/errors.log"
	grep -E '^(not )?ok ' "$dir/result.log" | sed "s/ok /ok $suite: /"
	rm -rf "$root"
}

# count RESULTS PARTS: adds up what a system said; it must have come to the end of its parts
count() {
	passed=$((passed + $(grep -c '^ok ' "$1/result.log")))
	failed=$((failed + $(grep -c '^not ok ' "$1/result.log")))
	if [ "$(grep -c '^[0-9]* passed, [0-9]* failed' "$1/result.log")" != "$2" ]; then
		echo "not ok $(basename "$1"): did not come to its end, see $1"
		failed=$((failed + 1))
	fi
}

passed=0
failed=0
for suite in "${suites[@]}"; do
	image=$("$here/image.sh" "$suite") || exit 2
	for old in "$(dirname "$image")/$suite"-*; do # of a former recipe
		[ "$old" = "$image" ] || rm -rf "$old"
	done
	scratch=$(mktemp -d -t paqm-payload.XXXXXX)
	mkdir "$scratch/files"
	cp "$here"/guest/* "$top/kernel/tc-tests/send.py" "$top/tests/blast.py" \
		"$top/packaging/debian/tests/attach" \
		"$debs"/*.deb "$scratch/files/"
	rm -f "$scratch"/files/*dbgsym*.deb
	tar -C "$scratch/files" -cf "$scratch/payload.tar" .
	say "$suite: kernel $(cat "$image/kernel-version"), console in $out/$suite/console.log"
	boot "$suite" "$image" "$scratch/payload.tar"
	count "$out/$suite" 1
	[ "$suite" != "$(codename)" ] || {
		sender_packages "$suite" "$scratch/files"
		count "$out/$suite-sender" 3
	}
	rm -rf "$scratch"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
