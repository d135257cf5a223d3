package settings

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// limits is a Transport that keeps what it hears.
type limits []uint32

func (l *limits) SetLimit(streams uint32) { *l = append(*l, streams) }

// frame returns an HTTP/2 frame.
func frame(typ, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	b := []byte{byte(n >> 16), byte(n >> 8), byte(n), typ, flags}
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// settingsFrame returns a SETTINGS frame of pairs of a parameter and its value.
func settingsFrame(pairs ...uint32) []byte {
	var payload []byte
	for i := 0; i < len(pairs); i += 2 {
		payload = binary.BigEndian.AppendUint16(payload, uint16(pairs[i]))
		payload = binary.BigEndian.AppendUint32(payload, pairs[i+1])
	}
	return frame(typeSettings, 0, 0, payload)
}

func data(n int) []byte { return frame(0, 0, 1, make([]byte, n)) }

func ack() []byte { return frame(typeSettings, flagAck, 0, nil) }

func join(frames ...[]byte) []byte { return bytes.Join(frames, nil) }

const max = maxConcurrentStreams

var streams = map[string]struct {
	bytes  []byte
	limits []uint32
}{
	"nothing":         {nil, nil},
	"no parameter":    {settingsFrame(), []uint32{NoLimit}},
	"others only":     {settingsFrame(4, 1<<16, 5, 1<<14), []uint32{NoLimit}},
	"a limit":         {settingsFrame(max, 100), []uint32{100}},
	"among others":    {settingsFrame(4, 1<<16, max, 100, 5, 1<<14), []uint32{100}},
	"the last counts": {settingsFrame(max, 1, max, 2), []uint32{2}},
	"no limit, said":  {settingsFrame(max, NoLimit), []uint32{NoLimit}},
	"none at all":     {settingsFrame(max, 0), []uint32{0}},
	"more than 2^31":  {settingsFrame(max, 1<<31), []uint32{1 << 31}},
	"changes": {
		join(settingsFrame(), ack(), data(5), settingsFrame(max, 10), data(0), settingsFrame(max, 0), settingsFrame(max, 10)),
		[]uint32{NoLimit, 10, 0, 10},
	},
	"the same again":     {join(settingsFrame(max, 7), settingsFrame(), settingsFrame(max, 7), settingsFrame(5, 1<<14)), []uint32{7}},
	"the reserved bit":   {join(settingsFrame(), frame(typeSettings, 0, 1<<31, settingsFrame(max, 3)[headerLen:])), []uint32{NoLimit, 3}},
	"other flags":        {frame(typeSettings, 0xfe, 0, settingsFrame(max, 3)[headerLen:]), []uint32{3}},
	"unknown frames":     {join(settingsFrame(), frame(0xfa, 0xff, 9, make([]byte, 60)), settingsFrame(max, 2)), []uint32{NoLimit, 2}},
	"like settings":      {join(settingsFrame(), frame(0, 0, 1, settingsFrame(max, 2)), settingsFrame(max, 4)), []uint32{NoLimit, 4}},
	"incomplete header":  {settingsFrame(max, 1)[:8], nil},
	"incomplete payload": {settingsFrame(max, 1, 5, 1<<14)[:headerLen+parameterLen], nil},

	"HTTP/1.1":              {append([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), settingsFrame(max, 1)...), nil},
	"data first":            {join(data(0), settingsFrame(max, 1)), nil},
	"acknowledgement first": {join(ack(), settingsFrame(max, 1)), nil},
	"of a stream":           {join(settingsFrame(max, 1), frame(typeSettings, 0, 1, nil), settingsFrame(max, 2)), []uint32{1}},
	"bad length":            {join(settingsFrame(max, 1), frame(typeSettings, 0, 0, make([]byte, 7)), settingsFrame(max, 2)), []uint32{1}},
	"long acknowledgement":  {join(settingsFrame(max, 1), frame(typeSettings, flagAck, 0, append(settingsFrame(max, 2), 0, 0, 0)), settingsFrame(max, 3)), []uint32{1}},
}

// Whatever the cuts, the same is heard.
func TestFramesCutAtEveryPlace(t *testing.T) {
	for name, s := range streams {
		t.Run(name, func(t *testing.T) {
			for i := range len(s.bytes) + 1 {
				for j := i; j <= len(s.bytes); j++ {
					var heard limits
					f := frames{transport: &heard}
					f.read(s.bytes[:i])
					f.read(s.bytes[i:j])
					f.read(s.bytes[j:])
					require.Equal(t, s.limits, []uint32(heard), "cut at %d and %d", i, j)
				}
			}
		})
	}
}

// A limit is told once its frame is complete, and not before.
func TestLimitIsToldWithTheLastByte(t *testing.T) {
	var heard limits
	f := frames{transport: &heard}
	b := settingsFrame(max, 100, 5, 1<<14)
	for i := range b {
		require.Empty(t, heard)
		f.read(b[i : i+1])
	}
	require.Equal(t, limits{100}, heard)
}

// The largest frame there is.
func TestLargestFrame(t *testing.T) {
	var heard limits
	f := frames{transport: &heard}
	f.read(join(settingsFrame(max, 1), data(1<<24-1), settingsFrame(max, 2)))
	require.Equal(t, limits{1, 2}, heard)
}

func TestReadingAlongAllocatesNothing(t *testing.T) {
	heard := make(limits, 0, 1<<16)
	f := frames{transport: &heard}
	f.read(settingsFrame())
	b := join(data(100), settingsFrame(max, 1), settingsFrame(max, 2), data(3))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		f.read(b[:7])
		f.read(b[7:])
	}))
}

