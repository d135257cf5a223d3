package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// failure is why a question has no answer. Its text names the records, the name,
// the server and the cause.
type failure struct {
	text    string
	missing bool // the answer is that there are no such records
	cause   error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// missing reports whether the error says that there are no such records.
func missing(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.missing
}

// explain makes a failure of what the asker returned. The context is the one of
// the question.
func (s source) explain(ctx context.Context, records, name string, err error) error {
	f := &failure{cause: err}
	server, cause := s.server, err.Error()
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	var answered *net.DNSError
	var otherFamily *net.AddrError
	if errors.As(err, &answered) {
		f.missing, cause = answered.IsNotFound, answered.Err
		late = late || answered.IsTimeout
		if server == "" {
			server = answered.Server
		}
	} else if errors.As(err, &otherFamily) {
		// The hosts file has the name, but not in this family.
		f.missing = true
	}
	if late {
		f.missing, cause = false, "no answer in time"
	}
	if server == "" {
		server = "the system's resolver"
	}
	f.text = fmt.Sprintf("%s: %s records of %s from %s: %s", s.scheme, records, name, server, cause)
	return f
}

// maxJoined is how many errors a text names.
const maxJoined = 3

// join returns one error, in one line, for all of them; nil for none.
func join(errs []error) error {
	switch n := len(errs); {
	case n == 0:
		return nil
	case n == 1:
		return errs[0]
	case n > maxJoined:
		return fmt.Errorf("%w; and %d more", join(errs[:maxJoined]), n-maxJoined)
	}
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}
