package integration

import (
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
)

// nginx needs no root, and none of the directories that its package makes.
var nginx = kind{name: "nginx", proxy: &proxyKind{
	args:   func(p *proxy) []string { return []string{"-e", "stderr", "-p", p.dir, "-c", p.file()} },
	reload: syscall.SIGHUP,
	drain:  syscall.SIGQUIT,
	ready:  func(*proxy) bool { return true },
	limit: func(streams int) settings {
		return settings{HTTP: fmt.Sprintf("http2_max_concurrent_streams %d;", streams)}
	},
	timeless: settings{Clients: `grpc_set_header grpc-timeout "";`},
	idle:     settings{HTTP: "keepalive_timeout 200ms; client_header_timeout 200ms;"},
	config: template.Must(template.New("nginx").Parse(`
{{if .Root}}user root;{{end}}
daemon off;
worker_processes 1;
pid pid;
error_log stderr notice;
{{.Settings.Global}}
events {}
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	{{.Settings.HTTP}}
	upstream nodes { {{range .Nodes}}
		server {{.Addr}} max_fails=0;{{end}}
	}
	server {
		listen {{.Addr}} http2;
		add_header worker $pid always;
		{{.Settings.Clients}}
		location / { grpc_pass grpc://nodes; }
	}
	server {
		listen {{.Admin}};
		location / { return 200 $pid; }
	}
}
`)),
}}

var haproxy = kind{name: "haproxy", proxy: &proxyKind{
	args:   func(p *proxy) []string { return []string{"-W", "-S", p.control, "-f", p.file()} },
	reload: syscall.SIGUSR2,
	drain:  syscall.SIGUSR1,
	// The master loses the signals that come before it takes commands.
	ready: func(p *proxy) bool {
		said, err := p.tryCommand("show proc")
		return err == nil && strings.Contains(said, "worker")
	},
	limit: func(streams int) settings {
		return settings{Global: fmt.Sprintf("tune.h2.max-concurrent-streams %d", streams)}
	},
	timeless: settings{Clients: "http-request del-header grpc-timeout"},
	idle:     settings{HTTP: "timeout client 200ms"},
	config: template.Must(template.New("haproxy").Parse(`
global
	{{.Settings.Global}}
defaults
	mode http
	retries 0
	timeout connect 20s
	timeout client 60s
	timeout server 60s
	{{.Settings.HTTP}}
frontend clients
	bind {{.Addr}} proto h2
	http-response set-header worker %pid
	{{.Settings.Clients}}
	default_backend nodes
backend nodes{{range $i, $n := .Nodes}}
	server node{{$i}} {{$n.Addr}} proto h2{{end}}
frontend admin
	bind {{.Admin}}
	http-request return status 200 content-type text/plain lf-string %pid
`)),
	masterEnds: true,
}}

// command has the current worker of HAProxy do something.
func (p *proxy) command(what string) {
	p.Helper()
	said, err := p.tryCommand("@1 " + what)
	require.NoError(p, err)
	require.Empty(p, strings.TrimSpace(said), "what HAProxy said to %q", what)
}

// tryCommand sends a command to HAProxy's master and returns the answer.
func (p *proxy) tryCommand(what string) (string, error) {
	conn, err := net.Dial("tcp", p.control)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, what+"\n"); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil { // else it waits for more
		return "", err
	}
	said, err := io.ReadAll(conn)
	return string(said), err
}
