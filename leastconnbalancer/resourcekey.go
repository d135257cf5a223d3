package leastconnbalancer

import (
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/cluster"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// What stands in a configuration's resource key for what the channel is told.
const (
	targetInKey  = "{target}"
	clusterInKey = "{cluster}"
)

// resourceKey returns the key of the ledger to use. Where what the configuration's key asks for
// is not known it is the default: a key with a gap might be another service's.
func (b *leastConn) resourceKey(cfg *Config, s resolver.State) string {
	b.keyWarning = ""
	if cfg != nil && cfg.ResourceKey != "" {
		key, unknown := fillIn(cfg.ResourceKey, b.target, cluster.Name(s))
		if unknown == "" {
			return key
		}
		b.keyWarning = fmt.Sprintf("configuration: resourceKey %.100q has no effect: the channel is told nothing that %s stands for", cfg.ResourceKey, unknown)
	}
	if key := lcresolver.ResourceKey(s); key != "" {
		return key
	}
	return b.target
}

// fillIn returns the key with the names of target and cluster, or which of them is not known.
func fillIn(key, target, cluster string) (filled, unknown string) {
	values := map[string]string{targetInKey: target, clusterInKey: cluster}
	filled = inKey.ReplaceAllStringFunc(key, func(s string) string {
		value, known := values[s]
		switch {
		case !known:
			return s
		case value == "":
			unknown = s
		}
		return value
	})
	return filled, unknown
}

// inKey is what may be meant to stand for something.
var inKey = regexp.MustCompile(`\{[a-zA-Z_]*\}`)

// readResourceKey reads the key, which cannot have {cluster} where nothing names clusters.
func (f fields) readResourceKey(c *Config) error {
	const name = "resourceKey"
	if err := f.read(name, &c.ResourceKey, "a string"); err != nil {
		return err
	}
	if n := len(c.ResourceKey); n > MaxResourceKey {
		return fmt.Errorf("%s: field %s: value %.32q… has %d bytes, want at most %d", Name, name, c.ResourceKey, n, MaxResourceKey)
	}
	if strings.Contains(c.ResourceKey, clusterInKey) && !cluster.Linked() {
		return f.wrong(name, `no {cluster} in a program without import _ "github.com/leastconn/grpc-leastconn/leastconnbalancer/xdscluster"`)
	}
	return nil
}

// keyWarnings says what in the configuration's key stands for itself though it looks as if it did not.
func (c *Config) keyWarnings() (ws []string) {
	for _, s := range inKey.FindAllString(c.ResourceKey, -1) {
		if s != targetInKey && s != clusterInKey {
			ws = append(ws, fmt.Sprintf("configuration: resourceKey: %.100q stands for itself; %s and %s stand for something", s, targetInKey, clusterInKey))
		}
	}
	return ws
}
