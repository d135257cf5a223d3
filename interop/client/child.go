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
)

const (
	// childMark is in the environment of a child process, which runs one case.
	childMark = "LEASTCONN_INTEROP_CHILD"
	// said is before what a child says of a failed case, other than gRPC's checks.
	said = "client:"
	// overtime is what a child may take longer than its order allows before it is killed.
	overtime = 30 * time.Second
	// maxLines is how much of what a failed case has said is shown.
	maxLines = 20
)

func isChild() bool { return os.Getenv(childMark) != "" }

// inChild runs a case in a process of its own, since gRPC's checks end the process when they fail. It returns how many
// RPC attempts were sent, by address.
func (o *options) inChild(ctx context.Context, c testCase) (sent map[string]int, err error) {
	order := o.order
	order.Case = c.name
	in, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	limit := 2*o.timeout() + o.limit(c) + overtime
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), childMark+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &errs
	cmd.WaitDelay = time.Second // for its output
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
	reason = regexp.MustCompile(`(?m)^(` + said + ` |.* FATAL: \[interop\] |panic: )`)
	// clue is what a soak says of an RPC that is a failure.
	clue = regexp.MustCompile(`(?m)^.* soak iteration: .* (failed: |exceeds max acceptable latency: ).*\n`)
)

// failure is what is worth knowing of all that a failed case has said: the reason and a clue, or else the end.
func failure(text string) string {
	if at := reason.FindStringIndex(text); at != nil {
		lines := strings.SplitAfterN(clue.FindString(text)+strings.TrimPrefix(text[at[0]:], said+" "), "\n", maxLines+1)
		return strings.TrimSpace(strings.Join(lines[:min(len(lines), maxLines)], ""))
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-maxLines):], "\n")
}
