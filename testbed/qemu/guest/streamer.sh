#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The packages of the sender's side, installed from nothing with what they depend on: each does its
# work, and they leave nothing. Runs in a chroot with a network of its own. Prints `ok NAME` or
# `not ok NAME`, and at last a line `N passed, N failed`.
# Usage: streamer.sh install | test | purge
set -u
here=$(dirname "$(readlink -f "$0")")
. "$here/lib.sh"
export DEBIAN_FRONTEND=noninteractive PYTHONDONTWRITEBYTECODE=1
packages=(paqm-streamer gstreamer1.0-paqm paqm-trace paqm-wireshark libpaqmclient0 libpaqmclient-dev
	paqm-trial webext-paqm)

# A live stream to ourselves is decoded at the other end.
streams() {
	ip link set lo up
	paqm-streamer recv --listen 127.0.0.1:5004 --output /tmp/shown.y4m >/tmp/recv.log 2>&1 &
	local receiver=$!
	wait_for grep -q listening /tmp/recv.log
	paqm-streamer send --to 127.0.0.1:5004 --source test --duration 4 --paqmd none || return
	kill "$receiver"
	wait "$receiver"
	[ -s /tmp/shown.y4m ] && grep -E 'decoded [0-9]{2,} pictures' /tmp/recv.log
}

traces() {
	cd /tmp || return
	ffmpeg -v error -f lavfi -i testsrc=size=320x240:rate=24:duration=2 -pix_fmt yuv420p -y clip.y4m &&
		paqm-trace pre clip.y4m --out ladder --ladder 28..31 || return
	paqm-streamer recv --trace --listen 127.0.0.1:6000 --log recv >/tmp/trace.log 2>&1 &
	local receiver=$!
	wait_for grep -q listening /tmp/trace.log
	paqm-streamer send --trace ladder --to 127.0.0.1:6000 --log sent --duration 3 --paqmd none ||
		return
	kill "$receiver"
	wait "$receiver"
	paqm-trace post ladder clip.y4m --sent sent/flow000 --received recv/flow000 --out first &&
		python3 -c 'import json; r = json.load(open("first/report.json"))
assert r["network"]["pictures"] == 48 and r["limits"]["none"]["psnr_y"] > 25, r'
}

# The host that browsers start answers, also to what it refuses.
browsers_find() { # MANIFEST
	local host
	host=$(sed -n 's/.*"path": "\(.*\)".*/\1/p' "$1")
	printf '\2\0\0\0{}' | "$host" | grep -aq '"reason":"flow"'
}

case ${1:-} in
install)
	check "apt installs the sender's packages with what they need" apt-get -q -y install \
		--no-install-recommends "$here"/{paqm-streamer,gstreamer1.0-paqm,paqm-trace}_*.deb \
		"$here"/{paqm-wireshark,libpaqmclient0,libpaqmclient-dev,paqm-trial,webext-paqm}_*.deb
	;;
test)
	for element in paqmh264enc paqmpacer; do
		check "GStreamer knows $element" gst-inspect-1.0 "$element"
	done
	check "the encoder works in a pipeline" gst-launch-1.0 -q videotestsrc num-buffers=24 ! \
		video/x-raw,width=320,height=240 ! paqmh264enc ! h264parse ! fakesink
	check "a stream arrives and is shown" streams
	check "paqm-trace makes a ladder and judges what arrived" traces
	check "paqm-trial says what it does" paqm-trial --help
	for module in /usr/share/paqm-trial/paqm_trial/*.py; do
		check "its $(basename "$module") has what it imports" env PYTHONPATH=/usr/share/paqm-trial \
			python3 -c "import paqm_trial.$(basename "$module" .py)"
	done
	for manifest in /etc/chromium /usr/lib/mozilla; do
		check "browsers find the host by $manifest" \
			browsers_find $manifest/native-messaging-hosts/paqm.native_host.json
	done
	check "the example compiles against the library" sh -c "cc -Wall -Werror -o /tmp/follow \
		/usr/share/doc/libpaqmclient-dev/examples/follow.c \$(pkg-config --cflags --libs libpaqmclient)"
	has "and finds it" "$(ldd /tmp/follow)" 'libpaqmclient.so.0 => /'
	has "tshark shows a message" "$(setpriv --reuid=65534 --regid=65534 --clear-groups \
		env HOME=/nonexistent tshark -V -r "$here/messages.pcap" 2>&1)" 'P-AQM'
	for file in man1/paqm-streamer.1 man1/paqm-trace.1 man3/libpaqmclient.3; do
		check "manual page $file" test -s "/usr/share/man/$file.gz"
	done
	check "completion of paqm-streamer" "$here/completion.sh" \
		/usr/share/bash-completion/completions/paqm-streamer /usr/bin/paqm-streamer send call
	rm -rf /tmp/*
	;;
purge)
	check "apt purges the sender's packages" apt-get -q -y purge "${packages[@]}"
	has "the sender's packages leave nothing" \
		"none: $(find / -xdev -path "$here" -prune -o -path /proc -prune -o -name '*paqm*' -print)" '^none: $'
	;;
esac
echo "$passed passed, $failed failed"
