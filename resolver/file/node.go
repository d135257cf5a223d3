package file

import (
	"math"

	"go.yaml.in/yaml/v3"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// node is one node of a list.
type node struct {
	addresses  []string // at least one, as addressOf returns them
	weight     uint32
	priority   uint32
	id         string
	serverName string
}

// repeats are the lines in which addresses and ids were first seen.
type repeats struct{ addresses, ids map[string]int }

func once(lines map[string]int, n *yaml.Node, key, value string) error {
	if line, again := lines[value]; again {
		return wrong(n, "%s: value %s is there twice, first in line %d: want each once", key, shown(n), line)
	}
	lines[value] = n.Line
	return nil
}

// nodeReader reads one node.
type nodeReader struct {
	node
	seen repeats
	by   string // the key that the addresses came by, "" before it
}

func readNode(item *yaml.Node, seen repeats) (node, error) {
	r := nodeReader{node: node{weight: 1}, seen: seen}
	err := object(meant(item), "node", setters{
		"address":    r.readAddress,
		"addresses":  r.readAddresses,
		"weight":     number("weight", &r.weight, lcresolver.MaxWeight),
		"priority":   number("priority", &r.priority, math.MaxUint32),
		"id":         r.readID,
		"serverName": text("serverName", &r.serverName, wantName, isName),
	})
	if err == nil && r.by == "" {
		err = wrong(item, "node: there is neither address nor addresses: want one of them")
	}
	return r.node, err
}

func (r *nodeReader) readAddress(n *yaml.Node) error {
	return r.listed("address", n, n)
}

func (r *nodeReader) readAddresses(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return wrong(n, "addresses: value %s: want a list of at least one address", shown(n))
	}
	return r.listed("addresses", n, n.Content...)
}

// listed takes the addresses that the value of key holds.
func (r *nodeReader) listed(key string, value *yaml.Node, addresses ...*yaml.Node) error {
	if r.by != "" {
		return wrong(value, "node: both %s and %s are there: want one of them", r.by, key)
	}
	r.by = key
	for _, a := range addresses {
		var addr string
		valid := func(s string) (ok bool) { addr, ok = addressOf(s); return ok }
		var given string
		if err := text(key, &given, wantAddress, valid)(meant(a)); err != nil {
			return err
		}
		if err := once(r.seen.addresses, meant(a), key, addr); err != nil {
			return err
		}
		r.addresses = append(r.addresses, addr)
	}
	return nil
}

func (r *nodeReader) readID(n *yaml.Node) error {
	if err := text("id", &r.id, "want at least one character", func(s string) bool { return s != "" })(n); err != nil {
		return err
	}
	return once(r.seen.ids, n, "id", r.id)
}
