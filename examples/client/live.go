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

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// live opens sessions over a service whose servers come and go, one after another, and shows where each one went and how
// many every server holds. Its fields are for the goroutine that runs it.
type live struct {
	out    io.Writer
	screen *screen // nil: print a line for each event
	page   string  // ", " and where it is, "" without one
	begun  time.Time
	recent []string          // what has happened last, oldest first
	held   map[string]int    // sessions by server
	names  map[string]string // servers by address
	open   []*session        // oldest first

	crew  sync.WaitGroup // the sessions' goroutines
	news  chan opening
	ended chan *session
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

// runLive runs until ctx ends or o.life is over, which is no error.
func runLive(ctx context.Context, o options, out io.Writer) error {
	if o.life > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.life)
		defer cancel()
	}
	recorder := leastconntest.NewRecorder()
	service, err := openService(o.target, recorder.DialOption())
	if err != nil {
		return err
	}
	defer service.close()
	l := &live{
		out: out, begun: time.Now(), held: map[string]int{}, names: map[string]string{},
		news: make(chan opening), ended: make(chan *session),
	}
	if o.http != "" {
		web, err := startWeb(o.http, recorder)
		if err != nil {
			return err
		}
		defer web.close()
		l.page = fmt.Sprintf(", page http://%s/", web.addr)
		fmt.Fprintf(out, "page http://%[1]s/  metrics http://%[1]s/metrics\n", web.addr)
	}
	if o.watch {
		l.screen = openScreen(out)
		defer l.screen.close()
	}
	l.run(ctx, o.every, service)
	return nil
}

func (l *live) run(ctx context.Context, every time.Duration, service *service) {
	// Sessions have a context of their own: they are seen until the last frame, and no deadline goes to the servers.
	calls, endCalls := context.WithCancel(context.WithoutCancel(ctx))
	defer l.crew.Wait()
	defer endCalls()
	next := time.NewTicker(every)
	defer next.Stop()
	frames := time.NewTicker(framePeriod)
	defer frames.Stop()

	begun, waiting := 0, false
	begin := func() {
		if what := service.change(begun); what != "" {
			l.say(what)
		}
		begun, waiting = begun+1, true
		l.crew.Go(func() { l.hold(calls, service.conn) })
	}
	begin()
	for {
		select {
		case <-ctx.Done():
			l.draw()
			return
		case <-frames.C:
			l.draw()
		case o := <-l.news:
			waiting = false
			l.take(o, service.most)
		case s := <-l.ended:
			l.lose(s)
		case <-next.C:
			if !waiting {
				begin()
			}
		}
	}
}

// hold opens a session and reads it to its end.
func (l *live) hold(ctx context.Context, conn *grpc.ClientConn) {
	own, end := context.WithCancel(ctx)
	defer end()
	stream, err := leastconntest.Open(own, conn)
	s := &session{Stream: stream, end: end}
	tell(ctx, l.news, opening{s, err})
	if err == nil {
		_ = stream.Wait() // why it has ended is not shown
		tell(ctx, l.ended, s)
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
func (l *live) take(o opening, most int) {
	if o.err != nil {
		l.say("no session: " + printable(o.err.Error()))
		return
	}
	s := o.session
	l.open = append(l.open, s)
	l.held[s.Node()]++
	if p, ok := peer.FromContext(s.Context()); ok {
		l.names[p.Addr.String()] = s.Node()
	}
	l.say("new session on " + s.Node())
	if most > 0 {
		for _, old := range l.open[:max(0, len(l.open)-most)] {
			old.asked = true
			old.end()
		}
	}
}

func (l *live) lose(s *session) {
	l.open = slices.DeleteFunc(l.open, func(o *session) bool { return o == s })
	if l.held[s.Node()]--; l.held[s.Node()] == 0 {
		delete(l.held, s.Node())
	}
	if !s.asked {
		l.say("session ended on " + s.Node())
	}
}

// sessions returns how many each server holds.
func (l *live) sessions() string {
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(l.held)) {
		counts = append(counts, fmt.Sprintf("%s %d", name, l.held[name]))
	}
	return strings.Join(counts, "  ")
}

// recentEvents is how many the table shows.
const recentEvents = 5

func (l *live) say(what string) {
	line := strings.TrimRight(fmt.Sprintf("%6.1fs  %-24s %s", time.Since(l.begun).Seconds(), what, l.sessions()), " ")
	if l.screen == nil {
		fmt.Fprintln(l.out, line)
		return
	}
	l.recent = append(l.recent, line)
	l.recent = l.recent[max(0, len(l.recent)-recentEvents):]
}

func (l *live) draw() {
	if l.screen != nil {
		l.screen.draw(l.frame(state.Snapshots()))
	}
}
