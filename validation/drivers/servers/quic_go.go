//go:build h3sim

// Added to a copy of github.com/quic-go/quic-go: its framer, with streams that have as much data as
// a packet takes.
package quic

import (
	"github.com/quic-go/quic-go/internal/ackhandler"
	"github.com/quic-go/quic-go/internal/protocol"
	"github.com/quic-go/quic-go/internal/wire"
)

const h3simPacket = 1200

var h3simData = make([]byte, h3simPacket)

type h3simStream struct {
	id            protocol.StreamID
	value         uint64
	ready, isLast bool
}

func (s *h3simStream) priority() (int8, bool, uint32) { return decodeStreamPriority(s.value) }

func (s *h3simStream) popStreamFrame(
	maxLen protocol.ByteCount, v protocol.Version,
) (ackhandler.StreamFrame, *wire.StreamDataBlockedFrame, bool) {
	if !s.ready {
		return ackhandler.StreamFrame{}, nil, false
	}
	frame := &wire.StreamFrame{StreamID: s.id, DataLenPresent: true, Offset: 1}
	frame.Data = h3simData[:min(maxLen-frame.Length(v)-8, h3simPacket)]
	return ackhandler.StreamFrame{Frame: frame}, nil, !s.isLast
}

func (s *h3simStream) popRetransmissionFrame(
	protocol.ByteCount, protocol.Version,
) (ackhandler.StreamFrame, bool) {
	return ackhandler.StreamFrame{}, false
}

// H3simFramer sends a frame a packet.
type H3simFramer struct {
	framer  *framer
	streams map[protocol.StreamID]*h3simStream
}

// NewH3simFramer returns a framer without streams.
func NewH3simFramer() *H3simFramer {
	return &H3simFramer{newFramer(&connectionFlowController{}), map[protocol.StreamID]*h3simStream{}}
}

// Open opens a stream.
func (f *H3simFramer) Open(id int64, urgency int, incremental bool) {
	value := encodeStreamPriority(int8(urgency), incremental, 0)
	f.streams[protocol.StreamID(id)] = &h3simStream{id: protocol.StreamID(id), value: value}
}

// Update does what SendStream.SetPriority does.
func (f *H3simFramer) Update(id int64, urgency int, incremental bool) {
	s := f.streams[protocol.StreamID(id)]
	oldUrgency, oldIncremental, generation := s.priority()
	if int(oldUrgency) == urgency && oldIncremental == incremental {
		return
	}
	s.value = encodeStreamPriority(int8(urgency), incremental, generation+1)
	f.framer.UpdateStreamPriority(s.id)
}

// SetReady says whether a stream has data.
func (f *H3simFramer) SetReady(id int64, ready bool) {
	s := f.streams[protocol.StreamID(id)]
	s.ready = ready
	if ready {
		f.framer.AddActiveStream(s.id, s)
	}
}

// Close completes a stream.
func (f *H3simFramer) Close(id int64) {
	f.framer.RemoveActiveStream(protocol.StreamID(id))
	delete(f.streams, protocol.StreamID(id))
}

// Next sends a packet, and returns whose frame is in it; isLast if that stream has no more data.
func (f *H3simFramer) Next(isLast bool) int64 {
	for _, s := range f.streams {
		s.isLast = isLast
	}
	_, frames, _ := f.framer.AppendStreamFrames(nil, nil, h3simPacket, protocol.Version1)
	if len(frames) != 1 {
		return -1
	}
	return int64(frames[0].Frame.StreamID)
}
