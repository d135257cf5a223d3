package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// trial is one case as a child runs it.
type trial struct {
	order
	channel *leastconntest.Channel
	watch   *watch
}

// report is what a child says of a case that has passed.
type report struct {
	Sent map[string]int // RPC attempts by address
}

// obey runs the case that the order in names, writes a report to out, and to errs what has failed.
func obey(ctx context.Context, in io.Reader, out, errs io.Writer, cases []testCase) (status int) {
	t := &trial{watch: newWatch()}
	r, err := report{}, json.NewDecoder(in).Decode(&t.order)
	if err == nil {
		r, err = t.run(ctx, cases)
	}
	if err == nil {
		err = json.NewEncoder(out).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(errs, said, err)
		return exitFailed
	}
	return exitPassed
}

// run runs the case and checks the counts. It does not return if gRPC's checks fail.
func (t *trial) run(ctx context.Context, cases []testCase) (report, error) {
	chosen, err := choose(cases, t.Case)
	if err != nil {
		return report{}, err
	}
	c := chosen[0]
	if t.channel, err = t.dial(grpc.WithStatsHandler(t.watch)); err != nil {
		return report{}, err
	}
	defer t.channel.Close()
	if err := waitReady(ctx, t.channel, t.Servers, t.timeout()); err != nil {
		return report{}, err
	}
	// Not a deadline of ctx: that would end what the case leaves open, and hide it.
	limit := time.AfterFunc(t.limit(c), func() { die("not over after", t.limit(c)) })
	c.do(ctx, t)
	limit.Stop()
	sent, err := t.watch.result()
	if err == nil && len(sent) == 0 && !c.unsent {
		err = errors.New("no RPC was sent")
	}
	return report{Sent: sent}, errors.Join(err, waitSettled(ctx, t.timeout()))
}

// die ends the process, as gRPC's checks do when they fail.
func die(why ...any) {
	fmt.Fprint(os.Stderr, said, " ", fmt.Sprintln(why...))
	os.Exit(exitFailed)
}

// another makes one more channel.
func (t *trial) another() (*grpc.ClientConn, func()) {
	ch, err := t.dial(grpc.WithStatsHandler(t.watch))
	if err != nil {
		die("another channel:", err)
	}
	return ch.Conn(), func() { ch.Close() }
}
