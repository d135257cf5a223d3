package trial

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPolicies(t *testing.T) {
	var ids, titles []string
	for _, p := range Policies() {
		ids, titles = append(ids, p.ID()), append(titles, p.Title())
		assert.Equal(t, p.Name == "least_conn", p.Judged, p.ID())
		require.True(t, json.Valid([]byte(p.ServiceConfig(`"healthCheckConfig":{}`))), p.ID())
	}
	assert.Equal(t, []string{"round_robin", "least_request_experimental/2", "least_request_experimental/10", "least_conn"}, ids)
	assert.Equal(t, []string{
		"round_robin", "least_request with 2 choices (default)", "least_request with 10 choices", "least_conn",
	}, titles)
	assert.Equal(t, `{"loadBalancingConfig":[{"least_request_experimental":{"choiceCount":10}}],"x":1}`,
		Policies()[2].ServiceConfig(`"x":1`))
}
