// Driver of a small EPS scheduler (RFC 9218): non-incremental responses of an urgency first.
package main

import (
	"encoding/json"
	"os"
	"slices"
)

type stream struct {
	Urgency     int64
	Incremental bool
	place       int64 // its turn among incremental streams
	active      bool
}

func (s *stream) key(id int64) []int64 {
	if s.Incremental {
		return []int64{s.Urgency, 1, s.place}
	}
	return []int64{s.Urgency, 0, id}
}
func main() {
	in, answer, streams := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout), map[int64]*stream{}
	var r struct {
		Op, Protocol string
		Stream       int64
		Signal       stream
	}
	for now := int64(1); in.Decode(&r) == nil; now++ {
		switch s := streams[r.Stream]; r.Op {
		case "hello":
			answer.Encode(map[string]string{"protocol": r.Protocol, "name": "go-eps"})
		case "reset":
			clear(streams)
		case "open":
			streams[r.Stream] = &stream{Urgency: r.Signal.Urgency, Incremental: r.Signal.Incremental}
		case "update":
			if u, i := r.Signal.Urgency, r.Signal.Incremental; s.Urgency != u || s.Incremental != i {
				s.Urgency, s.Incremental, s.place = u, i, now
			}
		case "activate", "deactivate":
			if on := r.Op == "activate"; s.active != on {
				s.active, s.place = on, now
			}
		case "close":
			delete(streams, r.Stream)
		case "charge":
			s.place = now
		case "pick":
			var best *int64
			for id, t := range streams {
				if t.active && (best == nil || slices.Compare(t.key(id), streams[*best].key(*best)) < 0) {
					best = &id
				}
			}
			answer.Encode(map[string]*int64{"stream": best})
		}
	}
}
