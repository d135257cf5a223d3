package file

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	nodeKeys = "address, addresses, drain, id, maxInFlight, priority, serverName, weight"
	fileKeys = "authority, nodes, resourceKey, serviceConfig"
)

// Files that are refused, with the line and the text of the error.
var badFiles = []struct {
	name, file string
	line       int
	text       string
}{
	// Syntax: the line is that of the mistake.
	{"empty", "", 1, "file: there is nothing in it: want an object with the key nodes"},
	{"only a comment", "# nodes:\n", 1, "file: there is nothing in it: want an object with the key nodes"},
	{"bare brackets", "nodes:\n  - address: 10.0.0.1:1\n  - address: [::1]:1980\n", 3, "YAML: did not find expected node content"},
	{"bare brackets, other address", "nodes:\n  - address: [fe80]:1980\n", 2, "YAML: did not find expected key"},
	{"list not closed", "nodes: [\n  {address: 10.0.0.1:1},\n", 3, "YAML: did not find expected node content"},
	{"quote not closed", "nodes:\n  - address: \"10.0.0.1:1\n    weight: 2\n", 2, "YAML: found unexpected end of stream"},
	{"quote not closed in line 1", "resourceKey: \"a\nnodes: []\n", 1, "YAML: found unexpected end of stream"},
	{"JSON with half a pair", "{\"nodes\": [\n  {\"address\": \"a\\/b\", \"id\": \"\\ud83d\"}\n]}\n", 2, "YAML: found invalid Unicode character escape code"},
	{"line of a value in JSON", "{\"resourceKey\": \"a\\n\\/\",\n \"nodes\": 7}\n", 2, "nodes: value 7: want a list, such as [{address: 10.0.0.1:443}]; an empty one is []"},
	{"quote too many", "{\"nodes\": [\n  {\"address\": \"a:1\"\", \"weight\": 1},\n\n  {\"address\": \"b:1\"}\n]}\n", 2, "YAML: did not find expected ',' or '}'"},
	{"list not closed, no line end", "resourceKey: a\nnodes: [", 2, "YAML: did not find expected node content"},
	{"line longer than the library's buffer", "# " + strings.Repeat("c", 9000) + "\nnodes: [] " + strings.Repeat("c", 9000) + "\n", 2, "YAML: did not find expected key"},
	{"byte order mark", "\ufeffa: \"\nnodes: []\n", 1, "YAML: found unexpected end of stream"},
	{"indentation", "# c\nnodes:\n  - address: 10.0.0.1:1\n   weight: 3\n", 4, "YAML: did not find expected '-' indicator"},
	{"item outdented", "# c\nnodes:\n  - address: 10.0.0.1:1\n    weight: 3\n - address: 10.0.0.2:1\n", 5, "YAML: did not find expected key"},
	{"no space after a dash is a key", "# x\n# y\nnodes:\n- address: 10.0.0.1:1\n-address: 10.0.0.2:1\n- address: 10.0.0.3:1\n", 6, "YAML: did not find expected key"},
	{"no colon", "nodes:\n  - address: 10.0.0.1:1\n    weight 3\n", 3, "YAML: could not find expected ':'"},
	{"two colons", "resourceKey: a: b\nnodes: []\n", 1, "YAML: mapping values are not allowed in this context"},
	{"tab", "nodes:\n  - address: 10.0.0.1:1\n\tweight: 3\n", 3, "YAML: found a tab character that violates indentation"},
	{"JSON without a comma", "{\"nodes\": [\n  {\"address\": \"10.0.0.1:1\"}\n  {\"address\": \"10.0.0.2:1\"}\n]}\n", 3, "YAML: did not find expected ',' or ']'"},
	{"unknown anchor", "nodes:\n  - address: 10.0.0.1:1\n    weight: *w\n", 3, "YAML: unknown anchor 'w' referenced"},
	{"not UTF-8", "nodes:\n  - address: 10.0.0.1:1\n    id: \xff\n", 3, "byte 0xff: want UTF-8"},
	{"control character", "nodes:\n  - address: 10.0.0.1:1\n    id: a\x01\n", 3, "character U+0001: want it as an escape in double quotes"},
	{"no character", "# a\nresourceKey: \uffff\nnodes: []\n", 2, "character U+FFFF: want it as an escape in double quotes"},
	{"NUL", "nodes: []\n\x00", 2, "character U+0000: want it as an escape in double quotes"},
	{"two documents", "nodes: []\n---\nnodes: []\n", 2, "file: a second document begins: want one"},
	{"empty second document", "nodes: []\n---\n", 2, "file: a second document begins: want one"},
	{"broken second document", "nodes: []\n---\n[\n", 4, "YAML: did not find expected node content"},

	// The whole.
	{"a list", "- address: 10.0.0.1:1\n", 1, "file: value […]: want an object with keys among " + fileKeys},
	{"a string", "# c\nnodes\n", 2, `file: value "nodes": want an object with keys among ` + fileKeys},
	{"null", "~\n", 1, "file: value null: want an object with keys among " + fileKeys},
	{"no nodes", "# c\nresourceKey: a\n", 2, "file: there is no key nodes: want a list, such as [{address: 10.0.0.1:443}]; an empty one is []"},
	{"nodes without a value", "resourceKey: a\nnodes:\n", 2, "nodes: value null: want a list, such as [{address: 10.0.0.1:443}]; an empty one is []"},
	{"nodes no list", "nodes: {address: 10.0.0.1:1}\n", 1, "nodes: value {…}: want a list, such as [{address: 10.0.0.1:443}]; an empty one is []"},
	{"unknown key", "nodes: []\nresourcekey: a\n", 2, `file: unknown key "resourcekey": want one of ` + fileKeys},
	{"number as key", "nodes: []\n7: a\n", 2, "file: unknown key 7: want one of " + fileKeys},
	{"list as key", "nodes: []\n? [a]\n: b\n", 2, "file: unknown key […]: want one of " + fileKeys},
	{"merge key", "nodes:\n  - &a {address: 10.0.0.1:1}\n  - <<: *a\n    weight: 2\n", 3, `node: unknown key "<<": want one of ` + nodeKeys},
	{"duplicate key", "nodes: []\n\nnodes: []\n", 3, `file: key "nodes" is there twice, first in line 1: want it once`},
	{"resource key is empty", "resourceKey: \"\"\nnodes: []\n", 1, `resourceKey: value "": want 1 to 1024 bytes`},
	{"resource key too long", "nodes: []\nresourceKey: " + strings.Repeat("k", 1025) + "\n", 2, `resourceKey: value "` + strings.Repeat("k", 80) + `"…: want 1 to 1024 bytes`},
	{"resource key a list", "nodes: []\nresourceKey: [a]\n", 2, "resourceKey: value […]: want a string, in quotes if it looks like something else"},
	{"authority", "authority: https://a.example/\nnodes: []\n", 1, `authority: value "https://a.example/": ` + wantName},
	{"authority null", "authority:\nnodes: []\n", 1, "authority: value null: want a string, in quotes if it looks like something else"},

	// Addresses.
	{"unbracketed IPv6", "nodes:\n  - address: 10.0.0.1:1\n  - address: ::1:1980\n", 3, `address: value "::1:1980": ` + wantAddress},
	{"port 0", "nodes:\n  - address: 10.0.0.1:0\n", 2, `address: value "10.0.0.1:0": ` + wantAddress},
	{"address a number", "nodes:\n  - address: 443\n", 2, "address: value 443: want a string, in quotes if it looks like something else"},
	{"addresses a string", "nodes:\n  - addresses: 10.0.0.1:1\n", 2, `addresses: value "10.0.0.1:1": want a list of at least one address`},
	{"addresses empty", "nodes:\n  - addresses: []\n", 2, "addresses: value […]: want a list of at least one address"},
	{"second of addresses", "nodes:\n  - addresses:\n      - 10.0.0.1:1\n      - 10.0.0.1:x\n", 4, `addresses: value "10.0.0.1:x": ` + wantAddress},
	{"both", "nodes:\n  - address: 10.0.0.1:1\n    addresses: [\"10.0.0.2:1\"]\n", 3, "node: both address and addresses are there: want one of them"},
	{"both, the other way", "nodes:\n  - addresses: [\"10.0.0.2:1\"]\n    address: 10.0.0.1:1\n", 3, "node: both addresses and address are there: want one of them"},
	{"neither", "nodes:\n  - address: 10.0.0.1:1\n  - weight: 2\n    id: b\n", 3, "node: there is neither address nor addresses: want one of them"},
	{"duplicate address", "nodes:\n  - address: 10.0.0.1:1\n  - address: 10.0.0.2:1\n  - address: 10.0.0.1:1\n", 4, `address: value "10.0.0.1:1" is there twice, first in line 2: want each once`},
	{"duplicate address, other spelling", "nodes:\n  - address: \"[::1]:443\"\n  - address: \"[0:0::1]:0443\"\n", 3, `address: value "[0:0::1]:0443" is there twice, first in line 2: want each once`},
	{"duplicate in one node", "nodes:\n  - addresses: [\"10.0.0.1:1\",\n      \"10.0.0.1:1\"]\n", 3, `addresses: value "10.0.0.1:1" is there twice, first in line 2: want each once`},
	{"node by alias twice", "nodes:\n  - &a {address: 10.0.0.1:1}\n  - *a\n", 2, `address: value "10.0.0.1:1" is there twice, first in line 2: want each once`},

	// What else a node has.
	{"node a string", "nodes:\n  - 10.0.0.1:1\n", 2, `node: value "10.0.0.1:1": want an object with keys among ` + nodeKeys},
	{"node empty", "nodes:\n  -\n", 2, "node: value null: want an object with keys among " + nodeKeys},
	{"unknown key of a node", "nodes:\n  - address: 10.0.0.1:1\n    wieght: 3\n", 3, `node: unknown key "wieght": want one of ` + nodeKeys},
	{"duplicate key of a node", "nodes:\n  - address: 10.0.0.1:1\n    weight: 3\n    weight: 3\n", 4, `node: key "weight" is there twice, first in line 3: want it once`},
	{"weight below 0", "nodes:\n  - address: 10.0.0.1:1\n    weight: -1\n", 3, "weight: value -1: want an integer from 0 to 2147483648"},
	{"weight too high", "nodes:\n  - address: 10.0.0.1:1\n    weight: 2147483649\n", 3, "weight: value 2147483649: want an integer from 0 to 2147483648"},
	{"weight in quotes", "nodes:\n  - address: 10.0.0.1:1\n    weight: \"3\"\n", 3, `weight: value "3": want an integer from 0 to 2147483648`},
	{"weight a fraction", "nodes:\n  - address: 10.0.0.1:1\n    weight: 1.5\n", 3, "weight: value 1.5: want an integer from 0 to 2147483648"},
	{"weight no number, but marked as one", "nodes:\n  - address: 10.0.0.1:1\n    weight: !!int x\n", 3, "weight: value x: want an integer from 0 to 2147483648"},
	{"weight null", "nodes:\n  - address: 10.0.0.1:1\n    weight:\n  - address: 10.0.0.2:1\n", 3, "weight: value null: want an integer from 0 to 2147483648"},
	{"priority too high", "nodes:\n  - address: 10.0.0.1:1\n    priority: 4294967296\n", 3, "priority: value 4294967296: want an integer from 0 to 4294967295"},
	{"maxInFlight too high", "nodes:\n  - address: 10.0.0.1:1\n    maxInFlight: 2147483648\n", 3, "maxInFlight: value 2147483648: want an integer from 0 to 2147483647"},
	{"drain no boolean", "nodes:\n  - address: 10.0.0.1:1\n    drain: 1\n", 3, "drain: value 1: want true or false"},
	{"drain in quotes", "nodes:\n  - address: 10.0.0.1:1\n    drain: \"true\"\n", 3, `drain: value "true": want true or false`},
	{"as many nodes as may be", "nodes:\n" + strings.Repeat("  - a\n", 100_000), 2, `node: value "a": want an object with keys among ` + nodeKeys},
	{"too many nodes", "nodes:\n" + strings.Repeat("  - a\n", 100_001), 100_002, "nodes: there are 100001: want at most 100000"},
	{"id empty", "nodes:\n  - address: 10.0.0.1:1\n    id: ''\n", 3, `id: value "": want at least one character`},
	{"id a number", "nodes:\n  - address: 10.0.0.1:1\n    id: 7\n", 3, "id: value 7: want a string, in quotes if it looks like something else"},
	{"duplicate id", "nodes:\n  - address: 10.0.0.1:1\n    id: a\n  - address: 10.0.0.2:1\n    id: a\n", 5, `id: value "a" is there twice, first in line 3: want each once`},
	{"serverName", "nodes:\n  - address: 10.0.0.1:1\n    serverName: a b\n", 3, `serverName: value "a b": ` + wantName},

	// Service config.
	{"service config a string", "nodes: []\nserviceConfig: '{}'\n", 2, `serviceConfig: value "{}": want an object, the service config itself`},
	{"service config null", "nodes: []\nserviceConfig:\n", 2, "serviceConfig: value null: want an object, the service config itself"},
	{"service config with a repeat", "nodes: []\nserviceConfig:\n  a: 1\n  a: 2\n", 4, `serviceConfig: mapping key "a" already defined at line 3: want what JSON can hold`},
	{"service config with a key that is none", "nodes: []\nserviceConfig:\n  1: 1\n", 3, "serviceConfig: json: unsupported type: map[interface {}]interface {}: want what JSON can hold"},
	{"service config in itself", "nodes: []\nserviceConfig: &a\n  a: *a\n", 2, "serviceConfig: yaml: anchor 'a' value contains itself: want what JSON can hold"},
	{"service config with infinity", "nodes: []\nserviceConfig:\n  a: .inf\n", 3, "serviceConfig: json: unsupported value: +Inf: want what JSON can hold"},
}

