package leastconntest

import (
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// Source brings a channel's lists in place of its own resolver, as a control plane does. The channel's target has its
// scheme.
type Source interface {
	resolver.Builder
	// Update has the endpoints of state listed, with a service config in JSON, and a resource key if state has one. A channel
	// that is in use has been told when it returns.
	Update(state resolver.State, serviceConfig string) error
}

// Sources makes the source of a channel, for the endpoint part of its target.
type Sources func(target string) (Source, error)

// listBy gives the channel what brings its lists, and its first list.
func (c *Channel) listBy(cfg ChannelConfig) (scheme string, lists resolver.Builder, err error) {
	first := resolver.State{Endpoints: cfg.Endpoints}
	if cfg.Source == nil {
		c.resolver = &recordingResolver{Resolver: manual.NewBuilderWithScheme(Scheme)}
		if cfg.Endpoints != nil {
			c.resolver.InitialState(first)
		}
		return Scheme, c.resolver, nil
	}
	if c.source, err = cfg.Source(cfg.Target); err == nil && cfg.Endpoints != nil {
		err = c.source.Update(first, cfg.ServiceConfig)
	}
	if err != nil {
		return "", nil, err
	}
	return c.source.Scheme(), c.source, nil
}

// updateSource has the source list what state has.
func (c *Channel) updateSource(state resolver.State, serviceConfig string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.source.Update(state, serviceConfig)
}
