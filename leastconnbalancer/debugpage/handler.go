// Package debugpage shows the load that the least_conn policy counts in this
// process: a web page that refreshes itself, plain text for curl, JSON for
// tools.
//
//	http.Handle("/debug/leastconn", debugpage.Handler())
//
// Its figures are of slightly different moments, where there are many endpoints: it
// does not make RPCs wait to have them of one. What is in flight adds up.
//
// It only reads. It names endpoints and services, so it is safe to expose where
// net/http/pprof is, and nowhere else.
package debugpage

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/leastconn/grpc-leastconn/state"
)

//go:embed page.html page.css page.js history.js page.svg
var files embed.FS

// assets are what the page loads, by the value of the query's "asset".
var assets = map[string]string{
	"page.css":   "text/css; charset=utf-8",
	"page.js":    "text/javascript; charset=utf-8",
	"history.js": "text/javascript; charset=utf-8",
	"page.svg":   "image/svg+xml",
}

// policy lets the page load what this handler serves and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Handler returns the handler. It works under any path, answers GET and HEAD,
// and is safe for concurrent use. It holds no load state. The query may have
//
//   - format: html, text or json; by default html for those who accept it, else
//     json for those who accept that, else text;
//   - key: only services whose resource key contains it;
//   - q: only endpoints whose address or id contains it;
//   - state: only endpoints that are ready, full, draining, not_ready or departed;
//   - sort: the order of the endpoints: the name of a column, such as in_flight or
//     failures, with "-" before it for the highest first. By default by name. JSON has
//     that always;
//   - top: how many endpoints of each service, by default the most loaded: 1 to
//     100,000, by default 100. JSON has all of them.
func Handler() http.Handler { return http.HandlerFunc(serve) }

func serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, fmt.Sprintf("method %s: want GET or HEAD", r.Method), http.StatusMethodNotAllowed)
		return
	}
	query := r.URL.Query()
	if name := query.Get("asset"); name != "" {
		serveAsset(w, name)
		return
	}
	q, err := parseQuery(query, r.Header.Get("Accept"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body, err := q.render(q.services(state.SnapshotsInSteps()))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", contentTypes[q.format])
	_, _ = w.Write(body) // the client has gone, if this fails
}

func serveAsset(w http.ResponseWriter, name string) {
	contentType, ok := assets[name]
	if !ok {
		http.Error(w, fmt.Sprintf("asset %q: want page.css, page.js, history.js or page.svg", name), http.StatusNotFound)
		return
	}
	body, _ := files.ReadFile(name) // embedded
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body)
}

var contentTypes = map[string]string{
	"html": "text/html; charset=utf-8",
	"text": "text/plain; charset=utf-8",
	"json": "application/json",
}

func (q query) render(all []state.Snapshot) ([]byte, error) {
	var buf bytes.Buffer
	var err error
	switch q.format {
	case "json":
		js := json.NewEncoder(&buf)
		js.SetIndent("", " ")
		err = js.Encode(document{thisProcess, q.filter(all)})
	case "html":
		err = page.Execute(&buf, q.overview(all))
	default:
		writeText(&buf, q.overview(all))
	}
	return buf.Bytes(), err
}

// document is the JSON form.
type document struct {
	Process  process          `json:"process"`
	Services []state.Snapshot `json:"services"`
}
