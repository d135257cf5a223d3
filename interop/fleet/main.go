// Fleet runs a real fleet on one machine: servers, and many client processes that know nothing of each other and hold a
// few streams each. It prints how even the servers' loads are with several load balancing policies, and with what servers
// report of themselves.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
)

const usage = `Fleet starts servers, and clients that are processes of their own, on TCP loopback. Each client holds some streams, each
of a random life, and opens a new one when one ends. For each policy it measures, by the servers' own counts, how even their
loads are. Then one server joins, and later another one breaks and comes back a second later.

Policies play one after another, each for -duration and some time before that in which the loads settle. Clients are this
program again. They end with it, however it ends.

Exit status: 0 if no stream failed but those that the broken server held, 1 if one did, 2 if something could not be run.

Flags:
`

// Exit statuses, as usage describes them.
const (
	exitWell = iota
	exitErrors
	exitFailed
)

func main() {
	if isClient() {
		clientMain()
		return
	}
	flags.Main(run)
}

// clientMark is in the environment of a client process.
const clientMark = "LEASTCONN_FLEET_CLIENT"

func isClient() bool { return os.Getenv(clientMark) != "" }

func clientMain() {
	if err := runClient(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fleet client:", err)
		os.Exit(exitFailed)
	}
}

// options are what the flags say.
type options struct {
	duration time.Duration
	life     time.Duration // of a stream, on average
	servers  int           // at first
	clients  int
	streams  int // of each client
	policies []policy
	seed     uint64 // of the streams' lives
	json     bool
}

// run is the program of the parent.
func run(ctx context.Context, args []string, out, errs io.Writer) (status int) {
	o, err := parse(args, out)
	if err != nil {
		return flags.Refuse("fleet", err, errs)
	}
	r := report{options: o}
	for _, p := range o.policies {
		fmt.Fprintf(errs, "fleet: %s, for %v\n", p.id, o.duration)
		got, err := play(ctx, o, p)
		if err != nil {
			fmt.Fprintf(errs, "fleet: %s: %v\n", p.id, err)
			return exitFailed
		}
		r.results = append(r.results, got)
	}
	if err := r.print(out); err != nil {
		fmt.Fprintln(errs, "fleet:", err)
		return exitFailed
	}
	return r.status()
}

func parse(args []string, out io.Writer) (o options, err error) {
	fs := flags.New("fleet")
	var name string
	flags.Duration(fs, &o.duration, "duration", time.Minute, time.Second, time.Hour, "how long each policy is measured")
	flags.Duration(fs, &o.life, "life", 5*time.Second, 50*time.Millisecond, 10*time.Minute, "how long a stream lives on average")
	flags.Int(fs, &o.servers, "servers", 20, 2, 100, "`number` of servers at first, 2 to 100")
	flags.Int(fs, &o.clients, "clients", 40, 1, 200, "`number` of client processes, 1 to 200")
	flags.Int(fs, &o.streams, "streams", 5, 1, 1000, "`number` of streams that each client holds, 1 to 1000")
	fs.StringVar(&name, "policy", "", "play only the policy of this `name`: "+policyNames()+".\nDefault: all")
	fs.Func("seed", "`number` that the streams' lives follow from, 0 to 2^64-1; 0: one is drawn", func(s string) (err error) {
		if o.seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			return errors.New("want 0 to 2^64-1")
		}
		return nil
	})
	flags.Bool(fs, &o.json, "json", "print JSON instead of the table")
	if err := flags.Parse(fs, args, usage, out); err != nil {
		return o, err
	}
	for o.seed == 0 {
		o.seed = rand.Uint64()
	}
	o.policies, err = selectPolicies(name)
	return o, err
}
