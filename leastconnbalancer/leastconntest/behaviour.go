package leastconntest

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// behaviour is what a node does to RPCs. It may change while they run.
type behaviour struct {
	mu        sync.Mutex
	fail      codes.Code
	panics    bool
	delay     time.Duration
	gate      *gate      // not nil while unary RPCs are held
	streamEnd *streamEnd // of the streams that are held now
}

// gate holds unary RPCs until it is opened.
type gate struct{ opened chan struct{} }

// streamEnd ends the streams that were open when it was announced.
type streamEnd struct {
	announced chan struct{}
	err       error // set before announced is closed
}

func (b *behaviour) init(opts Options) {
	b.fail, b.panics, b.delay = opts.Fail, opts.Panic, opts.Delay
	b.streamEnd = &streamEnd{announced: make(chan struct{})}
}

// SetFail lets every RPC that starts from now on fail at once with code; codes.OK lets them succeed again.
func (b *behaviour) SetFail(code codes.Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = code
}

// SetDelay changes how long unary RPCs take that start from now on.
func (b *behaviour) SetDelay(delay time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delay = delay
}

// SetPanic lets the handlers of RPCs that start from now on panic: those of streams once they have sent their
// acknowledgement or header, those of unary RPCs instead of answering. The node survives; the RPC ends with
// codes.Internal.
func (b *behaviour) SetPanic(panics bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.panics = panics
}

// HoldUnary says whether unary RPCs that start from now on wait, for ReleaseUnary or the end of their context, before
// they are answered. Passing false also releases those that wait.
func (b *behaviour) HoldUnary(hold bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.openGateLocked()
	if hold {
		b.gate = &gate{opened: make(chan struct{})}
	}
}

// ReleaseUnary answers the unary RPCs that wait now. Whether later ones wait does not change.
func (b *behaviour) ReleaseUnary() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gate != nil {
		b.openGateLocked()
		b.gate = &gate{opened: make(chan struct{})}
	}
}

// openGateLocked releases held unary RPCs.
func (b *behaviour) openGateLocked() {
	if b.gate != nil {
		close(b.gate.opened)
		b.gate = nil
	}
}

// EndStreams ends the streams that are open now with codes.OK, and does not wait until they are gone.
func (b *behaviour) EndStreams() { b.endStreams(nil) }

// FailStreams ends the streams that are open now with code, and does not wait until they are gone.
func (b *behaviour) FailStreams(code codes.Code) {
	b.endStreams(status.Error(code, "leastconntest: stream failed on request"))
}

func (b *behaviour) endStreams(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streamEnd.err = err
	close(b.streamEnd.announced)
	b.streamEnd = &streamEnd{announced: make(chan struct{})}
}

// refusal is the error that an RPC starting now has to fail with, if any.
func (b *behaviour) refusal() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail == codes.OK {
		return nil
	}
	return status.Error(b.fail, "leastconntest: node fails on request")
}

// panicIfSet panics if handlers are to do so.
func (b *behaviour) panicIfSet() {
	b.mu.Lock()
	panics := b.panics
	b.mu.Unlock()
	if panics {
		panic("leastconntest: handler panics on request")
	}
}

// currentEnding is what will end a stream that starts now.
func (b *behaviour) currentStreamEnd() *streamEnd {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.streamEnd
}

// delayUnary lets a unary RPC take its time.
func (b *behaviour) delayUnary(ctx context.Context) error {
	b.mu.Lock()
	delay, held := b.delay, b.gate
	b.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	if held != nil {
		select {
		case <-held.opened:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	return nil
}

// SetServing sets what the node's health service answers for service "". A node starts as serving.
func (n *Node) SetServing(serving bool) {
	s := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if serving {
		s = grpc_health_v1.HealthCheckResponse_SERVING
	}
	n.health.SetServingStatus("", s)
}
