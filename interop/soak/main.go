// Soak lets least_conn live through a long bad day: real servers on loopback start, stop, hang, drain, age, flap, refuse,
// reset, slow down, change weight and lie about their load at random, while RPCs of all kinds run over several channels that
// share their load.
// All along, the counts of the policy are compared with what the program itself has begun and what the servers hold.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
)

const usage = `Soak runs RPCs of all kinds over several least_conn channels to servers on TCP loopback, while faults are injected
into servers, what they report of their load, network, lists and channels. What is done, and when, follows from the seed;
the same seed, -nodes and -round replay it.

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
)

func main() { flags.Main(run) }

// run is the program: it soaks as args say until ctx ends at the latest.
func run(ctx context.Context, args []string, out, errs io.Writer) (status int) {
	set, err := parse(args, out)
	if err != nil {
		return flags.Refuse("soak", err, errs)
	}
	fmt.Fprintln(out, "soak:", set.command())
	s := newSoak(set, out)
	err = s.execute(ctx)
	fmt.Fprint(out, s.report.render(), s.summary(err, ctx.Err() != nil))
	if err != nil {
		return exitViolated
	}
	return exitHeld
}

// settings are what the flags say.
type settings struct {
	duration time.Duration // how long to begin new rounds
	seed     uint64        // of the plan, never 0
	nodes    int
	round    time.Duration // between two quiet points
	verbose  bool          // print every fault
	rounds   int           // to play instead of a duration; 0: the duration counts
}

// maxNodes is how many servers there may be.
const maxNodes = 32

// parse reads the flags, and for -h writes the usage to out.
func parse(args []string, out io.Writer) (set settings, err error) {
	fs := flags.New("soak")
	flags.Duration(fs, &set.duration, "duration", time.Minute, time.Second, 24*time.Hour, "how long to begin new rounds")
	flags.Duration(fs, &set.round, "round", 4*time.Second, 200*time.Millisecond, time.Minute, "time between two quiet points")
	flags.Int(fs, &set.nodes, "nodes", 6, 2, maxNodes, "`number` of servers")
	fs.Func("seed", "`number` that the plan follows from, 0 to 2^64-1; 0: one is drawn and printed", func(s string) (err error) {
		if set.seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			return errors.New("want 0 to 2^64-1")
		}
		return nil
	})
	flags.Bool(fs, &set.verbose, "v", "print every fault as it is injected")
	err = flags.Parse(fs, args, usage, out)
	for set.seed == 0 {
		set.seed = rand.Uint64()
	}
	return set, err
}

// command is the command line that replays the run.
func (s settings) command() string {
	return fmt.Sprintf("go run ./interop/soak -seed %d -nodes %d -round %v -duration %v", s.seed, s.nodes, s.round, s.duration)
}
