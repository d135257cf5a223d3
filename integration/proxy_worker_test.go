package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// reload has a new worker take over, waits until the old one drains and returns
// the processes' ids.
func (p *proxy) reload() (old, fresh int) {
	p.t.Helper()
	old, idle, err := p.visit()
	require.NoError(p.t, err)
	defer idle.Close()
	p.configure()
	p.signal(p.kind.reload)
	_, err = io.Copy(io.Discard, idle) // a worker that drains closes its idle connections after its ports
	require.NoError(p.t, err, "the old worker of %s does not drain", p.kind.program)
	fresh = p.worker()
	require.NotEqual(p.t, old, fresh)
	return old, fresh
}

// worker returns the id of the process that accepts connections.
func (p *proxy) worker() (pid int) {
	p.t.Helper()
	wait(p.t, "a worker of "+p.kind.program, func() (ok bool) {
		var err error
		pid, err = p.tryWorker()
		return err == nil
	})
	return pid
}

func (p *proxy) tryWorker() (pid int, err error) {
	pid, conn, err := p.visit()
	if err == nil {
		conn.Close()
	}
	return pid, err
}

// visit asks a worker for its process id, over a connection that is open then.
func (p *proxy) visit() (pid int, conn net.Conn, err error) {
	conn, err = net.Dial("tcp", p.admin)
	if err != nil {
		return 0, nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	conn.SetDeadline(time.Now().Add(proxyPatience))
	if _, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: admin\r\n\r\n"); err != nil {
		return 0, nil, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, err
	}
	_, err = fmt.Fscan(answer.Body, &pid)
	return pid, conn, err
}

// signalWorker tells the worker something.
func (p *proxy) signalWorker(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, syscall.Kill(p.worker(), s))
}

// waitGone waits until a former worker has ended, as it does with its last
// stream.
func (p *proxy) waitGone(pid int) {
	p.t.Helper()
	wait(p.t, "the old worker of "+p.kind.program+" has ended", func() bool {
		return syscall.Kill(pid, 0) == syscall.ESRCH
	})
}
