package leastconnbalancer

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// MoveStreams returns an interceptor for programs that open a stream again when
// it fails with UNAVAILABLE: it ends a stream in that way when it should move
// (see [Run]). The next stream of the method on the same channel takes the place
// that was reserved for it.
//
// Methods are full names, such as "/chat.v1.Chat/Talk"; streams of other methods
// are left alone. With none, or with a name of another form, all streams of the
// channel fail with INTERNAL, and say why.
//
// A bidirectional stream is half-closed: SendMsg returns io.EOF from then on,
// messages that the server still sends are received, and what was its end is
// UNAVAILABLE. So its server must not take a half-close for more than the end of
// this stream. One that has not ended 5 s later is cancelled. Streams of other
// kinds, and those that the program has half-closed itself, are cancelled at once.
// What a cancelled stream had under way is lost, as when a server breaks.
//
// In a chain of interceptors it goes behind those that retry, since it has to
// see each stream that they open. One interceptor may serve many channels.
func MoveStreams(methods ...string) grpc.StreamClientInterceptor {
	m := &streamMover{leaving: map[channelMethod][]leavingSession{}, methods: methods}
	if len(methods) == 0 {
		m.misuse = status.Error(codes.Internal, `least_conn: MoveStreams: no method, want full names such as "/pkg.Service/Method"`)
	}
	for _, name := range methods {
		if !isFullMethod(name) {
			m.misuse = status.Errorf(codes.Internal, `least_conn: MoveStreams: method %q, want a full name such as "/pkg.Service/Method"`, name)
		}
	}
	return m.intercept
}

func isFullMethod(name string) bool {
	parts := strings.Split(name, "/")
	return len(parts) == 3 && parts[0] == "" && parts[1] != "" && parts[2] != ""
}

// streamMover hands the sessions of streams that it has ended to the streams that
// open next.
type streamMover struct {
	methods []string
	misuse  error

	mu      sync.Mutex
	leaving map[channelMethod][]leavingSession // the oldest first
}

// channelMethod is what may open a session's next stream. It keeps no channel.
type channelMethod struct {
	channel weak.Pointer[grpc.ClientConn]
	method  string
}

// leavingSession has no stream at the moment.
type leavingSession struct {
	*Session
	since time.Time
}

// leavingTime is how long a session may be without a stream: as long as its place
// is reserved.
const leavingTime = 10 * time.Second

func (m *streamMover) intercept(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if m.misuse != nil {
		return nil, m.misuse
	}
	if !slices.Contains(m.methods, method) {
		return streamer(ctx, desc, cc, method, opts...)
	}
	from := channelMethod{weak.Make(cc), method}
	session := m.take(from)
	rpc, cancel := context.WithCancel(ctx)
	rpc, moved := session.Next(rpc)
	// The last end of an RPC that nobody reads any more is that its channel closes.
	opts = append(slices.Clip(opts), grpc.OnFinish(func(error) { cancel() }))
	stream, err := streamer(rpc, desc, cc, method, opts...)
	if err != nil {
		cancel()
		if !session.since.IsZero() { // the next attempt may have its place
			m.put(from, session)
		}
		return nil, err
	}
	s := newMovableStream(stream, desc, ctx, cancel)
	s.left = func() { m.put(from, leavingSession{session.Session, time.Now()}) }
	go s.watch(rpc, moved)
	return s, nil
}

// take returns the session that waits longest, or a new one.
func (m *streamMover) take(from channelMethod) leavingSession {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked()
	waiting := m.leaving[from]
	switch len(waiting) {
	case 0:
		return leavingSession{Session: &Session{}}
	case 1:
		delete(m.leaving, from)
	default:
		m.leaving[from] = waiting[1:]
	}
	return waiting[0]
}

// put lets a session wait for its next stream.
func (m *streamMover) put(from channelMethod, session leavingSession) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked()
	m.leaving[from] = append(m.leaving[from], session)
}

// expireLocked forgets sessions whose programs have not opened streams again.
func (m *streamMover) expireLocked() {
	for from, waiting := range m.leaving {
		waiting = slices.DeleteFunc(waiting, func(s leavingSession) bool { return time.Since(s.since) > leavingTime })
		if m.leaving[from] = waiting; len(waiting) == 0 {
			delete(m.leaving, from)
		}
	}
}
