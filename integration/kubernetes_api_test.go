package integration

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// kubeAPI is as much of a Kubernetes API server as kuberesolver asks: it tells
// those who watch of the EndpointSlices of the service "chat" in namespace
// "shop".
type kubeAPI struct {
	*testing.T
	url  string
	port int // of all pods
	pods []*leastconntest.Node

	mu      sync.Mutex
	slices  []kubeSlice // in the order in which they were made
	events  []kubeEvent // all there were
	changed chan struct{}
	ended   chan struct{} // closed to end the watches there are
	watches int           // started so far
}

type (
	kubeEvent struct {
		Type   string    `json:"type"`
		Object kubeSlice `json:"object"`
	}
	kubeSlice struct {
		Version     string         `json:"apiVersion"`
		Kind        string         `json:"kind"`
		Metadata    kubeMetadata   `json:"metadata"`
		AddressType string         `json:"addressType"`
		Endpoints   []kubeEndpoint `json:"endpoints"`
		Ports       []kubePort     `json:"ports"`
	}
	kubeMetadata struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	}
	kubeEndpoint struct {
		Addresses  []string        `json:"addresses"`
		Conditions map[string]bool `json:"conditions"`
	}
	kubePort struct {
		Name     string `json:"name"`
		Protocol string `json:"protocol"`
		Port     int    `json:"port"`
	}
)

// startKubeAPI starts an API server for as long as the test runs. The pods
// listen on the port, which is named "grpc".
func startKubeAPI(t *testing.T, port string) *kubeAPI {
	t.Helper()
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	a := &kubeAPI{T: t, port: number, changed: make(chan struct{}), ended: make(chan struct{})}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /apis/discovery.k8s.io/v1/watch/namespaces/shop/endpointslices", a.watch)
	server := httptest.NewServer(routes)
	a.url = server.URL
	t.Cleanup(func() {
		a.endWatches()
		server.Close()
	})
	return a
}

// set makes or changes a slice of the service.
func (a *kubeAPI) set(name string, pods ...kubeEndpoint) {
	slice := kubeSlice{
		Version: "discovery.k8s.io/v1",
		Kind:    "EndpointSlice",
		Metadata: kubeMetadata{
			Name: name, Namespace: "shop",
			Labels: map[string]string{"kubernetes.io/service-name": "chat"},
		},
		AddressType: "IPv4",
		Endpoints:   pods,
		Ports:       []kubePort{{Name: "metrics", Protocol: "TCP", Port: 9090}, {Name: "grpc", Protocol: "TCP", Port: a.port}},
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	event := kubeEvent{Type: "MODIFIED", Object: slice}
	if i := slices.IndexFunc(a.slices, func(s kubeSlice) bool { return s.Metadata.Name == name }); i >= 0 {
		a.slices[i] = slice
	} else {
		event.Type = "ADDED"
		a.slices = append(a.slices, slice)
	}
	a.events = append(a.events, event)
	close(a.changed)
	a.changed = make(chan struct{})
}

// watch answers with the slices that there are and each change from then on.
func (a *kubeAPI) watch(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("labelSelector") != "kubernetes.io/service-name=chat" {
		http.Error(w, "no such service", http.StatusNotFound)
		return
	}
	a.mu.Lock()
	a.watches++
	seen, ended := len(a.events), a.ended
	var news []kubeEvent
	for _, s := range a.slices {
		news = append(news, kubeEvent{Type: "ADDED", Object: s})
	}
	changed := a.changed
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	for out := json.NewEncoder(w); ; {
		for _, e := range news {
			if err := out.Encode(e); err != nil {
				return
			}
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-changed:
		case <-ended:
			return
		case <-r.Context().Done():
			return
		}
		a.mu.Lock()
		news, seen, changed = a.events[seen:], len(a.events), a.changed
		a.mu.Unlock()
	}
}

// endWatches ends the watches there are, as an API server does that restarts,
// and from time to time anyway.
func (a *kubeAPI) endWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.ended)
	a.ended = make(chan struct{})
}

// watched returns how many watches there have been so far.
func (a *kubeAPI) watched() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.watches
}
