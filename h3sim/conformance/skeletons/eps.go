// Driver of a small EPS scheduler (RFC 9218): non-incremental responses of an urgency first.
// Replace what the methods of scheduler do by calls of yours.
package main

import (
	"cmp"
	"encoding/json"
	"os"
)

type signal struct {
	Urgency     int
	Incremental bool
}
type scheduler struct {
	signals map[int64]signal
	turns   map[int64]int64 // of streams that have something to send
	now     int64
}

func (s *scheduler) open(id int64, signal signal) { s.signals[id] = signal }
func (s *scheduler) update(id int64, signal signal) {
	if _, ready := s.turns[id]; ready && s.signals[id] != signal {
		s.turns[id] = s.now
	}
	s.signals[id] = signal
}
func (s *scheduler) activate(id int64) {
	if _, ready := s.turns[id]; !ready {
		s.turns[id] = s.now
	}
}
func (s *scheduler) deactivate(id int64)          { delete(s.turns, id) }
func (s *scheduler) close(id int64)               { delete(s.turns, id); delete(s.signals, id) }
func (s *scheduler) charge(id int64, bytes int64) { s.turns[id] = s.now }
func (s *scheduler) pick() (best *int64) {
	for id := range s.turns {
		if best == nil || s.before(id, *best) {
			best = &id
		}
	}
	return
}
func (s *scheduler) before(id, other int64) bool {
	a, b := s.signals[id], s.signals[other]
	if a.Urgency == b.Urgency && a.Incremental && b.Incremental {
		return s.turns[id] < s.turns[other]
	}
	if a.Urgency == b.Urgency && a.Incremental != b.Incremental {
		return b.Incremental
	}
	return cmp.Or(cmp.Compare(a.Urgency, b.Urgency), cmp.Compare(id, other)) < 0
}

func newScheduler() *scheduler {
	return &scheduler{signals: map[int64]signal{}, turns: map[int64]int64{}}
}

func main() {
	in, answer, s := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout), newScheduler()
	var r struct {
		Op, Protocol  string
		Stream, Bytes int64
		Signal        signal
	}
	for ; in.Decode(&r) == nil; s.now++ {
		switch r.Op {
		case "hello":
			answer.Encode(map[string]string{"protocol": r.Protocol, "name": "go-eps"})
		case "reset":
			s = newScheduler()
		case "open":
			s.open(r.Stream, r.Signal)
		case "update":
			s.update(r.Stream, r.Signal)
		case "activate":
			s.activate(r.Stream)
		case "deactivate":
			s.deactivate(r.Stream)
		case "close":
			s.close(r.Stream)
		case "charge":
			s.charge(r.Stream, r.Bytes)
		case "pick":
			answer.Encode(map[string]*int64{"stream": s.pick()})
		}
	}
}
