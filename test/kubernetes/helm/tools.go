//go:build tools

// Package helm keeps the module of Helm in go.mod; it is built from its own path.
package helm

import _ "helm.sh/helm/v4/cmd/helm"
