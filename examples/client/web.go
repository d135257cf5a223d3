package main

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/debugpage"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// web serves the debug page and the metrics.
type web struct {
	server *http.Server
	addr   string
	done   chan struct{}
}

func startWeb(addr string, recorder *leastconntest.Recorder) (*web, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("-http %q: want a free TCP address, such as 127.0.0.1:8080: %w", addr, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/{$}", debugpage.Handler())
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(exposition(recorder.Collect())) // the scraper has gone, if this fails
	})
	w := &web{
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second},
		addr:   listener.Addr().String(),
		done:   make(chan struct{}),
	}
	go func() {
		defer close(w.done)
		_ = w.server.Serve(listener) // ends with close
	}()
	return w, nil
}

func (w *web) close() {
	w.server.Close()
	<-w.done
}
