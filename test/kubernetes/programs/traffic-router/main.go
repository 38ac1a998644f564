// A traffic router plugin for Argo Rollouts: it writes the weights of a canary into the HTTPRoute that the Rollout names, as
// the plugin argoproj-labs/gatewayAPI does, whose module is not published for the Go module proxy. Written after its
// README: each rule that leads to both the stable and the canary Service gets their weights, nothing else is changed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	rolloutsPlugin "github.com/argoproj/argo-rollouts/rollout/trafficrouting/plugin/rpc"
	pluginTypes "github.com/argoproj/argo-rollouts/utils/plugin/types"
	goPlugin "github.com/hashicorp/go-plugin"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

const pluginName = "argoproj-labs/gatewayAPI"

var routes = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}

type router struct {
	client dynamic.Interface
}

type settings struct {
	HTTPRoute string `json:"httpRoute"`
	Namespace string `json:"namespace"`
}

func (r *router) InitPlugin() pluginTypes.RpcError {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err == nil {
		r.client, err = dynamic.NewForConfig(config)
	}
	return rpcError(err)
}

func (r *router) SetWeight(rollout *v1alpha1.Rollout, weight int32, _ []v1alpha1.WeightDestination) pluginTypes.RpcError {
	return rpcError(retry.RetryOnConflict(retry.DefaultRetry, func() error { return r.setWeight(rollout, int64(weight)) }))
}

func (r *router) setWeight(rollout *v1alpha1.Rollout, weight int64) error {
	canary := rollout.Spec.Strategy.Canary
	var wanted settings
	if err := json.Unmarshal(canary.TrafficRouting.Plugins[pluginName], &wanted); err != nil {
		return err
	}
	ctx := context.Background()
	route, err := r.client.Resource(routes).Namespace(wanted.Namespace).Get(ctx, wanted.HTTPRoute, metav1.GetOptions{})
	if err != nil {
		return err
	}
	rules, _, err := unstructured.NestedSlice(route.Object, "spec", "rules")
	if err != nil {
		return err
	}
	weights := map[string]int64{canary.StableService: 100 - weight, canary.CanaryService: weight}
	found, changed := false, false
	for _, rule := range rules {
		backends, _, _ := unstructured.NestedSlice(rule.(map[string]any), "backendRefs")
		byName := map[string]map[string]any{}
		for _, backend := range backends {
			fields := backend.(map[string]any)
			byName[fmt.Sprint(fields["name"])] = fields
		}
		if byName[canary.StableService] == nil || byName[canary.CanaryService] == nil {
			continue
		}
		found = true
		for name, value := range weights {
			if byName[name]["weight"] != value {
				byName[name]["weight"], changed = value, true
			}
		}
		rule.(map[string]any)["backendRefs"] = backends
	}
	if !found {
		return errors.New("HTTPRoute " + wanted.HTTPRoute + " has no rule with both Services")
	}
	if !changed {
		return nil
	}
	if err := unstructured.SetNestedSlice(route.Object, rules, "spec", "rules"); err != nil {
		return err
	}
	_, err = r.client.Resource(routes).Namespace(wanted.Namespace).Update(ctx, route, metav1.UpdateOptions{FieldManager: "gatewayapi"})
	return err
}

func (r *router) UpdateHash(*v1alpha1.Rollout, string, string, []v1alpha1.WeightDestination) pluginTypes.RpcError {
	return pluginTypes.RpcError{}
}

func (r *router) SetHeaderRoute(*v1alpha1.Rollout, *v1alpha1.SetHeaderRoute) pluginTypes.RpcError {
	return pluginTypes.RpcError{}
}

func (r *router) SetMirrorRoute(*v1alpha1.Rollout, *v1alpha1.SetMirrorRoute) pluginTypes.RpcError {
	return pluginTypes.RpcError{}
}

func (r *router) VerifyWeight(*v1alpha1.Rollout, int32, []v1alpha1.WeightDestination) (pluginTypes.RpcVerified, pluginTypes.RpcError) {
	return pluginTypes.Verified, pluginTypes.RpcError{}
}

func (r *router) RemoveManagedRoutes(*v1alpha1.Rollout) pluginTypes.RpcError {
	return pluginTypes.RpcError{}
}

func (r *router) Type() string { return "GatewayAPI" }

func rpcError(err error) pluginTypes.RpcError {
	if err == nil {
		return pluginTypes.RpcError{}
	}
	return pluginTypes.RpcError{ErrorString: err.Error()}
}

func main() {
	goPlugin.Serve(&goPlugin.ServeConfig{
		HandshakeConfig: goPlugin.HandshakeConfig{
			ProtocolVersion: 1, MagicCookieKey: "ARGO_ROLLOUTS_RPC_PLUGIN", MagicCookieValue: "trafficrouter",
		},
		Plugins: map[string]goPlugin.Plugin{
			"RpcTrafficRouterPlugin": &rolloutsPlugin.RpcTrafficRouterPlugin{Impl: &router{}},
		},
	})
}
