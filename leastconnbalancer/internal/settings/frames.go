package settings

import "encoding/binary"

// The parts of HTTP/2's framing that matter here (RFC 9113, sections 4.1 and 6.5).
const (
	headerLen            = 9
	parameterLen         = 6
	typeSettings         = 0x4
	flagAck              = 0x1
	maxConcurrentStreams = 0x3
)

// frames reads along in what a server sends. It looks at each frame's header and
// at the payload of SETTINGS frames. What cannot be HTTP/2 switches it off for
// good: gRPC ends such a connection, and if it does not, nothing can be said
// about it.
type frames struct {
	transport Transport       // nil: off
	started   bool            // the first SETTINGS frame was complete
	settings  bool            // the payload is that of a SETTINGS frame
	n         uint8           // length of part
	part      [headerLen]byte // of a header or parameter, the rest of which has not been read
	payload   uint32          // bytes of the frame's payload that have not been read
	limit     uint32          // that the transport knows, once started
	next      uint32          // that the SETTINGS frame being read says
}

// read takes the next bytes, cut anywhere.
func (f *frames) read(b []byte) {
	for len(b) > 0 && f.transport != nil {
		switch {
		case f.payload == 0:
			b = f.readHeader(b)
		case f.settings:
			b = f.readParameter(b)
		default:
			n := min(uint64(f.payload), uint64(len(b)))
			f.payload -= uint32(n)
			b = b[n:]
		}
	}
}

// readHeader returns what follows the header, or the part of it, in b.
func (f *frames) readHeader(b []byte) []byte {
	h, b := f.collect(b, headerLen)
	if h == nil {
		return nil
	}
	length := uint32(h[0])<<16 | uint32(h[1])<<8 | uint32(h[2])
	if h[3] == typeSettings {
		f.startSettings(length, h[4]&flagAck != 0, binary.BigEndian.Uint32(h[5:])&^(1<<31))
		return b
	}
	if !f.started {
		f.transport = nil // not HTTP/2: a server begins with SETTINGS
	}
	f.settings, f.payload = false, length
	return b
}

// startSettings begins a SETTINGS frame.
func (f *frames) startSettings(length uint32, ack bool, stream uint32) {
	switch {
	case stream != 0, length%parameterLen != 0, ack && (length > 0 || !f.started):
		f.transport = nil
	case !ack:
		f.settings, f.payload, f.next = true, length, NoLimit
		if f.started {
			f.next = f.limit
		}
		if length == 0 {
			f.endSettings()
		}
	}
}

// readParameter returns what follows the parameter, or the part of it, in b.
func (f *frames) readParameter(b []byte) []byte {
	p, b := f.collect(b, parameterLen)
	if p == nil {
		return nil
	}
	if binary.BigEndian.Uint16(p) == maxConcurrentStreams {
		f.next = binary.BigEndian.Uint32(p[2:]) // the last one counts
	}
	if f.payload -= parameterLen; f.payload == 0 {
		f.endSettings()
	}
	return b
}

// endSettings tells the transport what a complete SETTINGS frame has changed.
func (f *frames) endSettings() {
	if f.started && f.next == f.limit {
		return
	}
	f.started, f.limit = true, f.next
	f.transport.SetLimit(f.limit)
}

// collect returns size bytes that belong together, and what follows them in b. It
// returns nil if the last of them has not been read.
func (f *frames) collect(b []byte, size uint8) (whole, rest []byte) {
	if f.n == 0 && len(b) >= int(size) {
		return b[:size], b[size:]
	}
	n := copy(f.part[f.n:size], b)
	if f.n += uint8(n); f.n < size {
		return nil, nil
	}
	f.n = 0
	return f.part[:size], b[n:]
}
