package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// follow opens a stream from time to time, holds it and prints how many each server holds. A client of your own calls a
// method of its service instead of leastconntest.Open.
func follow(ctx context.Context, conn *grpc.ClientConn, every time.Duration, out io.Writer) {
	var mu sync.Mutex
	held := map[string]int{}
	count := func(what, server string, by int) {
		mu.Lock()
		defer mu.Unlock()
		held[server] += by
		if held[server] == 0 {
			delete(held, server)
		}
		fmt.Fprintf(out, "%-24s %s\n", what+" on "+server, counts(held))
	}
	var holding sync.WaitGroup
	defer holding.Wait()
	for next := time.NewTicker(every); ; {
		stream, err := leastconntest.Open(ctx, conn)
		switch {
		case err == nil:
			count("new stream", stream.Node(), 1)
			holding.Go(func() {
				_ = stream.Wait() // why it has ended is not shown
				if ctx.Err() == nil {
					count("stream ended", stream.Node(), -1)
				}
			})
		case ctx.Err() == nil:
			fmt.Fprintln(out, "no stream:", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
	}
}

// counts says how many streams each server holds.
func counts(held map[string]int) string {
	var all []string
	for _, server := range slices.Sorted(maps.Keys(held)) {
		all = append(all, fmt.Sprintf("%s %d", server, held[server]))
	}
	return strings.Join(all, "  ")
}

// demonstrate holds streams on three servers of this process, adds a fourth and prints where the next streams go.
func demonstrate(ctx context.Context, stay bool, out io.Writer) error {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b", "c", "d")
	if err != nil {
		return err
	}
	defer leastconntest.CloseNodes(nodes...)
	three := nodes[0].Addr() + "," + nodes[1].Addr() + "," + nodes[2].Addr()
	conn, update, err := dialList(three)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.Connect()

	fmt.Fprintf(out, "%-22s%4s%4s%4s%4s\n", "streams held by", "a", "b", "c", "d")
	for _, step := range []struct {
		what    string
		servers int
		streams int
	}{{"12 open over a, b, c", 3, 12}, {"d joins", 4, 0}, {"4 more open", 4, 4}, {"4 more open", 4, 4}} {
		if step.servers == len(nodes) {
			update(three + "," + nodes[3].Addr())
		}
		if err := leastconntest.WaitFor(ctx, "the servers to be ready", func() bool { return ready() == step.servers }); err != nil {
			return err
		}
		for range step.streams {
			if _, err := leastconntest.Open(ctx, conn); err != nil {
				return err
			}
		}
		fmt.Fprintf(out, "%-22s%4d%4d%4d%4d\n", step.what, nodes[0].Live(), nodes[1].Live(), nodes[2].Live(), nodes[3].Live())
	}
	if stay {
		<-ctx.Done()
	}
	return nil
}

// ready is how many servers the policy may choose now.
func ready() (n int) {
	for _, service := range leastconnbalancer.Snapshots() {
		for _, e := range service.Endpoints {
			if e.State == leastconnbalancer.EndpointReady {
				n++
			}
		}
	}
	return n
}
