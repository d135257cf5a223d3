package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/resolver/dns"  // registers dns-poll and srv
	_ "github.com/leastconn/grpc-leastconn/resolver/file" // registers nodes
)

// live opens sessions over a target that a resolver keeps up to date, one after another, and says where each one went
// and how many every server holds.
type live struct {
	every time.Duration
	out   io.Writer
	begun time.Time
	held  map[string]int // sessions by server
	ended chan string    // servers whose sessions have ended
}

// watch runs until ctx ends, which is no error.
func watch(ctx context.Context, target string, every time.Duration, out io.Writer) error {
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{}.ServiceConfig()))
	if err != nil {
		return err
	}
	defer conn.Close()
	l := &live{every: every, out: out, begun: time.Now(), held: map[string]int{}, ended: make(chan string)}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		l.open(ctx, conn)
		for again := false; !again; {
			select {
			case <-ctx.Done():
				return nil
			case name := <-l.ended:
				if ctx.Err() == nil {
					l.lose(name)
				}
			case <-tick.C:
				again = true
			}
		}
	}
}

// open opens a session; a failure is said and not the end.
func (l *live) open(ctx context.Context, conn *grpc.ClientConn) {
	s, err := leastconntest.Open(ctx, conn)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		l.say("no session: " + err.Error())
		return
	}
	l.held[s.Node()]++
	l.say("new session on " + s.Node())
	go func() {
		s.Wait()
		select {
		case l.ended <- s.Node():
		case <-ctx.Done():
		}
	}()
}

func (l *live) lose(name string) {
	if l.held[name]--; l.held[name] == 0 {
		delete(l.held, name)
	}
	l.say("session ended on " + name)
}

func (l *live) say(what string) {
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(l.held)) {
		counts = append(counts, fmt.Sprintf("%s %d", name, l.held[name]))
	}
	fmt.Fprintf(l.out, "%6.1fs  %-24s %s\n", time.Since(l.begun).Seconds(), what, strings.Join(counts, "  "))
}
