// Soak lets least_conn live through a long bad day: real servers on loopback start, stop, hang, drain, age, flap, refuse,
// reset, slow down and change weight at random, while RPCs of all kinds run over several channels that share their load.
// All along, the counts of the policy are compared with what the program itself has begun and what the servers hold.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `Soak runs RPCs of all kinds over several least_conn channels to servers on TCP loopback, while faults are injected
into servers, network, lists and channels. What is done, and when, follows from the seed; the same seed, -nodes and -round
replay it.

The time is cut into rounds. After each one there is a quiet point: no new faults and RPCs, and the counts of the policy
must become what the program holds open and what the servers see. Every third quiet point is a full one: all faults are
over, all RPCs ended, all counts 0, all servers connected again, and goroutines and heap are compared with the first ones.

Exit status: 0 if all checks held, also after an interrupt, 1 if one did not, 2 if a flag is wrong.

Flags:
`

// Exit statuses, as usage describes them.
const (
	exitHeld = iota
	exitViolated
	exitFlags
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program: it soaks as args say until ctx ends at the latest.
func run(ctx context.Context, args []string, out, errs io.Writer) (status int) {
	set, err := parse(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitHeld
	case err != nil:
		fmt.Fprintln(errs, "soak:", err)
		return exitFlags
	}
	fmt.Fprintln(out, "soak:", set.command())
	s := newSoak(set, out)
	err = s.run(ctx)
	fmt.Fprint(out, s.report.render(), s.summary(err, ctx.Err() != nil))
	if err != nil {
		return exitViolated
	}
	return exitHeld
}
