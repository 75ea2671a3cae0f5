#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Builds what scenarios run, on the image: this project's programs, the lab's own
# tools, and GStreamer's list of the plugins that the streamer loads. `build.sh all tests`, on the
# tests' image: what suites in a guest run besides, too. `build.sh compile` makes no list, which has
# to be made where it is read: `build.sh list` in a guest does that and no more.
set -e
part=$1 more=$2
repo=/run/lab/repo build=/run/lab/build tools=/run/lab/build/lab
export PATH=/usr/sbin:/usr/bin
set_up() {
	meson setup "$@" "$build" "$repo" -Dpaqmtop=disabled >"$build/setup.log" || {
		tail -n 3 "$build/setup.log"
		exit 1
	}
}
c_program() {
	gcc -std=gnu17 -O2 -Wall -Wextra -Werror -I"$repo" "$@"
}
compile() {
	[ -e "$build/build.ninja" ] || set_up
	cd "$build"
	ninja streamer/paqm-streamer streamer/libgstpaqm.so feedback-daemon/paqmd \
		feedback-daemon/paqmctl feedback-daemon/rlqosd userspace/tc-paqm/q_paqm.so \
		userspace/tc-paqm/q_dcbt.so userspace/tc-paqm/q_rlqos.so \
		streamer/tests/gst_send browser/paqm-native-host browser/extension
	if [ "$more" = tests ]; then
		bpf=userspace/tc-paqm/bpf/media.bpf.o
		grep -q "^build $bpf" build.ninja || set_up --reconfigure # a copy of the programs of scenarios
		# the streamer anew, too: here it has libnice
		ninja $bpf streamer/paqm-streamer streamer/paqm-meet feedback-daemon/attack/attacker \
			feedback-daemon/tests/inject feedback-daemon/tests/sleeper.so kernel/fuzz/classify-cases \
			libpaqmclient/follow streamer/tests/ctl_flow streamer/tests/room
	fi

	mkdir -p "$tools"
	c_program -shared -fPIC -o "$tools/vclock.so" "$repo/testbed/rivals/webrtc/vclock.c" -ldl
	c_program -o "$tools/load" "$repo"/testbed/guest/load*.c -lm
	c_program -o "$tools/spec_traffic" "$repo"/kernel/lab-tests/spec_traffic*.c -lm
	c_program -o "$tools/reports_of_u" "$repo"/core/tests/reports_of_u.c -lm
}
if [ "$part" != list ]; then
	compile
fi
if [ "$part" = compile ]; then
	exit
fi

# Made once: programs that each look for plugins themselves are ready later.
list_plugins() { # FILE PATH: of the image and of that path
	rm -f "$tools/$1"
	GST_REGISTRY=$tools/$1 GST_PLUGIN_PATH=$2 gst-inspect-1.0 >"$build/$1.log" 2>&1
}
other=/run/lab/cache/gstreamer-plugins
list_plugins gstreamer-registry.bin "$build/streamer"
[ ! -d "$other" ] || list_plugins gstreamer-registry-other.bin "$build/streamer:$other"
export GST_REGISTRY=$tools/gstreamer-registry.bin GST_PLUGIN_PATH=$build/streamer
for element in paqmh264enc avdec_h264 rtph264pay rtpbin udpsrc appsink; do
	gst-inspect-1.0 "$element" >/dev/null || {
		echo "GStreamer's element $element is not in the image"
		exit 1
	}
done
