package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// process is a client process as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	orders *json.Encoder
	errs   bytes.Buffer
	opened int
	read   chan error // closed, or an error, when it has said all
}

// startProcess starts a client. It tells failed what fails, on a goroutine of its own. The client ends with ctx at the
// latest.
func startProcess(ctx context.Context, first order, failed func(failure)) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, exe), read: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), clientMark+"=1", "GORACE=atexit_sleep_ms=10") // the default is a second
	p.cmd.Stderr = &p.errs
	p.cmd.WaitDelay = 30 * time.Second // for its output
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.orders = json.NewEncoder(p.in)
	go func() { p.read <- p.listen(out, failed) }()
	return p, p.orders.Encode(first)
}

// listen reads all that the client says.
func (p *process) listen(out io.Reader, failed func(failure)) error {
	lines := json.NewDecoder(out)
	for {
		var n news
		switch err := lines.Decode(&n); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n.Failure != nil:
			failed(*n.Failure)
		default:
			p.opened = n.Opened
		}
	}
}

// end has the client end, and waits for that. It returns how many streams the client had opened.
func (p *process) end() (opened int, err error) {
	p.in.Close()
	err = <-p.read
	if waited := p.cmd.Wait(); waited != nil {
		err = waited
	}
	if err != nil {
		return 0, fmt.Errorf("a client: %w; it said: %s", err, strings.TrimSpace(p.errs.String()))
	}
	return p.opened, nil
}
