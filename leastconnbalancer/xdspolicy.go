package leastconnbalancer

import "encoding/json"

// XDSPolicy renders the entry of an xDS cluster's load_balancing_policy.policies that selects the
// policy with this configuration: the proto envoy.config.cluster.v3.LoadBalancingPolicy.Policy as JSON,
// for a control plane in any language. It stands there alone, or as an entry of wrr_locality's
// endpoint_picking_policy.policies. Values out of bounds are rendered as they are, for clients to refuse.
func (c Config) XDSPolicy() string {
	type typedStruct struct {
		Type    string `json:"@type"`
		TypeURL string `json:"type_url"`
		Value   any    `json:"value"`
	}
	type extension struct {
		Name   string      `json:"name"`
		Config typedStruct `json:"typed_config"`
	}
	render := func(value any) ([]byte, error) {
		return json.Marshal(map[string]extension{"typed_extension_config": {Name, typedStruct{
			"type.googleapis.com/xds.type.v3.TypedStruct", "type.googleapis.com/" + Name, value,
		}}})
	}
	js, err := render(c)
	if err != nil { // SlowStart has a number that JSON lacks: whoever reads this is told
		js, _ = render(err.Error()) // strings can always be rendered
	}
	return string(js)
}
