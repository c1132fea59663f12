//go:build h3sim

// Added to a copy of golang.org/x/net/http2: its write schedulers, whose streams always have data
// and are blocked by flow control.
package http2

// H3simScheduler sends frames of one byte from streams that are ready.
type H3simScheduler struct {
	ws      WriteScheduler
	sc      *serverConn
	streams map[uint32]*stream
}

const h3simBytes = 1 << 20

var h3simData = make([]byte, h3simBytes)

// H3simID returns the stream of HTTP/2 that stands for one of h3sim, or for a placeholder.
func H3simID(id int64) uint32 {
	if id < 0 {
		return uint32(-2*id) + 1<<24 + 1
	}
	return uint32(id) + 1
}

// H3simPriority returns parameters of RFC 9218.
func H3simPriority(urgency int, incremental bool) PriorityParam {
	p := PriorityParam{urgency: uint8(urgency)}
	if incremental {
		p.incremental = 1
	}
	return p
}

func newH3sim(ws WriteScheduler) *H3simScheduler {
	return &H3simScheduler{ws, &serverConn{maxFrameSize: 1}, map[uint32]*stream{}}
}

// H3simRFC9218, H3simRFC7540 and H3simRoundRobin return the schedulers of that name.
func H3simRFC9218() *H3simScheduler { return newH3sim(newPriorityWriteSchedulerRFC9218()) }
func H3simRFC7540() *H3simScheduler {
	return newH3sim(NewPriorityWriteScheduler(nil))
}
func H3simRoundRobin() *H3simScheduler { return newH3sim(newRoundRobinWriteScheduler()) }

// Open opens a stream.
func (s *H3simScheduler) Open(id int64, p PriorityParam) {
	st := &stream{id: H3simID(id), sc: s.sc}
	st.flow.conn = &connOutflow{n: maxFlowWindow}
	s.streams[st.id] = st
	s.ws.OpenStream(st.id, OpenStreamOptions{priority: p})
	if p.urgency == 0 && p.incremental == 0 && (p.Weight != 0 || p.StreamDep != 0 || p.Exclusive) {
		s.ws.AdjustStream(st.id, p) // as processHeaders does for RFC 7540
	}
	s.push(st)
}

func (s *H3simScheduler) push(st *stream) {
	s.ws.Push(FrameWriteRequest{stream: st, write: &writeData{streamID: st.id, p: h3simData}})
}

// Update adjusts a stream.
func (s *H3simScheduler) Update(id int64, p PriorityParam) { s.ws.AdjustStream(H3simID(id), p) }

// SetReady opens or shuts the window of a stream.
func (s *H3simScheduler) SetReady(id int64, ready bool) {
	st := s.streams[H3simID(id)]
	st.flow.delta = 0
	if ready {
		st.flow.delta = h3simBytes
	}
}

// Close closes a stream.
func (s *H3simScheduler) Close(id int64) {
	s.ws.CloseStream(H3simID(id))
	delete(s.streams, H3simID(id))
}

// Next sends a frame, and returns whose.
func (s *H3simScheduler) Next(bool) int64 {
	wr, ok := s.ws.Pop()
	if !ok {
		return -1
	}
	st := wr.stream
	st.flow.delta = h3simBytes
	if len(wr.write.(*writeData).p) == h3simBytes-1 {
		s.push(st)
	}
	return int64(st.id) - 1
}

// H3simNewRFC9218 is for http2.Server.NewWriteScheduler.
func H3simNewRFC9218() WriteScheduler { return newPriorityWriteSchedulerRFC9218() }
