package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

const (
	// childMark is in the environment of a child process, which runs one case.
	childMark = "LEASTCONN_INTEROP_CHILD"
	// childPrefix is before what a child says of a failed case, other than gRPC's checks.
	childPrefix = "client:"
	// extraTime is what a child may take longer than its request allows before it is killed.
	extraTime = 30 * time.Second
	// maxLines is how much of what a failed case has said is shown.
	maxLines = 20
)

func isChild() bool { return os.Getenv(childMark) != "" }

// inChild runs a case in a process of its own, since gRPC's checks end the process when they fail. It returns how many
// RPC attempts were sent, by address.
func (o *options) inChild(ctx context.Context, c testCase) (sent map[string]int, err error) {
	request := o.request
	request.Case = c.name
	in, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	limit := 2*o.timeout() + o.limit(c) + extraTime
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), childMark+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &errs
	cmd.WaitDelay = extraTime // for its output
	switch err := cmd.Run(); {
	case ctx.Err() == context.DeadlineExceeded:
		return nil, fmt.Errorf("killed after %v; it said: %s", limit, failure(errs.String()))
	case err != nil:
		return nil, errors.New(cmp.Or(failure(errs.String()), err.Error()))
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return nil, fmt.Errorf("its report %q: %w", out.String(), err)
	}
	return r.Sent, nil
}

var (
	// reason is where a child begins to say why it ends: itself, gRPC's logger or the runtime.
	reason = regexp.MustCompile(`(?m)^(` + childPrefix + ` |.* FATAL: \[interop\] |panic: )`)
	// clue is what a soak says of an RPC that is a failure.
	clue = regexp.MustCompile(`(?m)^.* soak iteration: .* (failed: |exceeds max acceptable latency: ).*\n`)
)

// failure is what is worth knowing of all that a failed case has said: the reason and a clue, or else the end.
func failure(text string) string {
	if at := reason.FindStringIndex(text); at != nil {
		lines := strings.SplitAfterN(clue.FindString(text)+strings.TrimPrefix(text[at[0]:], childPrefix+" "), "\n", maxLines+1)
		return strings.TrimSpace(strings.Join(lines[:min(len(lines), maxLines)], ""))
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-maxLines):], "\n")
}

// request is what a child process is told.
type request struct {
	Case           string
	TimeoutSeconds int // of each: getting ready, the case unless it soaks, counts coming back to 0
	Servers        []server
	ServiceConfig  string
	TLS            *security
	Soak           soak
}

// limit is how long a case may take. A soak keeps its time itself.
func (o *request) limit(c testCase) time.Duration {
	if c.soaks {
		return o.Soak.limit() + o.timeout()
	}
	return o.timeout()
}

func (o *request) timeout() time.Duration { return time.Duration(o.TimeoutSeconds) * time.Second }

// dial makes a channel over all servers.
func (o *request) dial(opts ...grpc.DialOption) (*leastconntest.Channel, error) {
	secured, err := o.TLS.dialOptions()
	if err != nil {
		return nil, err
	}
	return leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: o.ServiceConfig,
		Target:        o.Servers[0].Name,
		Endpoints:     endpoints(o.Servers),
		DialOptions:   append(opts, secured...),
	})
}
