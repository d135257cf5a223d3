package integration

import (
	"fmt"
	"syscall"
	"text/template"
)

// nginx needs no root, and none of the directories that its package makes.
var nginx = proxyKind{
	program: "nginx",
	args:    func(p *proxy) []string { return []string{"-e", "stderr", "-p", p.dir, "-c", p.file()} },
	reload:  syscall.SIGHUP,
	drain:   syscall.SIGQUIT,
	ready:   func(*proxy) bool { return true },
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
}
