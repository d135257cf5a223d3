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

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// liveOptions say how to run live.
type liveOptions struct {
	target string // "" for a fleet of its own
	every  time.Duration
	watch  bool   // draw a table instead of printing lines
	http   string // address of the page and the metrics, "" for none
}

// live opens sessions over a service whose servers come and go, one after another, and says where each one went and how
// many every server holds.
type live struct {
	liveOptions
	out   io.Writer
	begun time.Time
	last  string         // what has happened last
	held  map[string]int // sessions by server
	open  []session      // oldest first
	ended chan session
}

// session is one that is open.
type session struct {
	*leastconntest.Stream
}

// runLive runs until ctx ends, which is no error.
func runLive(ctx context.Context, o liveOptions, out io.Writer) error {
	recorder := leastconntest.NewRecorder()
	service, err := openService(o.target, recorder.DialOption())
	if err != nil {
		return err
	}
	defer service.close()
	l := &live{liveOptions: o, out: out, begun: time.Now(), held: map[string]int{}, ended: make(chan session)}
	if o.http != "" {
		web, err := startWeb(o.http, recorder)
		if err != nil {
			return err
		}
		defer web.close()
		fmt.Fprintf(out, "page http://%[1]s/  metrics http://%[1]s/metrics\n", web.addr)
	}
	l.run(ctx, service)
	return nil
}

func (l *live) run(ctx context.Context, service *service) {
	next := time.NewTicker(l.every)
	defer next.Stop()
	frames := time.NewTicker(framePeriod)
	defer frames.Stop()
	opened := 0
	for {
		if what := service.change(opened); what != "" {
			l.say(what)
		}
		l.begin(ctx, service.conn)
		opened++
		if service.most > 0 && len(l.open) > service.most {
			l.open[0].Cancel()
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case s := <-l.ended:
				l.lose(s)
			case <-frames.C:
				if l.watch && ctx.Err() == nil {
					draw(l.out, l)
				}
			case <-next.C:
				waiting = false
			}
		}
	}
}

// begin opens a session; a failure is said and not the end.
func (l *live) begin(ctx context.Context, conn *grpc.ClientConn) {
	stream, err := leastconntest.Open(ctx, conn)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		l.say("no session: " + err.Error())
		return
	}
	s := session{stream}
	l.open = append(l.open, s)
	l.held[s.Node()]++
	l.say("new session on " + s.Node())
	go func() {
		s.Wait()
		select {
		case l.ended <- s:
		case <-ctx.Done():
		}
	}()
}

func (l *live) lose(s session) {
	l.open = slices.DeleteFunc(l.open, func(o session) bool { return o == s })
	if l.held[s.Node()]--; l.held[s.Node()] == 0 {
		delete(l.held, s.Node())
	}
	l.say("session ended on " + s.Node())
}

// sessions returns how many each server holds.
func (l *live) sessions() string {
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(l.held)) {
		counts = append(counts, fmt.Sprintf("%s %d", name, l.held[name]))
	}
	return strings.Join(counts, "  ")
}

func (l *live) say(what string) {
	l.last = fmt.Sprintf("%6.1fs  %-24s %s", time.Since(l.begun).Seconds(), what, l.sessions())
	if !l.watch {
		fmt.Fprintln(l.out, l.last)
	}
}
