package file

import (
	"context"
	"crypto/sha256"
	"time"

	"google.golang.org/grpc/resolver"
)

// intervals are how long the resolver waits for what.
type intervals struct {
	quiet time.Duration // after a change, for another one
	burst time.Duration // after the first change, at most
	poll  time.Duration // to read without being told of a change
	grace time.Duration // in Close, for the file system to answer
}

var defaultIntervals = intervals{quiet: 100 * time.Millisecond, burst: time.Second, poll: 5 * time.Second, grace: 100 * time.Millisecond}

// follower follows one file for one channel, from Build to Close.
type follower struct {
	// Set once.
	path      string
	source    source
	read      func(path string) ([]byte, error)
	cc        resolver.ClientConn
	intervals intervals
	requested chan struct{} // holds a wish to read the file
	ctx       context.Context
	cancel    context.CancelFunc
	done      chan struct{} // closed when run has returned

	// Only used in run, which alone calls cc.
	lastSum  [sha256.Size]byte // the sum of the contents that were read last
	haveSum  bool              // last is set, and the file could still be read after it
	reported string            // the error that cc was told of since the last good list
}

func newFollower(path string, cc resolver.ClientConn, opts resolver.BuildOptions) *follower {
	r := &follower{
		path:      path,
		source:    sourceOf(path, opts),
		read:      read,
		cc:        cc,
		intervals: defaultIntervals,
		requested: make(chan struct{}, 1),
		done:      make(chan struct{}),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// start begins to follow the file. The watch is closed when the resolver is.
func (r *follower) start(w *watch) { go r.run(w) }

// ResolveNow has the file read again soon; it does not wait for that.
func (r *follower) ResolveNow(resolver.ResolveNowOptions) {
	select {
	case r.requested <- struct{}{}:
	default:
	}
}

// Close ends the goroutine and returns when it has ended: the channel is not
// called any more. It leaves behind what waits for a file system that does not
// answer.
func (r *follower) Close() {
	r.cancel()
	<-r.done
}

// run reads the file whenever it may have changed.
func (r *follower) run(w *watch) {
	defer close(r.done)
	poll := time.NewTicker(r.intervals.poll)
	defer poll.Stop()
	for r.ctx.Err() == nil {
		if !r.followAndRead(w) {
			return
		}
		r.waitForReason(w, poll.C)
		r.debounce(w)
	}
	w.close()
}

// followAndRead reads the file and tells the channel what is new. It returns
// false if the resolver was closed while the file system did not answer: then
// the goroutine that waits for the answer closes the watch.
func (r *follower) followAndRead(w *watch) bool {
	var data []byte
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		// The watch comes first, so that no change after reading is missed.
		w.follow()
		data, err = r.read(r.path)
	}()
	select {
	case <-answered:
	case <-r.ctx.Done():
		// As a rule it answers soon.
		grace := time.NewTimer(r.intervals.grace)
		defer grace.Stop()
		select {
		case <-answered:
		case <-grace.C:
			go func() {
				<-answered
				w.close()
			}()
			return false
		}
	}
	if r.ctx.Err() == nil {
		r.load(data, err)
	}
	return true
}

// waitForReason waits for a reason to read the file.
func (r *follower) waitForReason(w *watch, poll <-chan time.Time) {
	for {
		select {
		case e := <-w.events:
			if w.isAbout(e) {
				return
			}
		case <-w.overflow:
			return
		case <-r.requested:
			return
		case <-poll:
			return
		case <-r.ctx.Done():
			return
		}
	}
}

// debounce waits until a burst of changes is over.
func (r *follower) debounce(w *watch) {
	quiet, burst := time.NewTimer(r.intervals.quiet), time.NewTimer(r.intervals.burst)
	defer quiet.Stop()
	defer burst.Stop()
	for {
		select {
		case e := <-w.events:
			if w.isAbout(e) {
				quiet.Reset(r.intervals.quiet)
			}
		case <-quiet.C:
			return
		case <-burst.C:
			return
		case <-r.ctx.Done():
			return
		}
	}
}

// load takes what was read and tells the channel of what is new.
func (r *follower) load(data []byte, err error) {
	if err != nil {
		r.haveSum = false
		r.report(err)
		return
	}
	sum := sha256.Sum256(data)
	if r.haveSum && sum == r.lastSum {
		return
	}
	r.lastSum, r.haveSum = sum, true
	l, err := parse(data)
	if err != nil {
		r.report(err)
		return
	}
	r.reported = ""
	state := r.source.state(l, r.cc.ParseServiceConfig)
	if sc := state.ServiceConfig; sc != nil && sc.Err != nil {
		// If gRPC has a valid config, it keeps silent about this one.
		logger.Warning(sc.Err)
	}
	// An error says that the policy refuses the list. To read the file again
	// would change nothing before the file itself changes.
	_ = r.cc.UpdateState(state)
}

// report tells the channel of an error, once.
func (r *follower) report(err error) {
	err = r.source.locate(err)
	if err.Error() == r.reported {
		return
	}
	r.reported = err.Error()
	r.cc.ReportError(err)
}
