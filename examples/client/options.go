package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"
)

const usage = `Client opens long-lived sessions (bidirectional streams) while servers come, go and age, and prints one table that
shows where each load balancing policy put them:

  scale-out         a and b hold 2 sessions each; c joins; 2 more open
  one to two        a holds 4; b joins; 4 more open
  leave and return  a and b hold 4 each; a leaves the server list and returns, its sessions alive; 4 more open
  ageing            a holds 6; b joins; the connection to a gets a GOAWAY and is replaced; 6 more open

The policies are round_robin, grpc-go's least_request_experimental (with its default of 2 choices and with 10) and
least_conn. Without flags the three servers run in this process, on TCP loopback.

With -target the servers are yours: start three examples/server, each with a -name of its own. Only they can age their
connections, so "ageing" is run only with -max-age, which says what -max-age the first of them was started with; each
policy then waits about that long. Otherwise that row says "not run".

If -target is one target with a scheme, such as nodes:///path/to/nodes.yaml, dns-poll:///api.example.com:50051 or
srv:///_grpc._tcp.api.example.com, the client opens a session over it every -every, with least_conn, for as long as -for
says, and prints where each one went and how many every server holds: edit the file, or scale out, and see the new server
take the next ones. An attempt that takes longer delays the next session.

With -watch it draws the load instead, as a table that changes in place: each endpoint with what is in flight, what it was
picked for, and its score; ▸ marks the next. With -http it also serves the policy's debug page at /, with ?format=text and
?format=json, and its metrics for Prometheus at /metrics; whoever reaches that address can read them. Both work without
-target, too, over three servers in this process, of which the third joins after 12 sessions; once 30 sessions are open each
new one ends the oldest, and from time to time one of the servers leaves the list and returns.

Exit status: 0 if least_conn put every session on a server that held the fewest, or sessions opened until the end of -for or
an interrupt; 1 if it misplaced one; 2 if something could not be run.

Flags:
`

// options are what the flags say.
type options struct {
	target string        // "" for servers of its own
	maxAge time.Duration // 0 if only this process can age connections

	// Of sessions that open one after another.
	every time.Duration
	life  time.Duration // 0: until interrupted
	watch bool          // draw a table instead of printing lines
	http  string        // address of the page and the metrics, "" for none
}

// live tells whether sessions open one after another, rather than in scenarios.
func (o options) live() bool { return o.scheme() || o.watch || o.http != "" }

// scheme tells whether target is one that gRPC resolves, rather than a list of addresses.
func (o options) scheme() bool {
	return strings.Contains(o.target, "://") || strings.HasPrefix(o.target, "nodes:")
}

// errSaid is returned for what the flag package has already printed.
var errSaid = errors.New("said")

// parseOptions reads the flags. An error names the flag, its value and what it wants, or is flag.ErrHelp or errSaid.
func parseOptions(args []string) (o options, err error) {
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.target, "target", "", "comma-separated `addresses` of at least three servers; the first three are used.\n"+
		"Or one target with a scheme. Default: servers of its own")
	flags.DurationVar(&o.every, "every", time.Second, "how often to open a session over a -target with a scheme, with -watch or with -http;\nmore than 0")
	flags.DurationVar(&o.life, "for", 0, "how long to do so; 0: until interrupted")
	flags.BoolVar(&o.watch, "watch", false, "draw a table of the load while sessions open; -target has a scheme or is left out")
	flags.StringVar(&o.http, "http", "", "TCP `address` for the debug page and /metrics while sessions open, such as\n"+
		"127.0.0.1:8080; port 0 takes a free one; -target has a scheme or is left out")
	flags.DurationVar(&o.maxAge, "max-age", 0, "the -max-age of the first server of a -target of addresses. 0: it has none")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return o, err
	case err != nil:
		return o, errSaid
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; see -h", flags.Arg(0))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return o, o.check(given)
}

// check says what is wrong with the flags, of which those in given were there.
func (o options) check(given map[string]bool) error {
	switch {
	case o.maxAge < 0:
		return fmt.Errorf("-max-age is %v, want 0 or more; see -h", o.maxAge)
	case o.maxAge > 0 && (o.target == "" || o.live()):
		return fmt.Errorf("-max-age is %v: it goes with a -target of addresses only; see -h", o.maxAge)
	case o.every <= 0:
		return fmt.Errorf("-every is %v, want more than 0; see -h", o.every)
	case o.life < 0:
		return fmt.Errorf("-for is %v, want 0 or more; see -h", o.life)
	case given["http"] && o.http == "":
		return errors.New(`-http is "", want a TCP address, such as 127.0.0.1:8080; see -h`)
	case o.live() && o.target != "" && !o.scheme():
		return fmt.Errorf("-target is %q: with -watch or -http it wants one target with a scheme, such as nodes:///path/to/nodes.yaml, "+
			"or is left out; see -h", o.target)
	}
	for _, name := range []string{"every", "for"} {
		if given[name] && !o.live() {
			return fmt.Errorf("-%s goes with a -target with a scheme, -watch or -http only; see -h", name)
		}
	}
	return nil
}
