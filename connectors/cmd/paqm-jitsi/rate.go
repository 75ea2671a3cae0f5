// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// What the bridge is told to assume, and its messages (doc/allocation.md and BridgeChannelMessage.kt of
// jitsi-videobridge).

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	headers = 1.05 // of the rate at the IP level to that of RTP, packets of 1200 bytes
	rise    = 1.08 // a second: all viewers of a server hear of free capacity at once
	changed = 0.02 // part by which a rate must differ to be told
	lower   = 0.9  // the bridge's own estimate decides below this part of the advice
	own     = -1   // "assume nothing": the bridge's own estimate
)

// rate is what one endpoint's bridge is told.
type rate struct {
	ceiling  float64
	advice   float64 // bit/s at the IP level; 0: none
	wish     float64 // what the viewer himself wants assumed; 0: nothing
	estimate float64 // the bridge's own; 0: not known
	told     float64 // 0: nothing yet
	at       time.Time
	yields   bool // the bridge's own estimate is the lower one
}

// without is what the viewer alone has the bridge assume.
func (r *rate) without() float64 {
	if r.wish != 0 {
		return r.wish
	}
	return own
}

// next is what to tell now; ok: something.
func (r *rate) next(now time.Time) (bps float64, ok bool) {
	bps = own
	if r.advice != 0 {
		want := min(r.advice/headers, r.ceiling)
		if r.wish != 0 {
			want = min(want, r.wish)
		}
		if r.estimate != 0 && (r.estimate < lower*want || r.yields && r.estimate < want) {
			r.yields = true
		} else {
			r.yields, bps = false, want
			if r.told > 0 && want > r.told {
				past := min(now.Sub(r.at).Seconds(), 1)
				bps = min(want, r.told*(1+(rise-1)*past))
			}
		}
	} else if r.wish != 0 {
		bps = r.wish
	}
	if d := bps/r.told - 1; r.told != 0 && bps*r.told > 0 && (bps < 0 || d < changed && d > -changed) {
		return 0, false
	}
	r.told, r.at = bps, now
	return bps, true
}

// message is what the bridge is told: the members that are not in it stay as they are.
func message(bps float64) string {
	return fmt.Sprintf(`{"colibriClass":"ReceiverVideoConstraints","assumedBandwidthBps":%d}`, int64(bps))
}

// fromViewer takes what the viewer wants assumed out of a message; has: there was something.
func fromViewer(text string) (rest string, wish float64, has bool) {
	if !strings.Contains(text, "assumedBandwidthBps") {
		return text, 0, false
	}
	var found map[string]json.RawMessage
	var class string
	var bps int64
	if json.Unmarshal([]byte(text), &found) != nil ||
		json.Unmarshal(found["colibriClass"], &class) != nil || class != "ReceiverVideoConstraints" ||
		json.Unmarshal(found["assumedBandwidthBps"], &bps) != nil {
		return text, 0, false // the bridge will say what is wrong with it
	}
	delete(found, "assumedBandwidthBps")
	out, err := json.Marshal(found)
	if err != nil {
		return text, 0, false
	}
	return string(out), float64(max(bps, 0)), true
}

// fromBridge reads the bridge's own estimate.
func fromBridge(text string) (estimate float64, has bool) {
	if !strings.Contains(text, "ConnectionStats") {
		return 0, false
	}
	var found struct {
		Class    string `json:"colibriClass"`
		Estimate *int64 `json:"estimatedDownlinkBandwidth"`
	}
	if json.Unmarshal([]byte(text), &found) != nil || found.Class != "ConnectionStats" ||
		found.Estimate == nil || *found.Estimate <= 0 {
		return 0, false
	}
	return float64(*found.Estimate), true
}
