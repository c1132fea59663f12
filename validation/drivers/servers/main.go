// Drivers of schedulers of deployed Go servers: `servers MODEL`, over h3sim-conformance/1; and a server
// on this machine: `servers serve [copy]`, `servers serve3 CERTIFICATE KEY`.
//
// Real schedulers choose and charge in one step. So a history is kept, and a pick goes a turn ahead
// of it; if what follows is not the charge of that turn, the history is run again in a new scheduler.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/http2"
)

type signal struct {
	Urgency, Weight        int
	Incremental, Exclusive bool
	Depends_on             *int64
}

type request struct {
	Op, Protocol string
	Stream       int64
	Signal       signal
}

// scheduler is real code. Streams have ids from 0 on; Next returns -1 if it sends nothing.
type scheduler interface {
	Open(id int64, s signal)
	Update(id int64, s signal)
	SetReady(id int64, ready bool)
	Close(id int64)
	Next(isLast bool) int64
}

type xnet struct {
	*http2.H3simScheduler
	rfc7540 bool
}

func (x xnet) param(s signal) http2.PriorityParam {
	if x.rfc7540 {
		p := http2.PriorityParam{Weight: uint8(max(s.Weight, 1) - 1), Exclusive: s.Exclusive}
		if s.Depends_on != nil {
			p.StreamDep = http2.H3simID(*s.Depends_on)
		}
		return p
	}
	return http2.H3simPriority(s.Urgency, s.Incremental)
}
func (x xnet) Open(id int64, s signal)   { x.H3simScheduler.Open(id, x.param(s)) }
func (x xnet) Update(id int64, s signal) { x.H3simScheduler.Update(id, x.param(s)) }

type framer struct{ *quic.H3simFramer }

func (f framer) Open(id int64, s signal)   { f.H3simFramer.Open(id, s.Urgency, s.Incremental) }
func (f framer) Update(id int64, s signal) { f.H3simFramer.Update(id, s.Urgency, s.Incremental) }

var models = map[string]func() scheduler{
	"x-net-rfc9218": func() scheduler { return xnet{http2.H3simRFC9218(), false} },
	"x-net-rfc7540": func() scheduler { return xnet{http2.H3simRFC7540(), true} },
	"x-net-ring":    func() scheduler { return xnet{http2.H3simRoundRobin(), false} },
	"quic-go":       func() scheduler { return framer{quic.NewH3simFramer()} },
}

type driver struct {
	make    func() scheduler
	real    scheduler
	history []request
	active  map[int64]bool
	ahead   bool  // real has taken the turn that was picked
	picked  int64 // by that turn
}

func (d *driver) reset() {
	d.real, d.history, d.active, d.ahead = d.make(), nil, map[int64]bool{}, false
}

func (d *driver) apply(number int) {
	switch r := d.history[number]; r.Op {
	case "open":
		d.real.Open(r.Stream, r.Signal)
	case "update":
		d.real.Update(r.Stream, r.Signal)
	case "activate", "deactivate":
		d.real.SetReady(r.Stream, r.Op == "activate")
	case "close":
		d.real.Close(r.Stream)
	case "charge":
		d.real.Next(d.endedWith(number))
	}
}

// endedWith says whether a stream had no more data once that turn was sent.
func (d *driver) endedWith(number int) bool {
	if number+1 >= len(d.history) {
		return false
	}
	next := d.history[number+1]
	return next.Stream == d.history[number].Stream && (next.Op == "deactivate" || next.Op == "close")
}

func (d *driver) rebuild() {
	d.real, d.ahead = d.make(), false
	for number := range d.history {
		d.apply(number)
	}
}

func (d *driver) pick() int64 {
	if len(d.active) == 0 {
		return -1 // as a server that has nothing to send is not asked
	}
	if !d.ahead {
		if d.real == nil {
			d.rebuild()
		}
		d.picked, d.ahead = d.real.Next(false), true
	}
	return d.picked
}

func (d *driver) charge(r request) {
	if d.pick() != r.Stream {
		return // a retransmission, which is not the scheduler's
	}
	d.history, d.ahead = append(d.history, r), false
}

func (d *driver) note(r request) {
	d.history = append(d.history, r)
	switch r.Op {
	case "activate":
		d.active[r.Stream] = true
	case "deactivate", "close":
		delete(d.active, r.Stream)
	}
	number := len(d.history) - 1
	isEnd := number > 0 && d.history[number-1].Op == "charge" && d.endedWith(number-1)
	if d.ahead || isEnd || d.real == nil {
		d.real, d.ahead = nil, false // run anew with the next pick
		return
	}
	d.apply(number)
}

func main() {
	name := "quic-go"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	if name == "serve" {
		fmt.Fprintln(os.Stderr, serve(len(os.Args) > 2 && os.Args[2] == "copy"))
		os.Exit(1)
	}
	if name == "serve3" && len(os.Args) == 4 {
		fmt.Fprintln(os.Stderr, serve3(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	make, ok := models[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such scheduler:", name)
		os.Exit(2)
	}
	d := &driver{make: make}
	d.reset()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		r := request{Signal: signal{Urgency: 3, Weight: 16}}
		if in.Decode(&r) != nil {
			return
		}
		switch r.Op {
		case "hello":
			out.Encode(map[string]string{"protocol": r.Protocol, "name": name})
		case "reset":
			d.reset()
		case "pick":
			if id := d.pick(); id < 0 {
				fmt.Println(`{"stream":null}`)
			} else {
				fmt.Printf("{\"stream\":%d}\n", id)
			}
		case "charge":
			d.charge(r)
		default:
			d.note(r)
		}
	}
}
