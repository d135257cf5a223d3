package leastconntest_test

import (
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

func TestProxyForwardsOnLoopbackOnly(t *testing.T) {
	p, err := leastconntest.StartProxy("[::1]:80")
	require.NoError(t, err)
	defer p.Close()
	for _, target := range []string{"", "80", "127.0.0.1", "127.0.0.1:0", "localhost:80", "192.0.2.1:80", "[2001:db8::1]:80", "0.0.0.0:80"} {
		_, err := leastconntest.StartProxy(target)
		assert.ErrorContains(t, err, "target \""+target+"\" is ")
		assert.Error(t, p.SetTarget(target))
	}
}

func TestProxyForwardsBothWaysToTheEnd(t *testing.T) {
	for _, d := range bothWays {
		t.Run(d.String(), func(t *testing.T) {
			s := newProxyEnv(t)
			client, server := s.open()
			from, to := ends(d, client, server)
			long := strings.Repeat("all of it ", 20_000)
			go from.Write([]byte(long))
			s.gets(to, long)
			require.NoError(t, from.CloseWrite())
			_, err := to.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			s.send(to, "the other way is open")
			s.gets(from, "the other way is open")
			s.conns(1)
			require.NoError(t, to.Close())
			_, err = from.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			s.conns(0)
			require.Equal(t, 1, s.Accepted())
		})
	}
}

func TestProxyCloseLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for name, spoil := range map[string]func(*leastconntest.Proxy){
		"sound":     func(*leastconntest.Proxy) {},
		"blackhole": func(p *leastconntest.Proxy) { p.Blackhole(true) },
		"slow":      func(p *leastconntest.Proxy) { p.SetDelay(time.Hour) },
		"refusing":  func(p *leastconntest.Proxy) { p.Refuse(true) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newProxyEnv(t)
			client, server := s.open()
			spoil(s.Proxy)
			s.send(client, "on its way")
			if late, err := net.Dial("tcp", s.Addr()); err == nil { // it may be refused
				defer late.Close()
			}
			eventually(t, "both connections", func() bool { return s.Accepted() == 2 })
			s.Close()
			s.isReset(client)
			s.isReset(server)
			require.Zero(t, s.Conns())
			_, err := net.Dial("tcp", s.Addr())
			require.Error(t, err)
			s.Close()
			s.Reset()
		})
	}
	eventually(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

func TestProxyResetsWhatIsOpen(t *testing.T) {
	s := newProxyEnv(t)
	var all []*net.TCPConn
	for range 3 {
		client, server := s.open()
		all = append(all, client, server)
	}
	s.conns(3)
	s.Reset()
	for _, conn := range all {
		s.isReset(conn)
	}
	s.conns(0)
	client, server := s.open()
	s.send(client, "later ones live")
	s.gets(server, "later ones live")
}

func TestProxyBlackholeKeepsConnectionsAndLosesNothing(t *testing.T) {
	s := newProxyEnv(t)
	client, server := s.open()
	s.Blackhole(true)
	s.send(client, "there")
	s.send(server, "back")
	late := s.dial()
	s.send(late, "late")
	s.getsNothing(server)
	s.getsNothing(client)
	require.NoError(t, client.CloseWrite())
	s.getsNothing(server)
	s.conns(2)
	require.NoError(t, s.server.(*net.TCPListener).SetDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := s.server.Accept()
	require.ErrorContains(t, err, "i/o timeout", "a connection has reached the server")

	s.Blackhole(false)
	s.gets(server, "there")
	s.gets(client, "back")
	_, err = server.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	s.gets(s.accept(s.server), "late")
}

func TestProxyHalfOpenSilencesOneDirection(t *testing.T) {
	for _, d := range bothWays {
		t.Run(d.String(), func(t *testing.T) {
			s := newProxyEnv(t)
			client, server := s.open()
			from, to := ends(d, client, server)
			s.HalfOpen(d, true)
			s.send(from, "lost")
			s.send(to, "heard")
			s.gets(from, "heard")
			s.getsNothing(to)
			require.EqualValues(t, len("lost"), s.Bytes(d))
			require.EqualValues(t, len("heard"), s.Bytes(1-d))
			s.HalfOpen(d, false)
			s.gets(to, "lost")
		})
	}
}

func TestProxyBreaksWhatABlackholeHolds(t *testing.T) {
	s := newProxyEnv(t)
	client, server := s.open()
	s.Blackhole(true)
	late := s.dial()
	s.conns(2)
	s.Reset()
	s.isReset(client)
	s.isReset(server)
	s.isReset(late)
	s.conns(0)
}

func TestProxyRefusesNewConnectionsOnly(t *testing.T) {
	s := newProxyEnv(t)
	client, server := s.open()
	s.Refuse(true)
	for range 3 {
		s.refused()
	}
	s.send(client, "still open")
	s.gets(server, "still open")
	require.Equal(t, 4, s.Accepted())
	s.conns(1)
	s.Refuse(false)
	client, server = s.open()
	s.send(client, "open again")
	s.gets(server, "open again")
}

// What a delay holds back goes on when it is taken back; a slow link lets through as much as its rate allows.
func TestProxyIsSlow(t *testing.T) {
	for _, d := range bothWays {
		t.Run(d.String(), func(t *testing.T) {
			s := newProxyEnv(t)
			client, server := s.open()
			from, to := ends(d, client, server)
			s.SetDelay(time.Hour)
			s.send(from, "late")
			s.getsNothing(to)
			s.SetDelay(0)
			s.gets(to, "late")

			begun := time.Now()
			s.SetRate(1)
			s.send(from, "slow")
			s.gets(to, "s")
			s.gets(to, "l")
			require.GreaterOrEqual(t, time.Since(begun), time.Second)
			s.SetRate(1000)
			s.gets(to, "ow")
		})
	}
}

// What waits for a fault to end goes on at once when it does.
func TestProxyHeals(t *testing.T) {
	s := newProxyEnv(t)
	client, server := s.open()
	s.SetRate(1)
	s.SetDelay(time.Hour)
	s.Blackhole(true)
	s.Refuse(true)
	s.send(client, "after an hour")
	s.getsNothing(server)
	s.Heal()
	s.gets(server, "after an hour")
	client, server = s.open()
	s.SetRate(-1)
	s.send(server, "new")
	s.gets(client, "new")
}
