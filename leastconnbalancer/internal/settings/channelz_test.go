package settings_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/channelz/grpc_channelz_v1"
	"google.golang.org/grpc/channelz/service"
)

// registrar takes a service for direct calls.
type registrar struct {
	grpc_channelz_v1.ChannelzServer
}

func (r *registrar) RegisterService(_ *grpc.ServiceDesc, impl any) {
	r.ChannelzServer = impl.(grpc_channelz_v1.ChannelzServer)
}

// socket returns what channelz says of the channel's only connection.
func (r *registrar) socket(t *testing.T, target string) *grpc_channelz_v1.Socket {
	channels, err := r.GetTopChannels(t.Context(), &grpc_channelz_v1.GetTopChannelsRequest{})
	require.NoError(t, err)
	for _, ch := range channels.Channel {
		if !strings.HasSuffix(ch.Data.Target, "/"+target) {
			continue
		}
		for id := range ch.SubchannelRef {
			sub, err := r.GetSubchannel(t.Context(), &grpc_channelz_v1.GetSubchannelRequest{SubchannelId: ch.SubchannelRef[id].SubchannelId})
			require.NoError(t, err)
			require.Len(t, sub.Subchannel.SocketRef, 1)
			s, err := r.GetSocket(t.Context(), &grpc_channelz_v1.GetSocketRequest{SocketId: sub.Subchannel.SocketRef[0].SocketId})
			require.NoError(t, err)
			return s.Socket
		}
	}
	require.FailNow(t, "no channel "+target)
	return nil
}

// channelz sees the security and the options of a socket as without a listener.
func TestChannelz(t *testing.T) {
	var channelz registrar
	service.RegisterChannelzServiceToServer(&channelz)
	all := kinds(t)
	for _, name := range []string{"TLS", "insecure"} {
		t.Run(name, func(t *testing.T) {
			creds := all[name]
			_, addr := startNode(t, grpc.Creds(creds.server))
			look := func(e *ears, creds channelCreds) *grpc_channelz_v1.Socket {
				c := dial(t, e, addr, creds.options()...)
				defer c.Close()
				_, err := c.Unary(t.Context())
				require.NoError(t, err)
				return channelz.socket(t, target(t))
			}
			plain := look(nil, creds)
			require.Equal(t, creds.dial.Info().SecurityProtocol == "tls", plain.Security != nil)
			for _, read := range []channelCreds{creds, creds.reading()} {
				s := look(&ears{}, read)
				require.Equal(t, plain.Security.String(), s.Security.String())
				require.Len(t, s.Data.Option, len(plain.Data.Option))
				require.Equal(t, plain.Remote.String(), s.Remote.String())
			}
		})
	}
}
