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

// follow opens a stream from time to time, holds it and prints how many each server holds.
func follow(ctx context.Context, conn *grpc.ClientConn, every time.Duration, move bool, out io.Writer) {
	var mu sync.Mutex
	held := map[string]int{}
	changed := func(from, to string) {
		mu.Lock()
		defer mu.Unlock()
		what := "stream moved to " + to
		switch {
		case from == "":
			what = "new stream on " + to
		case to == "":
			what = "stream ended on " + from
		}
		held[from]--
		held[to]++
		fmt.Fprintf(out, "%-24s %s\n", what, counts(held))
	}
	var holding sync.WaitGroup
	defer holding.Wait()
	for next := time.NewTicker(every); ; {
		opened := make(chan struct{}) // or failed: while all servers are full, one waits
		open := sync.OnceFunc(func() { close(opened) })
		holding.Go(func() {
			defer open()
			err := hold(ctx, conn, move, func(from, to string) {
				changed(from, to)
				open()
			})
			if ctx.Err() == nil && err != nil {
				fmt.Fprintln(out, "no stream:", err)
			}
		})
		if !received(ctx, opened) || !received(ctx, next.C) {
			return
		}
	}
}

// received waits for c, and reports false when ctx ends before.
func received[T any](ctx context.Context, c <-chan T) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c:
		return true
	}
}

// counts says how many streams each server holds.
func counts(held map[string]int) string {
	var all []string
	for _, server := range slices.Sorted(maps.Keys(held)) {
		if server != "" && held[server] > 0 {
			all = append(all, fmt.Sprintf("%s %d", server, held[server]))
		}
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
