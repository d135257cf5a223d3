package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// peer is a server of another language, in a process of its own that ends with
// the test, and with the test binary however that ends.
type peer struct {
	t    *testing.T
	lang language
	addr string
	args []string

	// Of the process that runs now or ran last.
	process *exec.Cmd
	orders  io.WriteCloser
	answers chan string
	exited  chan struct{} // closed when it has ended; then errors may be read
	errors  *bytes.Buffer
}

// startPeer starts a server of the language for as long as the test runs, on an
// address that stays its own.
func startPeer(t *testing.T, lang language, args ...string) *peer {
	t.Helper()
	return startPeerAt(t, lang, reserveAddr(t), args...)
}

func startPeerAt(t *testing.T, lang language, addr string, args ...string) *peer {
	t.Helper()
	p := &peer{t: t, lang: lang, addr: addr, args: args}
	p.start()
	return p
}

// start starts another process on the peer's address and waits until it
// listens.
func (p *peer) start() {
	p.t.Helper()
	_, port, err := net.SplitHostPort(p.addr)
	require.NoError(p.t, err)
	c := p.lang.built(p.t)
	c.Args = append(append(c.Args, "--port", port, "--name", p.lang.name), p.args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH")} // and no settings of gRPC
	said := new(bytes.Buffer)
	c.Stderr = said
	orders, err := c.StdinPipe()
	require.NoError(p.t, err)
	out, err := c.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, c.Start())

	answers, exited := make(chan string, 8), make(chan struct{})
	go func() {
		defer close(exited)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			answers <- lines.Text()
		}
		c.Wait()
	}()
	p.process, p.orders, p.answers, p.exited, p.errors = c, orders, answers, exited, said
	p.t.Cleanup(func() {
		c.Process.Kill()
		<-exited
		if p.t.Failed() {
			p.t.Logf("the %s server said: %s", p.lang.name, said)
		}
	})
	require.Equal(p.t, "listening "+port, p.answer())
}

// answer returns the next line that the process says.
func (p *peer) answer() string {
	p.t.Helper()
	select {
	case line := <-p.answers:
		return line
	case <-p.exited:
		require.FailNow(p.t, "the "+p.lang.name+" server has ended", "it needs %s; it said:\n%s", p.lang.needs, p.errors)
	case <-time.After(20 * time.Second):
		require.FailNow(p.t, "the "+p.lang.name+" server says nothing")
	}
	return ""
}

// tell has the process do something, and does not wait for it.
func (p *peer) tell(order string) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.orders, order)
	require.NoError(p.t, err)
}

// obey has the process do something and returns how many RPCs it handles then.
func (p *peer) obey(order string) int {
	p.t.Helper()
	p.tell(order)
	var live int
	_, err := fmt.Sscanf(p.answer(), "live %d", &live)
	require.NoError(p.t, err)
	return live
}

func (p *peer) Addr() string { return p.addr }
func (p *peer) Name() string { return p.lang.name }

// Live is how many RPCs the server handles now.
func (p *peer) Live() int { return p.obey("live") }

// end ends the RPCs that are held now with a code.
func (p *peer) end(code codes.Code) { p.obey("end " + strconv.Itoa(int(code))) }

// drain tells the server to shut down gracefully, and does not wait for it.
func (p *peer) drain() {
	p.t.Helper()
	require.NoError(p.t, p.process.Process.Signal(syscall.SIGTERM))
}

// kill ends the process the hard way.
func (p *peer) kill() {
	p.t.Helper()
	require.NoError(p.t, p.process.Process.Kill())
	<-p.exited
}

// waitDrained waits until the process has shut down gracefully.
func (p *peer) waitDrained() {
	p.t.Helper()
	select {
	case <-p.exited:
		require.True(p.t, p.process.ProcessState.Success(), "%v: %s", p.process.ProcessState, p.errors)
	case <-time.After(20 * time.Second):
		require.FailNow(p.t, "the "+p.lang.name+" server does not end")
	}
}

// in is the same peer for a subtest, which must not start it.
func (p *peer) in(t *testing.T) *peer {
	q := *p
	q.t = t
	return &q
}
