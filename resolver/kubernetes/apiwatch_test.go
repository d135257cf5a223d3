package kubernetes

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

var errNoRole = errors.New(`User "system:serviceaccount:shop:web" has no role`)

// fail answers with an error as API servers do.
func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	status := statusOf(err)
	write(w, int(status.Code), status)
}

func statusOf(err *apierrors.StatusError) metav1.Status {
	status := err.Status()
	status.APIVersion, status.Kind = "v1", "Status"
	return status
}

func write(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// event is one of a watch.
type event struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

// watching is one watch.
type watching struct {
	api      *apiServer
	number   int // of the request
	selector labels.Selector
	initial  bool // whether it begins with what there is
	version  int  // told of so far
	bookmark int  // the last one that it was told
}

// answerWatch tells of changes until the client or the server ends the watch.
func (a *apiServer) answerWatch(w http.ResponseWriter, r *http.Request, s *watching) {
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	_ = http.NewResponseController(w).Flush()
	for {
		events, over, changed := s.next()
		for _, e := range events {
			if out.Encode(e) != nil {
				return
			}
		}
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		if over && a.cuts {
			panic(http.ErrAbortHandler)
		}
		if over {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// next returns what the watch has not told yet, whether it is over, and what is
// closed at the next change.
func (s *watching) next() (events []event, over bool, changed chan struct{}) {
	a := s.api
	a.mu.Lock()
	defer a.mu.Unlock()
	over = a.ended >= s.number
	if a.held && !over {
		return nil, false, a.changed
	}
	if s.initial {
		for _, object := range a.matching(s.selector) {
			events = append(events, event{watch.Added, object})
		}
		s.initial, s.version, s.bookmark = false, a.version, a.bookmarks
		return append(events, bookmarkOf(a.version, map[string]string{metav1.InitialEventsAnnotationKey: "true"})), over, a.changed
	}
	for _, c := range a.history {
		if c.version > s.version && (!over || c.version <= a.endedAt) && s.selector.Matches(labels.Set(c.object.Labels)) {
			events = append(events, event{c.kind, c.object})
		}
	}
	s.version = a.version
	if a.bookmarks > s.bookmark {
		s.bookmark = a.bookmarks
		events = append(events, bookmarkOf(a.bookmarks, nil))
	}
	return events, over, a.changed
}

func bookmarkOf(version int, annotations map[string]string) event {
	return event{watch.Bookmark, discovery.EndpointSlice{
		TypeMeta:   metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version), Annotations: annotations},
	}}
}
