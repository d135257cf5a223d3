package leastconntest_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProxyResetsWhatIsOpen(t *testing.T) {
	s := newSite(t)
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

func TestProxyPassesResetsOn(t *testing.T) {
	for _, d := range bothWays {
		t.Run(d.String(), func(t *testing.T) {
			s := newSite(t)
			client, server := s.open()
			from, to := ends(d, client, server)
			require.NoError(t, from.SetLinger(0))
			require.NoError(t, from.Close())
			s.isReset(to)
			s.conns(0)
		})
	}
	t.Run("server is down", func(t *testing.T) {
		s := newSite(t)
		require.NoError(t, s.server.Close())
		s.refused()
		s.conns(0)
	})
}

func TestProxyBlackholeKeepsConnectionsAndLosesNothing(t *testing.T) {
	s := newSite(t)
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
			s := newSite(t)
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
	s := newSite(t)
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
	s := newSite(t)
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

func TestProxyIsSlow(t *testing.T) {
	long := strings.Repeat("0123456789", 2_000)
	for name, slow := range map[string]func(*site){
		"delay": func(s *site) { s.SetDelay(200 * time.Millisecond) },
		"rate":  func(s *site) { s.SetRate(100_000) },
	} {
		for _, d := range bothWays {
			t.Run(name+", "+d.String(), func(t *testing.T) {
				s := newSite(t)
				client, server := s.open()
				from, to := ends(d, client, server)
				slow(s)
				start := time.Now()
				s.send(from, long)
				s.gets(to, long)
				require.GreaterOrEqual(t, time.Since(start), 150*time.Millisecond)
			})
		}
	}
}

// What waits for a fault to end goes on at once when it does.
func TestProxyHeals(t *testing.T) {
	s := newSite(t)
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
