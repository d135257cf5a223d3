package kubernetes

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const page = "../../docs/kubernetes.md"

// docBlocks returns what the fenced blocks of a language in the document hold.
func docBlocks(t *testing.T, lang string) (blocks []string) {
	t.Helper()
	doc, err := os.ReadFile(page)
	require.NoError(t, err)
	var block strings.Builder
	inside, wanted := false, false
	for line := range strings.Lines(string(doc)) {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && inside:
			if wanted {
				blocks = append(blocks, block.String())
			}
			inside, wanted = false, false
			block.Reset()
		case isFence:
			inside, wanted = true, strings.TrimSpace(fence) == lang
		case wanted:
			block.WriteString(line)
		}
	}
	require.False(t, inside, "a block without an end")
	return blocks
}

// The document shows the client that is compiled here, byte by byte.
func TestDocShowsTheClient(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	code, found := strings.CutPrefix(string(source), "package kubernetes_test\n\n")
	require.True(t, found)
	require.Equal(t, []string{code}, docBlocks(t, "text"))
}

// manifest is what the tests read of a Kubernetes object. What it has no field
// for is not looked at.
type manifest struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		ClusterIP string `yaml:"clusterIP"`
		Selector  any
		Ports     []struct {
			Name       string
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Args  []string
					Ports []struct {
						Name          string
						ContainerPort int `yaml:"containerPort"`
					}
					ReadinessProbe struct{ Grpc struct{ Port int } } `yaml:"readinessProbe"`
					Lifecycle      struct {
						PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
					}
				}
			}
		}
	}
	Rules []struct {
		APIGroups []string `yaml:"apiGroups"`
		Resources []string
		Verbs     []string
	}
	RoleRef  struct{ Kind, Name string } `yaml:"roleRef"`
	Subjects []struct{ Kind, Name, Namespace string }
}

// docManifests returns the objects of the document, by kind and name.
func docManifests(t *testing.T) map[string]manifest {
	t.Helper()
	ms := map[string]manifest{}
	for _, block := range docBlocks(t, "yaml") {
		for d := yaml.NewDecoder(strings.NewReader(block)); ; {
			var m manifest
			err := d.Decode(&m)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, block)
			require.Equal(t, "shop", m.Metadata.Namespace)
			ms[m.Kind+" "+m.Metadata.Name] = m
		}
	}
	return ms
}

// What the document's manifests and targets say of each other is true.
func TestDocManifests(t *testing.T) {
	ms := docManifests(t)
	service, server, client := ms["Service chat"].Spec, ms["Deployment chat"].Spec, ms["Deployment web"].Spec
	require.Equal(t, "None", service.ClusterIP)
	labels := server.Template.Metadata.Labels
	require.Equal(t, fmt.Sprint(labels), fmt.Sprint(service.Selector))
	require.Equal(t, fmt.Sprint(map[string]any{"matchLabels": labels}), fmt.Sprint(server.Selector))
	require.Equal(t, fmt.Sprint(map[string]any{"matchLabels": client.Template.Metadata.Labels}), fmt.Sprint(client.Selector))

	require.Len(t, service.Ports, 1)
	require.Len(t, server.Template.Spec.Containers, 1)
	container := server.Template.Spec.Containers[0]
	require.Len(t, container.Ports, 1)
	port := container.Ports[0].ContainerPort
	require.Equal(t, container.Ports[0].Name, service.Ports[0].TargetPort)
	require.Equal(t, port, service.Ports[0].Port)
	require.Equal(t, port, container.ReadinessProbe.Grpc.Port)
	require.Greater(t, server.Template.Spec.Grace, container.Lifecycle.PreStop.Sleep.Seconds)
	require.GreaterOrEqual(t, container.Lifecycle.PreStop.Sleep.Seconds, 10+30, "interval and TTL")

	target := fmt.Sprintf("dns-poll:///chat.shop.svc.cluster.local:%d?interval=10s", port)
	require.Equal(t, []string{"-target=" + target}, client.Template.Spec.Containers[0].Args)
	doc, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, want := range []string{
		"| `" + target + "`",
		fmt.Sprintf("`dns:///chat.shop.svc.cluster.local:%d`", port),
		"`k8s:///chat.shop:" + service.Ports[0].Name + "`",
		fmt.Sprintf("`k8s:///chat.shop:%d`", port),
	} {
		require.Contains(t, string(doc), want)
	}
}

// The document's role is what the resolver asks of an API server, no more and no
// less, and the client's service account has it.
func TestDocRole(t *testing.T) {
	ms := docManifests(t)
	binding := ms["RoleBinding web-watches-endpoints"]
	require.Contains(t, ms, binding.RoleRef.Kind+" "+binding.RoleRef.Name)
	require.Len(t, binding.Subjects, 1)
	require.Contains(t, ms, binding.Subjects[0].Kind+" "+binding.Subjects[0].Name)
	rules := ms["Role "+binding.RoleRef.Name].Rules
	require.Len(t, rules, 1)
	require.Equal(t, []string{"discovery.k8s.io"}, rules[0].APIGroups)
	require.Equal(t, []string{"endpointslices"}, rules[0].Resources)
	require.ElementsMatch(t, usedVerbs(t), rules[0].Verbs)
}

// usedVerbs returns what the resolver does of old and new API servers. They
// refuse all that is not about EndpointSlices.
func usedVerbs(t *testing.T) []string {
	t.Helper()
	used := map[string]bool{}
	for _, old := range []bool{false, true} {
		a := startAPI(t)
		a.noWatchList = old
		a.put(slice("1", podA))
		c := a.listen("k8s:///chat:grpc")
		c.has("a")
		a.put(slice("2", podB))
		c.has("a b")
		for _, r := range a.requests() {
			verb, _, _ := strings.Cut(r.verb, " ")
			used[verb] = true
		}
	}
	return slices.Collect(maps.Keys(used))
}
