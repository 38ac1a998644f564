//go:build tools

// Package programs keeps the modules of programs that are built from their own paths in go.mod.
package programs

import _ "github.com/argoproj/argo-rollouts/cmd/rollouts-controller"