// cutConn is a connection whose reads return a script, cut as it says, and then
// the end, with the last bytes or after them.
type cutConn struct {
	net.Conn
	rest, cuts []byte
	together   bool
}

func (c *cutConn) Read(b []byte) (int, error) {
	n := len(c.rest)
	if len(c.cuts) > 0 {
		n, c.cuts = min(n, int(c.cuts[0])), c.cuts[1:]
	}
	n = copy(b, c.rest[:min(n, len(b))])
	c.rest = c.rest[n:]
	if len(c.rest) == 0 && (n == 0 || c.together) {
		return n, io.EOF
	}
	return n, nil
}

// naive says what is to be heard of a whole stream.
func naive(stream []byte) []uint32 {
	var heard []uint32
	limit := NoLimit
	for first := true; len(stream) >= 9; first = false {
		length := int(binary.BigEndian.Uint32(append([]byte{0}, stream[:3]...)))
		typ, ack, id := stream[3], stream[4]&1 == 1, binary.BigEndian.Uint32(stream[5:9])<<1
		isSettings := typ == 4
		if first && (!isSettings || ack) {
			return heard
		}
		if isSettings && (id != 0 || length%6 != 0 || ack && length != 0) {
			return heard
		}
		if len(stream) < 9+length {
			return heard
		}
		payload := stream[9 : 9+length]
		stream = stream[9+length:]
		if !isSettings || ack {
			continue
		}
		was := limit
		for ; len(payload) > 0; payload = payload[6:] {
			if payload[0] == 0 && payload[1] == 3 {
				limit = binary.BigEndian.Uint32(payload[2:6])
			}
		}
		if first || limit != was {
			heard = append(heard, limit)
		}
	}
	return heard
}

func FuzzSettings(f *testing.F) {
	for _, s := range streams {
		f.Add(s.bytes, []byte{1, 2, 3, 5, 8, 0, 13}, uint16(4), true)
		f.Add(s.bytes, bytes.Repeat([]byte{1}, len(s.bytes)), uint16(9), false)
	}
	f.Add([]byte("\x00\x00\x06\x04garbage\xff\xfe\x00\x04\x03"), []byte{200}, uint16(1), true)
	f.Fuzz(func(t *testing.T, stream, cuts []byte, size uint16, together bool) {
		var heard limits
		c := newConn(&cutConn{rest: stream, cuts: cuts, together: together}, &heard)
		var read []byte
		for buf := make([]byte, int(size)+1); ; {
			n, err := c.Read(buf)
			read = append(read, buf[:n]...)
			if err != nil {
				break
			}
		}
		require.True(t, bytes.Equal(stream, read))
		require.Equal(t, naive(stream), []uint32(heard))

		if len(stream) > 256 {
			return
		}
		for i := range stream { // each place
			heard = nil
			f := frames{transport: &heard}
			f.read(stream[:i])
			f.read(stream[i:])
			require.Equal(t, naive(stream), []uint32(heard), "cut at %d", i)
		}
	})
}