func TestParseRefuses(t *testing.T) {
	for _, c := range badFiles {
		t.Run(c.name, func(t *testing.T) {
			l, err := parse([]byte(c.file))
			require.Error(t, err)
			require.Nil(t, l)
			require.Equal(t, fmt.Sprint(c.line, " ", c.text), fmt.Sprint(lineOf(err), " ", err))
		})
	}
}

// What a file of all kinds of nodes says.
func TestParseAccepts(t *testing.T) {
	limit := func(v uint32) *uint32 { return &v }
	one := func(addrs ...string) []node { return []node{{addresses: addrs, weight: 1}} }
	for _, c := range []struct {
		name, file string
		want       list
	}{
		{"empty list", "nodes: []\n", list{nodes: []node{}}},
		{"all keys", `
resourceKey: orders
authority: orders.example:443
serviceConfig:
  loadBalancingConfig: [{least_conn: {priorityFailover: 2s}}]
  n: [1, 0.5, true, null]
nodes:
  - address: 10.0.0.1:50051
    weight: 2147483648
    priority: 4294967295
    id: pod-7
    serverName: "[2001:db8::2]"
  - addresses: ["10.0.0.2:50051", "[2001:DB8::2]:50051"]
    weight: 0
`, list{
			resourceKey: "orders", authority: "orders.example:443", configLine: 5,
			serviceConfig: `{"loadBalancingConfig":[{"least_conn":{"priorityFailover":"2s"}}],"n":[1,0.5,true,null]}`,
			nodes: []node{
				{addresses: []string{"10.0.0.1:50051"}, weight: 1 << 31, priority: 1<<32 - 1, id: "pod-7", serverName: "[2001:db8::2]"},
				{addresses: []string{"10.0.0.2:50051", "[2001:db8::2]:50051"}},
			},
		}},
		{"JSON as others write it", `{"resourceKey": "a\/b \u00e4 \ud83d\uDE00 \b\f\n\r\t\"\\ ` + "\u2028 \u0085 \U0001F600" + `", "nodes": [
  {"id": "\u007f", "address":"unix:\/run\/a.sock"}]}`, list{
			resourceKey: "a/b ä \U0001F600 \b\f\n\r\t\"\\ \u2028 \u0085 \U0001F600",
			nodes:       []node{{addresses: []string{"unix:///run/a.sock"}, weight: 1, id: "\x7f"}},
		}},
		{"JSON with a byte order mark", "\ufeff{\"nodes\":[{\"address\":\"a:1\",\"id\":\"\\/\"}]}", list{nodes: []node{{addresses: []string{"a:1"}, weight: 1, id: "/"}}}},
		{"JSON with tabs", "{\n\t\"nodes\": [\n\t\t{\"address\": \"10.0.0.1:1\", \"weight\": 3}\n\t]\n}\n",
			list{nodes: []node{{addresses: []string{"10.0.0.1:1"}, weight: 3}}}},
		{"document marks", "%YAML 1.1\n---\nnodes: []\n...\n", list{nodes: []node{}}},
		{"byte order mark and CRLF", "\ufeffnodes:\r\n  - address: a.example:1\r\n", list{nodes: one("a.example:1")}},
		{"aliases", "nodes:\n  - {address: &a 10.0.0.1:1, weight: &w 3}\n  - {addresses: &l [10.0.0.2:1], weight: *w}\n",
			list{nodes: []node{{addresses: []string{"10.0.0.1:1"}, weight: 3}, {addresses: []string{"10.0.0.2:1"}, weight: 3}}}},
		{"one node with both families", "nodes:\n  - addresses:\n      - 127.0.0.1:1\n      - '[::1]:1'\n", list{nodes: one("127.0.0.1:1", "[::1]:1")}},
		{"characters beyond ASCII", "nodes: [{address: \"a:1\", id: \"\u00e4\U0001F600\"}]\n",
			list{nodes: []node{{addresses: []string{"a:1"}, weight: 1, id: "ä\U0001F600"}}}},
		{"caps and drains", "nodes:\n  - {address: \"a:1\", maxInFlight: 0}\n  - {address: \"b:1\", maxInFlight: 2147483647, drain: false}\n  - {address: \"c:1\", weight: 3, drain: true}\n", list{nodes: []node{
			{addresses: []string{"a:1"}, weight: 1, maxInFlight: limit(0)}, {addresses: []string{"b:1"}, weight: 1, maxInFlight: limit(1<<31 - 1)},
			{addresses: []string{"c:1"}, weight: 0},
		}}},
		{"hexadecimal weight", "nodes: [{address: \"a:1\", weight: 0x10}]\n", list{nodes: []node{{addresses: []string{"a:1"}, weight: 16}}}},
		{"longest key", "resourceKey: " + strings.Repeat("k", 1024) + "\nnodes: []\n", list{resourceKey: strings.Repeat("k", 1024), nodes: []node{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := parse([]byte(c.file))
			require.NoError(t, err)
			require.Equal(t, c.want, *l)
		})
	}
}

// A library that panics costs a file, not the process.
func TestParserPanics(t *testing.T) {
	_, err := recovering(func() (*list, error) { panic("index out of range") })
	require.EqualError(t, err, "the parser fails: index out of range")
	require.Zero(t, lineOf(err))
}
