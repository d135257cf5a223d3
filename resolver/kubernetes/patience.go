package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// patience is how long the API server may take to list, or to begin a watch.
	patience = 30 * time.Second
	// overtime is how long a watch may go on after the time when the server was to end it.
	overtime = 30 * time.Second
)

var (
	errSilent = fmt.Errorf("no answer within %v", patience)
	errHungUp = errors.New("it ended the connection without an answer")
)

// patientClient asks by another client, and gives up what takes too long: a server, or what
// stands before it, may accept a request and then be silent for ever. client-go waits
// then. Nor does it tell of a connection that ends before a watch has begun: to its
// callers that is a watch without events.
type patientClient struct{ EndpointSlices }

func (c patientClient) List(ctx context.Context, opts metav1.ListOptions) (*discovery.EndpointSliceList, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSilent)
	defer cancel()
	list, err := c.EndpointSlices.List(ctx, opts)
	return list, causeOf(ctx, err)
}

func (c patientClient) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	length := overtime
	if opts.TimeoutSeconds != nil {
		length += time.Duration(*opts.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, length)
	ctx, giveUp := context.WithCancelCause(ctx)
	waiting := time.AfterFunc(patience, func() { giveUp(errSilent) })
	w, err := c.EndpointSlices.Watch(ctx, opts)
	waiting.Stop()
	if err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()) {
		err = errHungUp
	}
	if err != nil {
		defer cancel()
		return nil, causeOf(ctx, err)
	}
	return endingWatch{w, cancel}, nil
}

// causeOf is err, or that it has come by lack of patience.
func causeOf(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errSilent {
		return errSilent
	}
	return err
}

// endingWatch is a watch whose time is limited.
type endingWatch struct {
	watch.Interface
	cancel context.CancelFunc
}

// Stop is part of watch.Interface.
func (w endingWatch) Stop() {
	w.Interface.Stop()
	w.cancel()
}
