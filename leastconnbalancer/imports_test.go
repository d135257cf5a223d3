package leastconnbalancer_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/leastconn/grpc-leastconn"

// room is a part of the module and all that its packages may reach, tests
// apart, directly or not: other rooms and foreign modules. The standard library
// and the room itself always may be. A room that is a path also stands for what
// is below it, unless that is a room of its own.
type room struct {
	path    string
	rooms   []string
	foreign []string
}

// grpcs is gRPC with what it needs itself.
var grpcs = []string{
	"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto", "golang.org/x",
}

// files are what the node file needs.
var files = append([]string{"github.com/fsnotify/fsnotify", "go.yaml.in/yaml/v3"}, grpcs...)

// cases are what gRPC's interop package needs.
var cases = append([]string{
	"github.com/cncf/xds/go", "github.com/envoyproxy/protoc-gen-validate", "cloud.google.com/go/compute/metadata",
}, files...)

// orcas is gRPC with what ORCA's reports need.
var orcas = append([]string{"github.com/cncf/xds/go", "github.com/envoyproxy/protoc-gen-validate"}, grpcs...)

// policy is what the policy consists of.
var policy = []string{
	"state", "picker", "resolver", "leastconnbalancer", "leastconnbalancer/internal/settings", "leastconnbalancer/internal/reports",
	"leastconnbalancer/internal/cluster",
}

// programs may use anything public.
var programs = append([]string{
	"resolver/dns", "resolver/file", "leastconnbalancer/debugpage", "leastconnbalancer/leastconntest", "leastconnbalancer/orcaload",
	"leastconnbalancer/serverload", "leastconnbalancer/xdscluster",
}, policy...)

var rooms = []room{
	{path: "state"},
	{path: "state/statetest", rooms: []string{"state"}},
	{path: "picker", rooms: []string{"state"}, foreign: grpcs},
	{path: "resolver", rooms: []string{"state"}, foreign: grpcs},
	{path: "resolver/dns", rooms: []string{"resolver"}, foreign: grpcs},
	{path: "resolver/file", rooms: []string{"resolver"}, foreign: files},
	{path: "leastconnbalancer", rooms: policy, foreign: grpcs},
	{path: "leastconnbalancer/internal", rooms: policy, foreign: grpcs},
	{path: "leastconnbalancer/internal/settings", foreign: grpcs},
	{path: "leastconnbalancer/internal/reports", rooms: []string{"state"}, foreign: grpcs},
	{path: "leastconnbalancer/internal/cluster", foreign: grpcs},
	{path: "leastconnbalancer/xdscluster", rooms: []string{"leastconnbalancer/internal/cluster"}, foreign: orcas},
	{path: "leastconnbalancer/orcaload", rooms: []string{"leastconnbalancer/internal/reports", "state"}, foreign: orcas},
	{path: "leastconnbalancer/serverload", foreign: orcas},
	{path: "leastconnbalancer/debugpage", rooms: []string{"state"}},
	{path: "leastconnbalancer/leastconntest", rooms: policy, foreign: grpcs},
	{path: "examples", rooms: programs, foreign: files},
	{path: "interop", rooms: programs, foreign: cases},
}

// roomOf returns the room with the longest path that the package is in.
func roomOf(path string) (room, bool) {
	var best room
	for _, r := range rooms {
		if within(path, r.path) && len(r.path) > len(best.path) {
			best = r
		}
	}
	return best, best.path != ""
}

func within(path, parent string) bool { return path == parent || strings.HasPrefix(path, parent+"/") }

func (r room) mayReach(path string) bool {
	rel, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		return slices.ContainsFunc(r.foreign, func(f string) bool { return within(path, f) })
	}
	to, ok := roomOf(rel)
	return ok && (to.path == r.path || slices.Contains(r.rooms, to.path))
}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Standard   bool
	Deps       []string
}

// list returns the packages of the module and all that they need.
func list(t *testing.T) map[string]pkg {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-json=ImportPath,Standard,Deps", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	pkgs := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		require.NoError(t, err)
		pkgs[p.ImportPath] = p
	}
}

// Each room reaches what it may and nothing else; above all, load state knows
// nothing of gRPC, and nobody the examples.
func TestRoomsImportWhatTheyMay(t *testing.T) {
	pkgs := list(t)
	seen := 0
	for path, p := range pkgs {
		rel, ours := strings.CutPrefix(path, module+"/")
		if !ours {
			continue
		}
		seen++
		r, ok := roomOf(rel)
		if !ok {
			t.Errorf("%s is in no room", rel)
			continue
		}
		for _, dep := range p.Deps {
			if d, listed := pkgs[dep]; listed && !d.Standard && !r.mayReach(dep) {
				t.Errorf("%s reaches %s", rel, dep)
			}
		}
	}
	require.GreaterOrEqual(t, seen, len(policy))
}

// A program without the import of orcaload or xdscluster links nothing of ORCA's or xDS's.
func TestPolicyAloneLinksNoORCA(t *testing.T) {
	for _, dep := range list(t)[module+"/leastconnbalancer"].Deps {
		require.False(t, within(dep, "google.golang.org/grpc/orca") || within(dep, "github.com/cncf/xds/go") ||
			within(dep, "google.golang.org/grpc/balancer/weightedroundrobin"), dep)
	}
}

// The rules themselves refuse what they are there for.
func TestRoomsRefuse(t *testing.T) {
	for from, tos := range map[string][]string{
		"state":                           {"google.golang.org/grpc/balancer", "github.com/stretchr/testify/require", module + "/state/statetest", module + "/picker"},
		"picker":                          {module + "/leastconnbalancer", module + "/resolver", module + "/resolver/dns", module + "/leastconnbalancer/metrics"},
		"resolver/dns":                    {module + "/picker", module + "/leastconnbalancer"},
		"leastconnbalancer":               {module + "/leastconnbalancer/debugpage", module + "/leastconnbalancer/leastconntest", module + "/examples/client", module + "/interop", module + "/state/statetest"},
		"leastconnbalancer/debugpage":     {module + "/leastconnbalancer", "google.golang.org/grpc"},
		"leastconnbalancer/orcaload":      {module + "/leastconnbalancer", module + "/picker"},
		"leastconnbalancer/xdscluster":    {module + "/leastconnbalancer", module + "/state", module + "/leastconnbalancer/internal/reports"},
		"leastconnbalancer/serverload":    {module + "/leastconnbalancer", module + "/state", module + "/leastconnbalancer/internal/reports"},
		"leastconnbalancer/leastconntest": {module + "/examples/client", "github.com/stretchr/testify/require"},
		"interop/client":                  {module + "/examples/client"},
		"examples/client":                 {module + "/interop/client"},
	} {
		r, ok := roomOf(from)
		require.True(t, ok, from)
		for _, to := range tos {
			require.False(t, r.mayReach(to), "%s to %s", from, to)
		}
	}
	r, _ := roomOf("leastconnbalancer/internal/benchtable")
	require.True(t, r.mayReach(module+"/picker"))
	require.True(t, r.mayReach("google.golang.org/grpc/balancer"))
}
