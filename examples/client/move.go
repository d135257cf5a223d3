package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// hold opens a stream and holds it until it ends. With move it goes on with another one when it should be on another
// server. It tells changed whenever it has a stream on another server; "" is none. A client of your own calls a method of
// its service instead of leastconntest.Open.
func hold(ctx context.Context, conn *grpc.ClientConn, move bool, changed func(from, to string)) error {
	at := ""
	session := func(ctx context.Context, moved <-chan struct{}) error {
		stream, err := leastconntest.Open(ctx, conn)
		if err != nil {
			return err
		}
		changed(at, stream.Node())
		at = stream.Node()
		go func() {
			select {
			case <-moved:
				_ = stream.CloseSend() // what comes of it is received below
			case <-ctx.Done():
			}
		}()
		_ = stream.Wait() // why it has ended is not shown
		return nil
	}
	var err error
	if move {
		err = leastconnbalancer.Run(ctx, session)
	} else {
		err = once(ctx, session)
	}
	if at != "" && ctx.Err() == nil {
		changed(at, "")
	}
	return err
}

// once is leastconnbalancer.Run for a stream that stays where it is.
func once(ctx context.Context, session func(ctx context.Context, moved <-chan struct{}) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return session(ctx, nil)
}

// moveAtOnce lets streams move that have just begun, which is not what you want outside of a demonstration.
const moveAtOnce = `{"loadBalancingConfig": [{"least_conn": {"rebalance": {"minAge": "0s"}}}]}`

// demonstrateMoves holds streams on three servers of this process, adds a fourth and prints how streams move there.
func demonstrateMoves(ctx context.Context, stay bool, out io.Writer) error {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b", "c", "d")
	if err != nil {
		return err
	}
	defer leastconntest.CloseNodes(nodes...)
	three := nodes[0].Addr() + "," + nodes[1].Addr() + "," + nodes[2].Addr()
	conn, update, err := dialList(three, grpc.WithDefaultServiceConfig(moveAtOnce))
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.Connect()
	if err := leastconntest.WaitFor(ctx, "the servers to be ready", func() bool { return ready() == 3 }); err != nil {
		return err
	}

	held := heldStreams{out: out, by: map[string]int{}}
	fmt.Fprintf(out, "%-22s%4s%4s%4s%4s\n", "streams held by", "a", "b", "c", "d")
	const streams = 12
	ctx, cancel := context.WithCancel(ctx)
	var holding sync.WaitGroup
	defer holding.Wait()
	defer cancel()
	for range streams {
		holding.Go(func() { _ = hold(ctx, conn, true, held.changed) })
	}
	opened := func() bool { return held.at("a")+held.at("b")+held.at("c") == streams }
	if err := leastconntest.WaitFor(ctx, "streams to open", opened); err != nil {
		return err
	}
	held.print("12 open over a, b, c")
	update(three + "," + nodes[3].Addr())
	held.print("d joins")
	if err := leastconntest.WaitFor(ctx, "streams to move", func() bool { return held.at("d") == streams/4 }); err != nil {
		return err
	}
	if stay {
		<-ctx.Done()
	}
	return nil
}

// heldStreams are how many streams each server holds.
type heldStreams struct {
	out io.Writer

	mu sync.Mutex
	by map[string]int
}

// changed is for hold.
func (h *heldStreams) changed(from, to string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by[from]--
	h.by[to]++
	if from != "" {
		h.printLocked("one moves from " + from + " to " + to)
	}
}

func (h *heldStreams) print(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.printLocked(what)
}

func (h *heldStreams) printLocked(what string) {
	fmt.Fprintf(h.out, "%-22s%4d%4d%4d%4d\n", what, h.by["a"], h.by["b"], h.by["c"], h.by["d"])
}

func (h *heldStreams) at(server string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by[server]
}
