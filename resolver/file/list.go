package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// maxResourceKey is the longest resource key, in bytes, as in the policy's
// configuration.
const maxResourceKey = 1024

// maxNodes is how many nodes a list has at most.
const maxNodes = 100_000

// list is what a file says.
type list struct {
	resourceKey   string // "" without one, as in what follows
	authority     string
	serviceConfig string // JSON
	configLine    int
	nodes         []node
}

// parse reads a file. Its error is about the first thing that is wrong.
func parse(data []byte) (*list, error) {
	return recovering(func() (*list, error) { return parseList(data) })
}

func parseList(data []byte) (*list, error) {
	root, err := document(data)
	if err != nil {
		return nil, err
	}
	l := &list{}
	err = readObject(root, "file", setters{
		"resourceKey": stringField("resourceKey", &l.resourceKey, fmt.Sprintf("want 1 to %d bytes", maxResourceKey),
			func(s string) bool { return s != "" && len(s) <= maxResourceKey }),
		"authority":     stringField("authority", &l.authority, wantName, isName),
		"serviceConfig": l.readServiceConfig,
		"nodes":         l.readNodes,
	})
	if err == nil && l.nodes == nil {
		err = errorAt(root, "file: there is no key nodes: want a list, such as [{address: 10.0.0.1:443}]; an empty one is []")
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *list) readNodes(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return errorAt(n, "nodes: value %s: want a list, such as [{address: 10.0.0.1:443}]; an empty one is []", quote(n))
	}
	if len(n.Content) > maxNodes {
		return errorAt(n.Content[maxNodes], "nodes: there are %d: want at most %d", len(n.Content), maxNodes)
	}
	l.nodes = make([]node, 0, len(n.Content))
	seen := firstLines{addresses: map[string]int{}, ids: map[string]int{}}
	for _, item := range n.Content {
		v, err := readNode(item, seen)
		if err != nil {
			return err
		}
		l.nodes = append(l.nodes, v)
	}
	return nil
}

// node is one node of a list.
type node struct {
	addresses   []string // at least one, as addressOf returns them
	weight      uint32   // 0 if it drains
	priority    uint32
	maxInFlight *uint32 // nil without one
	id          string
	serverName  string
}

// firstLines are the lines in which addresses and ids were first seen.
type firstLines struct{ addresses, ids map[string]int }

func checkUnique(lines map[string]int, n *yaml.Node, key, value string) error {
	if line, again := lines[value]; again {
		return errorAt(n, "%s: value %s is there twice, first in line %d: want each once", key, quote(n), line)
	}
	lines[value] = n.Line
	return nil
}

// nodeReader reads one node.
type nodeReader struct {
	node
	seen firstLines
	by   string // the key that the addresses came by, "" before it
}

func readNode(item *yaml.Node, seen firstLines) (node, error) {
	r := nodeReader{node: node{weight: 1}, seen: seen}
	drain := false
	err := readObject(resolveAlias(item), "node", setters{
		"address":   r.readAddress,
		"addresses": r.readAddresses,
		"weight":    integerField("weight", &r.weight, lcresolver.MaxWeight),
		"priority":  integerField("priority", &r.priority, math.MaxUint32),
		"maxInFlight": func(n *yaml.Node) error {
			r.maxInFlight = new(uint32)
			return integerField("maxInFlight", r.maxInFlight, lcresolver.MaxMaxInFlight)(n)
		},
		"drain":      booleanField("drain", &drain),
		"id":         r.readID,
		"serverName": stringField("serverName", &r.serverName, wantName, isName),
	})
	if err == nil && r.by == "" {
		err = errorAt(item, "node: there is neither address nor addresses: want one of them")
	}
	if drain {
		r.weight = 0
	}
	return r.node, err
}

func (r *nodeReader) readAddress(n *yaml.Node) error {
	return r.takeAddresses("address", n, n)
}

func (r *nodeReader) readAddresses(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return errorAt(n, "addresses: value %s: want a list of at least one address", quote(n))
	}
	return r.takeAddresses("addresses", n, n.Content...)
}

// takeAddresses takes the addresses that the value of key holds.
func (r *nodeReader) takeAddresses(key string, value *yaml.Node, addresses ...*yaml.Node) error {
	if r.by != "" {
		return errorAt(value, "node: both %s and %s are there: want one of them", r.by, key)
	}
	r.by = key
	for _, a := range addresses {
		var addr string
		valid := func(s string) (ok bool) { addr, ok = addressOf(s); return ok }
		var given string
		if err := stringField(key, &given, wantAddress, valid)(resolveAlias(a)); err != nil {
			return err
		}
		if err := checkUnique(r.seen.addresses, resolveAlias(a), key, addr); err != nil {
			return err
		}
		r.addresses = append(r.addresses, addr)
	}
	return nil
}

func (r *nodeReader) readID(n *yaml.Node) error {
	if err := stringField("id", &r.id, "want at least one character", func(s string) bool { return s != "" })(n); err != nil {
		return err
	}
	return checkUnique(r.seen.ids, n, "id", r.id)
}

// readServiceConfig takes the service config as JSON, the only form that gRPC
// reads.
func (l *list) readServiceConfig(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return errorAt(n, "serviceConfig: value %s: want an object, the service config itself", quote(n))
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return decodeError(n, err)
	}
	js, err := json.Marshal(value)
	if err != nil {
		return errorAt(n, "serviceConfig: %v: want what JSON can hold", err)
	}
	l.serviceConfig, l.configLine = string(js), n.Line
	return nil
}

// inLine finds the line and the text of one of the library's errors.
var inLine = regexp.MustCompile(`line (\d+): (.*)`)

// decodeError is an error in the value of n, with its own line if it has one.
func decodeError(n *yaml.Node, err error) error {
	var errs *yaml.TypeError
	if errors.As(err, &errs) {
		if m := inLine.FindStringSubmatch(errs.Errors[0]); m != nil {
			line, _ := strconv.Atoi(m[1])
			return &lineError{line: line, text: "serviceConfig: " + m[2] + ": want what JSON can hold"}
		}
	}
	return errorAt(n, "serviceConfig: %v: want what JSON can hold", err)
}
