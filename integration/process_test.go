package integration

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lookup returns the path of a program that a test needs.
func lookup(t *testing.T, program, needs string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	require.NoError(t, err, "this test needs %s: %s", program, needs)
	return path
}

// process is a program that runs no longer than its test, and no longer than the
// test binary however that ends.
type process struct {
	*testing.T
	cmd    *exec.Cmd
	out    output        // what it has printed
	errors output        // and what else it had to say
	exited chan struct{} // closed when it has ended
}

// startProcess starts a program. The signal ends it with the test.
func startProcess(t *testing.T, c *exec.Cmd, last syscall.Signal) *process {
	t.Helper()
	p := &process{T: t, cmd: c, exited: make(chan struct{})}
	c.Stdout, c.Stderr = &p.out, &p.errors
	require.NoError(t, c.Start())
	guard, err := startGuard(c.Process.Pid)
	go func() {
		c.Wait()
		if guard != nil {
			guard.Process.Kill()
			guard.Wait()
		}
		close(p.exited)
	}()
	t.Cleanup(func() {
		c.Process.Signal(last)
		select {
		case <-p.exited:
		case <-time.After(patience):
			t.Errorf("%s does not end; it is killed, and may leave others behind", c.Path)
			c.Process.Kill()
			<-p.exited
		}
		if t.Failed() {
			t.Logf("%s said:\n%s%s", c.Path, &p.out, &p.errors)
		}
	})
	require.NoError(t, err)
	return p
}

// startGuard starts a process that ends another one if the test binary ends
// before it, as it does when its time is over.
func startGuard(pid int) (*exec.Cmd, error) {
	guard := exec.Command("sh", "-c", `cat; kill -TERM "$0"`, strconv.Itoa(pid))
	// Nothing is ever written to it, and it is closed with the test binary.
	if _, err := guard.StdinPipe(); err != nil {
		return nil, err
	}
	if err := guard.Start(); err != nil {
		return nil, err
	}
	return guard, nil
}

// signal tells the process something.
func (p *process) signal(s syscall.Signal) {
	p.Helper()
	require.NoError(p, p.cmd.Process.Signal(s))
}

// end ends the process with a signal.
func (p *process) end(s syscall.Signal) {
	p.Helper()
	p.signal(s)
	p.waitEnded()
}

func (p *process) waitEnded() {
	p.Helper()
	wait(p.T, p.cmd.Path+" ends", p.ended)
}

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// until waits for a condition that the process brings about.
func (p *process) until(what string, condition func() bool) {
	p.Helper()
	wait(p.T, what, func() bool {
		p.Helper()
		if p.ended() {
			require.FailNow(p, p.cmd.Path+" has ended", "it should: %s; it said:\n%s%s", what, &p.out, &p.errors)
		}
		return condition()
	})
}

// output is what a process has printed so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// line returns a line, counted from 0, if the process has ended it.
func (o *output) line(n int) (line string, ok bool) {
	lines := strings.Split(o.String(), "\n")
	if n+1 >= len(lines) {
		return "", false
	}
	return lines[n], true
}
