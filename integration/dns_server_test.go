package integration

import (
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
)

// dnsServer is a DNS server on loopback, over UDP and TCP, whose records change
// while it runs. It lives as long as its test.
type dnsServer struct {
	t    *testing.T
	addr string

	mu      sync.Mutex
	running []*dns.Server // none while it is down
	records map[string][]dns.RR
	rcode   int // what is answered instead
	mute    bool
	asked   map[string]int // questions by "TYPE name."
	overTCP map[string]bool
}

// startDNS starts a server on an address of loopback, "127.0.0.1" or "::1".
func startDNS(t *testing.T, ip string) *dnsServer {
	t.Helper()
	s := &dnsServer{t: t, records: map[string][]dns.RR{}, asked: map[string]int{}, overTCP: map[string]bool{}}
	var err error
	for range 20 { // a port may be free for UDP and not for TCP
		var probe net.PacketConn
		probe, err = net.ListenPacket("udp", net.JoinHostPort(ip, "0"))
		require.NoError(t, err)
		s.addr = probe.LocalAddr().String()
		require.NoError(t, probe.Close())
		if err = s.listen(); err == nil {
			break
		}
	}
	require.NoError(t, err)
	t.Cleanup(s.down)
	return s
}

// up starts the server again after down.
func (s *dnsServer) up() {
	s.t.Helper()
	require.NoError(s.t, s.listen())
}

func (s *dnsServer) listen() error {
	packets, err := net.ListenPacket("udp", s.addr)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		packets.Close()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = []*dns.Server{{PacketConn: packets, Handler: s}, {Listener: listener, Handler: s}}
	for _, server := range s.running {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		go server.ActivateAndServe()
		<-started
	}
	return nil
}

// down ends the server: nobody listens on its port.
func (s *dnsServer) down() {
	s.mu.Lock()
	running := s.running
	s.running = nil
	s.mu.Unlock()
	for _, server := range running {
		server.Shutdown()
	}
}

// set replaces all records of a type by those, each what follows the type in a
// zone file.
func (s *dnsServer) set(kind, name string, records ...string) {
	s.t.Helper()
	var rrs []dns.RR
	for _, r := range records {
		rr, err := dns.NewRR(fmt.Sprintf("%s 1 IN %s %s", name, kind, r))
		require.NoError(s.t, err)
		rrs = append(rrs, rr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[kind+" "+name] = rrs
}

// fail has all questions answered with a code; dns.RcodeSuccess ends that.
func (s *dnsServer) fail(rcode int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rcode = rcode
}

// silence has questions not answered.
func (s *dnsServer) silence(mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = mute
}

// questions returns how many questions for the records came.
func (s *dnsServer) questions(kind, name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[kind+" "+name]
}

// questionsInAll returns how many questions came.
func (s *dnsServer) questionsInAll() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asked := range s.asked {
		n += asked
	}
	return n
}

// waitQuestions waits until n more questions were answered. The one after those
// shows that their answers have arrived: lookups do not overlap.
func (s *dnsServer) waitQuestions(kind, name string, n int) {
	s.t.Helper()
	want := s.questions(kind, name) + n + 1
	wait(s.t, fmt.Sprint(n, " lookups of ", kind, " ", name), func() bool { return s.questions(kind, name) >= want })
}

// questionsOverTCP returns the questions, "TYPE name.", that came over TCP.
func (s *dnsServer) questionsOverTCP() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.overTCP)
}

// ServeDNS answers one question.
func (s *dnsServer) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	answer := new(dns.Msg).SetReply(r)
	answer.Authoritative = true
	kind, name := dns.TypeToString[r.Question[0].Qtype], strings.ToLower(r.Question[0].Name)
	_, overUDP := w.RemoteAddr().(*net.UDPAddr)
	s.mu.Lock()
	s.asked[kind+" "+name]++
	if !overUDP {
		s.overTCP[kind+" "+name] = true
	}
	mute := s.mute
	answer.Answer = append(answer.Answer, s.records[kind+" "+name]...)
	if answer.Rcode = s.rcode; answer.Rcode != dns.RcodeSuccess {
		answer.Answer = nil
	} else if !s.existsLocked(name) {
		answer.Rcode = dns.RcodeNameError
	}
	s.mu.Unlock()
	if mute {
		return
	}
	if overUDP {
		size := dns.MinMsgSize
		if opt := r.IsEdns0(); opt != nil {
			size = int(opt.UDPSize())
		}
		answer.Truncate(size)
	}
	w.WriteMsg(answer)
}

// existsLocked reports whether a name has records of any type.
func (s *dnsServer) existsLocked(name string) bool {
	for question, records := range s.records {
		if strings.HasSuffix(question, " "+name) && len(records) > 0 {
			return true
		}
	}
	return false
}
