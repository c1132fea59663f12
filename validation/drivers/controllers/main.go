// Driver of quic-go's congestion controllers over h3sim-controller/1: `quic-go cubic|reno`.
//
// Events are passed on as sent_packet_handler.go does: it asks for the end of slow start before it
// reports an ACK's packets, and has no persistent congestion, so a timer changes nothing. It finds
// by the bytes in flight whether the window was full, which h3sim says. Pacing is left to h3sim.
package main

import (
	"encoding/json"
	"os"
	"time"

	"github.com/quic-go/quic-go/internal/congestion"
	"github.com/quic-go/quic-go/internal/monotime"
	"github.com/quic-go/quic-go/internal/protocol"
	"github.com/quic-go/quic-go/internal/utils"
)

type event struct {
	Op                                                  string
	Max_datagram_bytes, Initial_window_bytes, In_flight protocol.ByteCount
	Bytes                                               protocol.ByteCount
	Number                                              protocol.PacketNumber
	Numbers                                             []protocol.PacketNumber
	At_ns, Sent_at_ns, Latest_rtt_ns                    int64
	Unused                                              bool
}

type clock struct{ ns int64 }

func (c *clock) Now() monotime.Time { return monotime.Time(c.ns + int64(time.Second)) }

type sent struct {
	at_ns int64
	bytes protocol.ByteCount
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	now := &clock{}
	var rtt *utils.RTTStats
	var real congestion.SendAlgorithmWithDebugInfos
	packets, lost := map[protocol.PacketNumber]sent{}, []protocol.PacketNumber{}
	for {
		var e event
		if in.Decode(&e) != nil {
			return
		}
		if e.At_ns > 0 {
			now.ns = e.At_ns
		}
		switch e.Op {
		case "hello":
			out.Encode(map[string]string{"protocol": "h3sim-controller/1"})
		case "new":
			rtt = utils.NewRTTStats()
			isReno := len(os.Args) > 1 && os.Args[1] == "reno"
			real = congestion.H3sim(now, rtt, isReno, e.Max_datagram_bytes, e.Initial_window_bytes)
		case "sent":
			packets[e.Number] = sent{e.At_ns, e.Bytes}
			real.OnPacketSent(now.Now(), e.In_flight, e.Number, e.Bytes, true)
		case "acked":
			rtt.UpdateRTT(time.Duration(e.Latest_rtt_ns), 0)
			real.MaybeExitSlowStart()
			inFlight := protocol.ByteCount(0)
			if !e.Unused {
				inFlight = max(e.In_flight, real.GetCongestionWindow())
			}
			for _, number := range e.Numbers {
				real.OnPacketAcked(number, packets[number].bytes, inFlight, now.Now())
				delete(packets, number)
			}
		case "lost":
			for _, number := range e.Numbers {
				real.OnCongestionEvent(number, packets[number].bytes, e.In_flight)
				lost = append(lost, number)
				delete(packets, number)
			}
		case "marked":
			newest := protocol.PacketNumber(0)
			for number, packet := range packets {
				if packet.at_ns <= e.Sent_at_ns {
					newest = max(newest, number)
				}
			}
			real.OnCongestionEvent(newest, 0, 0)
		case "spurious":
			for _, number := range lost {
				real.OnSpuriousLoss(number)
			}
			lost = nil
		case "state":
			window := real.GetCongestionWindow()
			out.Encode(map[string]any{"window": window, "ssthresh": nil, "rate_bps": nil})
		}
	}
}
