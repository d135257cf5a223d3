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
	"google.golang.org/grpc/peer"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// watchOptions are what the flags say of -watch.
type watchOptions struct {
	target string        // "" for servers of its own
	every  time.Duration // sessions open
	asked  time.Duration // how often servers are asked to report; 0: not
	life   time.Duration // 0: until interrupted
}

// watch opens sessions over a service whose servers come and go, one after another, and draws where they are. Its fields
// are for the goroutine that runs it.
type watch struct {
	screen *screen
	begun  time.Time
	recent []string          // what has happened last, oldest first
	held   map[string]int    // sessions by server
	names  map[string]string // servers by address
	open   []*session        // oldest first

	workers  sync.WaitGroup // the sessions' goroutines
	openings chan opening
	ended    chan *session
}

// session is an open one. A goroutine of its own reads it.
type session struct {
	*leastconntest.Stream
	end   context.CancelFunc
	asked bool // to end
}

// opening is an attempt to open a session.
type opening struct {
	session *session
	err     error
}

// runWatch runs until ctx ends or o.life is over, which is no error.
func runWatch(ctx context.Context, o watchOptions, out io.Writer) error {
	if o.life > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.life)
		defer cancel()
	}
	service, err := openService(o)
	if err != nil {
		return err
	}
	defer service.close()
	w := &watch{
		screen: openScreen(out), begun: time.Now(), held: map[string]int{}, names: map[string]string{},
		openings: make(chan opening), ended: make(chan *session),
	}
	defer w.screen.close()
	w.run(ctx, o.every, service)
	return nil
}

func (w *watch) run(ctx context.Context, every time.Duration, service *service) {
	// Sessions have a context of their own: they are seen until the last frame, and no deadline goes to the servers.
	calls, endCalls := context.WithCancel(context.WithoutCancel(ctx))
	defer w.workers.Wait()
	defer endCalls()
	next := time.NewTicker(every)
	defer next.Stop()
	frames := time.NewTicker(framePeriod)
	defer frames.Stop()

	begun, waiting := 0, false
	begin := func() {
		if what := service.change(begun); what != "" {
			w.say(what)
		}
		begun, waiting = begun+1, true
		w.workers.Go(func() { w.hold(calls, service.conn) })
	}
	begin()
	for {
		select {
		case <-ctx.Done():
			w.draw()
			return
		case <-frames.C:
			w.draw()
		case <-w.screen.resized:
			w.draw()
		case o := <-w.openings:
			waiting = false
			w.take(o, service.most)
		case s := <-w.ended:
			w.lose(s)
		case <-next.C:
			if !waiting {
				begin()
			}
		}
	}
}

// hold opens a session and reads it to its end.
func (w *watch) hold(ctx context.Context, conn *grpc.ClientConn) {
	own, end := context.WithCancel(ctx)
	defer end()
	stream, err := leastconntest.Open(own, conn)
	s := &session{Stream: stream, end: end}
	tell(ctx, w.openings, opening{s, err})
	if err == nil {
		_ = stream.Wait() // why it has ended is not shown
		tell(ctx, w.ended, s)
	}
}

// tell sends v, unless nobody receives any more.
func tell[T any](ctx context.Context, to chan<- T, v T) {
	select {
	case to <- v:
	case <-ctx.Done():
	}
}

// take counts a session that has opened, and ends the oldest if there are more than most; a failure is said.
func (w *watch) take(o opening, most int) {
	if o.err != nil {
		w.say("no session: " + printable(o.err.Error()))
		return
	}
	s := o.session
	w.open = append(w.open, s)
	w.held[s.Node()]++
	if p, ok := peer.FromContext(s.Context()); ok {
		w.names[p.Addr.String()] = s.Node()
	}
	w.say("new session on " + s.Node())
	if most > 0 {
		for _, old := range w.open[:max(0, len(w.open)-most)] {
			old.asked = true
			old.end()
		}
	}
}

func (w *watch) lose(s *session) {
	w.open = slices.DeleteFunc(w.open, func(o *session) bool { return o == s })
	if w.held[s.Node()]--; w.held[s.Node()] == 0 {
		delete(w.held, s.Node())
	}
	if !s.asked {
		w.say("session ended on " + s.Node())
	}
}

// sessions returns how many each server holds.
func (w *watch) sessions() string {
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(w.held)) {
		counts = append(counts, fmt.Sprintf("%s %d", name, w.held[name]))
	}
	return strings.Join(counts, "  ")
}

// recentEvents is how many the table shows.
const recentEvents = 5

// say adds an event to the table.
func (w *watch) say(what string) {
	line := strings.TrimRight(fmt.Sprintf("%6.1fs  %-24s %s", time.Since(w.begun).Seconds(), what, w.sessions()), " ")
	w.recent = append(w.recent, line)
	w.recent = w.recent[max(0, len(w.recent)-recentEvents):]
}

func (w *watch) draw() {
	w.screen.draw(w.frame(leastconnbalancer.Snapshots()))
}
