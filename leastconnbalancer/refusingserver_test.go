package leastconnbalancer_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
)

// The frames of HTTP/2 that a refusing server needs, and their flags and codes.
const (
	frameData      = 0
	frameHeaders   = 1
	frameRSTStream = 3
	frameSettings  = 4
	framePing      = 6
	frameGoAway    = 7

	flagAck           = 1
	flagEndStream     = 1
	codeNoError       = 0
	codeRefusedStream = 7
)

// refusingServer is one that says of each stream that it was not processed.
type refusingServer struct {
	listener net.Listener
	refuse   func(stream uint32) []byte // the frame that says so
	late     bool                       // only once the request is there
	conns    atomic.Int64
	streams  atomic.Int64
}

// refusingServer starts one for as long as the test runs.
func (e *env) refusingServer(refuse func(stream uint32) []byte, late bool) *refusingServer {
	e.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(e, err)
	e.Cleanup(func() { listener.Close() })
	r := &refusingServer{listener: listener, refuse: refuse, late: late}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.conns.Add(1)
			go r.serve(conn)
		}
	}()
	return r
}

func (r *refusingServer) endpoint() resolver.Endpoint {
	return resolver.Endpoint{Addresses: []resolver.Address{{Addr: r.listener.Addr().String()}}}
}

// serve ends with the connection.
func (r *refusingServer) serve(conn net.Conn) {
	defer conn.Close()
	if _, err := io.CopyN(io.Discard, conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	send := frame(frameSettings, 0, 0, nil)
	for {
		if _, err := conn.Write(send); err != nil {
			return
		}
		kind, flags, stream, payload, err := readFrame(conn)
		if err != nil {
			return
		}
		send = nil
		switch {
		case kind == frameHeaders && !r.late, kind == frameData && flags&flagEndStream != 0 && r.late:
			r.streams.Add(1)
			send = r.refuse(stream)
		case kind == frameSettings && flags&flagAck == 0:
			send = frame(frameSettings, flagAck, 0, nil)
		case kind == framePing && flags&flagAck == 0:
			send = frame(framePing, flagAck, 0, payload)
		}
	}
}

// refusedStream resets the stream alone.
func refusedStream(stream uint32) []byte {
	return frame(frameRSTStream, 0, stream, binary.BigEndian.AppendUint32(nil, codeRefusedStream))
}

// goAway ends the connection, with no stream processed.
func goAway(uint32) []byte {
	lastStream := uint32(0)
	payload := binary.BigEndian.AppendUint32(nil, lastStream)
	return frame(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(payload, codeNoError))
}

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	f := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return append(binary.BigEndian.AppendUint32(f, stream), payload...)
}

func readFrame(r io.Reader) (kind, flags byte, stream uint32, payload []byte, err error) {
	var h [9]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, 0, 0, nil, err
	}
	payload = make([]byte, int(h[0])<<16|int(h[1])<<8|int(h[2]))
	_, err = io.ReadFull(r, payload)
	return h[3], h[4], binary.BigEndian.Uint32(h[5:]), payload, err
}
